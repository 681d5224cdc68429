#include "store/store.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::store {
namespace {

/// `get "k"`; only the first of several keys.
std::string describe(Kind kind, std::size_t keys, const std::string& first) {
  if (keys == 0) return std::string(name(kind));
  return fmt::format("{} {}{}", name(kind), quote(first), keys > 1 ? ", …" : "");
}

std::vector<std::string> texts(const std::vector<Value>& values) {
  std::vector<std::string> copies;
  copies.reserve(values.size());
  for (const Value& value : values) copies.push_back(*value);
  return copies;
}

Result<std::string> only_text(const Reply& reply) {
  if (!reply.status.ok()) return reply.status;
  return *reply.values.front();
}

Result<std::vector<std::string>> all_texts(const Reply& reply) {
  if (!reply.status.ok()) return reply.status;
  return texts(reply.values);
}

Result<std::int64_t> number(const Reply& reply) {
  if (!reply.status.ok()) return reply.status;
  return reply.number;
}

Result<bool> yes_or_no(const Reply& reply) {
  if (!reply.status.ok()) return reply.status;
  return reply.number != 0;
}

}  // namespace

Reply Store::ask(Request request, std::optional<Duration> timeout) {
  request.timeout = timeout.value_or(this->timeout());
  const Kind kind = request.kind;
  const std::size_t keys = request.keys.size();
  const std::string first = keys > 0 ? request.keys.front() : "";
  Status status = store::check(request);
  Reply reply = status.ok() ? perform(std::move(request)) : Reply{.status = std::move(status)};
  if (!reply.status.ok()) {
    reply.status = Status(reply.status.code(),
                          fmt::format("{}: {}: {}", describe(), store::describe(kind, keys, first),
                                      reply.status.what()))
                       .with_hint(std::string(reply.status.hint()))
                       .with_system_error(reply.status.system_error());
  }
  return reply;
}

Status Store::ping() { return ask({.kind = Kind::ping}).status; }

Status Store::set(std::string_view key, std::string_view value, std::optional<Duration> timeout) {
  return multi_set({std::string(key)}, {std::string(value)}, timeout);
}

Status Store::multi_set(std::vector<std::string> keys, std::vector<std::string> values,
                        std::optional<Duration> timeout) {
  return ask({.kind = Kind::set, .keys = std::move(keys), .values = std::move(values)}, timeout)
      .status;
}

Result<std::string> Store::get(std::string_view key, std::optional<Duration> timeout) {
  return only_text(ask({.kind = Kind::get, .keys = {std::string(key)}}, timeout));
}

Result<std::vector<std::string>> Store::multi_get(std::vector<std::string> keys,
                                                  std::optional<Duration> timeout) {
  return all_texts(ask({.kind = Kind::get, .keys = std::move(keys)}, timeout));
}

Status Store::wait(std::vector<std::string> keys, std::optional<Duration> timeout) {
  return ask({.kind = Kind::wait, .keys = std::move(keys)}, timeout).status;
}

Result<bool> Store::check(std::vector<std::string> keys, std::optional<Duration> timeout) {
  return yes_or_no(ask({.kind = Kind::check, .keys = std::move(keys)}, timeout));
}

Result<std::int64_t> Store::add(std::string_view key, std::int64_t amount,
                                std::optional<Duration> timeout) {
  return number(ask({.kind = Kind::add, .keys = {std::string(key)}, .number = amount}, timeout));
}

Status Store::append(std::string_view key, std::string_view more, std::optional<Duration> timeout) {
  return ask({.kind = Kind::append, .keys = {std::string(key)}, .values = {std::string(more)}},
             timeout)
      .status;
}

Result<Swap> Store::compare_set(std::string_view key, std::string_view expected,
                                std::string_view desired, std::optional<Duration> timeout) {
  const Reply reply = ask({.kind = Kind::compare_set,
                           .keys = {std::string(key)},
                           .values = {std::string(expected), std::string(desired)}},
                          timeout);
  if (!reply.status.ok()) return reply.status;
  Swap swap{.is_set = reply.number != 0};
  if (const Value& value = reply.values.front(); value != nullptr) swap.value = *value;
  return swap;
}

Result<bool> Store::delete_key(std::string_view key, std::optional<Duration> timeout) {
  return yes_or_no(ask({.kind = Kind::delete_key, .keys = {std::string(key)}}, timeout));
}

Result<std::int64_t> Store::num_keys(std::optional<Duration> timeout) {
  return number(ask({.kind = Kind::num_keys, .keys = {std::string()}}, timeout));
}

Result<std::vector<std::string>> Store::keys(std::string_view prefix,
                                             std::optional<Duration> timeout) {
  return all_texts(ask({.kind = Kind::keys, .keys = {std::string(prefix)}}, timeout));
}

Status Store::queue_push(std::string_view key, std::string_view value,
                         std::optional<Duration> timeout) {
  return ask({.kind = Kind::queue_push, .keys = {std::string(key)}, .values = {std::string(value)}},
             timeout)
      .status;
}

Result<std::string> Store::queue_pop(std::string_view key, std::optional<Duration> timeout) {
  return only_text(ask({.kind = Kind::queue_pop, .keys = {std::string(key)}}, timeout));
}

Result<std::int64_t> Store::queue_len(std::string_view key, std::optional<Duration> timeout) {
  return number(ask({.kind = Kind::queue_len, .keys = {std::string(key)}}, timeout));
}

Status Store::barrier(std::string_view name, std::int64_t size, std::optional<Duration> timeout) {
  return ask({.kind = Kind::barrier, .keys = {std::string(name)}, .number = size}, timeout).status;
}

Status Store::leave_will(std::vector<std::string> keys, std::vector<std::string> values,
                         Member member) {
  return ask({.kind = Kind::will,
              .keys = std::move(keys),
              .values = std::move(values),
              .number = member.to_number()})
      .status;
}

Status Store::report_absence(std::string_view prefix, int rank, std::string_view value) {
  return ask({.kind = Kind::absence,
              .keys = {std::string(prefix)},
              .values = {std::string(value)},
              .number = Member{.rank = rank}.to_number()})
      .status;
}

}  // namespace hocket::store
