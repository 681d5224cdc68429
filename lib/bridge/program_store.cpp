#include "bridge/program_store.hpp"

#include <vector>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "bridge/built_in_store.hpp"

namespace hocket::bridge {
namespace {

using store::Kind;
using store::Reply;
using store::Request;

store::Value to_value(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

Reply to_reply(std::vector<std::string> texts) {
  Reply reply;
  for (std::string& each : texts) reply.values.push_back(to_value(std::move(each)));
  return reply;
}

/// Fails if the value that was returned contradicts the call.
Reply to_reply(Swap swap, const std::string& expected, const std::string& desired) {
  const bool holds_desired = !swap.value || *swap.value == desired;
  const bool is_possible = swap.is_set ? holds_desired : swap.value || !expected.empty();
  if (!is_possible) {
    return {.status = {StatusCode::protocol_error,
                       "compare_set of the program's store returned a value that can't be"}};
  }
  if (swap.is_set) swap.value = desired;
  Reply reply = {.number = swap.is_set ? 1 : 0};
  reply.values.push_back(swap.value ? to_value(*std::move(swap.value)) : nullptr);
  return reply;
}

Reply get(hocket::Store& store, const Request& request) {
  // Some stores take a timeout of zero to mean no limit, so a request that must not wait looks for
  // its keys first. Then get returns soon.
  const bool may_wait = request.timeout > Duration::zero();
  const Duration limit = may_wait ? request.timeout : Duration(limits::store_answer_timeout);
  if (!may_wait && !store.check(request.keys, limit)) {
    return {.status = {StatusCode::timeout, "a key is not there at once"}};
  }
  if (request.kind == Kind::wait) {
    store.wait(request.keys, limit);
    return {};
  }
  if (request.keys.size() == 1) return to_reply({store.get(request.keys.front(), limit)});
  return to_reply(store.multi_get(request.keys, limit));
}

Reply call(hocket::Store& store, const Request& request) {
  const auto& [kind, keys, values, number, timeout] = request;
  switch (kind) {
    case Kind::ping:
      static_cast<void>(store.check(std::vector<std::string>{"ping"}));
      return {};
    case Kind::set:
      if (keys.size() == 1) {
        store.set(keys.front(), values.front(), timeout);
      } else {
        store.multi_set(keys, values, timeout);
      }
      return {};
    case Kind::get:
    case Kind::wait:
      return get(store, request);
    case Kind::add:
      return {.number = store.add(keys.front(), number, timeout)};
    case Kind::append:
      store.append(keys.front(), values.front(), timeout);
      return {};
    case Kind::check:
      return {.number = store.check(keys, timeout) ? 1 : 0};
    case Kind::compare_set:
      return to_reply(store.compare_set(keys.front(), values[0], values[1], timeout), values[0],
                      values[1]);
    case Kind::delete_key:
      return {.number = store.delete_key(keys.front(), timeout) ? 1 : 0};
    case Kind::num_keys:
      return {.number = keys.front().empty()
                            ? store.num_keys(timeout)
                            : static_cast<std::int64_t>(store.keys(keys.front(), timeout).size())};
    case Kind::keys:
      return to_reply(store.keys(keys.front(), timeout));
    case Kind::queue_push:
      store.queue_push(keys.front(), values.front(), timeout);
      return {};
    case Kind::queue_pop:
      return to_reply({store.queue_pop(keys.front(), timeout)});
    case Kind::queue_len:
      return {.number = store.queue_length(keys.front(), timeout)};
    case Kind::barrier:
      store.barrier(keys.front(), number, timeout);
      return {};
    case Kind::will:
    case Kind::absence:
      break;
  }
  return {.status = {StatusCode::unsupported, "this store has no connections to watch"}};
}

}  // namespace

Result<std::unique_ptr<store::Store>> handle_of(std::shared_ptr<hocket::Store> store,
                                                std::optional<Duration> timeout) {
  const Duration limit = timeout.value_or(store->timeout());
  const auto* const built_in = dynamic_cast<const BuiltInStore*>(store.get());
  if (built_in != nullptr) return built_in->clone(limit);
  return described([&]() -> Result<std::unique_ptr<store::Store>> {
    auto handle = std::make_unique<ProgramStore>(std::move(store));
    handle->set_timeout(limit);
    return std::unique_ptr<store::Store>(std::move(handle));
  });
}

ProgramStore::ProgramStore(std::shared_ptr<hocket::Store> store)
    : store_(std::move(store)), name_(store_->describe()) {
  set_timeout(store_->timeout());
}

Result<std::unique_ptr<store::Store>> ProgramStore::clone() {
  auto copy = std::make_unique<ProgramStore>(store_);
  copy->set_timeout(timeout());
  return std::unique_ptr<store::Store>(std::move(copy));
}

Reply ProgramStore::perform(Request request) {
  try {
    Reply reply = call(*store_, request);
    if (!reply.status.ok() || fits(reply, request)) return reply;
    return {.status = {StatusCode::protocol_error,
                       "a function of the program's store gave the wrong number of values"}};
  } catch (...) {
    Status why = status_of_exception();
    if (!why.ok()) return {.status = std::move(why)};
    return {
        .status = {StatusCode::internal, "the program's store threw an error without a failure"}};
  }
}

}  // namespace hocket::bridge
