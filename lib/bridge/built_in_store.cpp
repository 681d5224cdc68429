#include "bridge/built_in_store.hpp"

#include <type_traits>
#include <utility>

#include "base/exception.hpp"

namespace hocket::bridge {
namespace {

std::vector<std::string> list(std::span<const std::string> texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

BuiltInStore::BuiltInStore(std::unique_ptr<store::Store> store) : store_(std::move(store)) {
  Store::set_timeout(store_->timeout());
}

Result<std::unique_ptr<store::Store>> BuiltInStore::clone(Duration timeout) const {
  if (origin_.is_inherited()) return inherited_status(describe());
  store_->set_timeout(timeout);  // our own calls each have one
  return store_->clone();
}

Duration BuiltInStore::limit(TimeLimit timeout) const noexcept {
  return timeout.value_or(Store::timeout());
}

/// The value of what call() returns, a Status or a Result. Throws its failure.
template <class Call>
auto BuiltInStore::perform(const Call& call) const {
  return as_errors([&] {
    if (origin_.is_inherited()) throw_error(inherited_status(describe()));
    auto found = call();
    if constexpr (std::is_same_v<decltype(found), Status>) {
      if (!found.ok()) throw_error(std::move(found));
    } else {
      return std::move(found).value();
    }
  });
}

void BuiltInStore::set(std::string_view key, std::string_view value, TimeLimit timeout) {
  perform([&] { return store_->set(key, value, limit(timeout)); });
}

std::string BuiltInStore::get(std::string_view key, TimeLimit timeout) {
  return perform([&] { return store_->get(key, limit(timeout)); });
}

void BuiltInStore::wait(std::span<const std::string> keys, TimeLimit timeout) {
  perform([&] { return store_->wait(list(keys), limit(timeout)); });
}

bool BuiltInStore::check(std::span<const std::string> keys, TimeLimit timeout) {
  return perform([&] { return store_->check(list(keys), limit(timeout)); });
}

std::int64_t BuiltInStore::add(std::string_view key, std::int64_t amount, TimeLimit timeout) {
  return perform([&] { return store_->add(key, amount, limit(timeout)); });
}

Swap BuiltInStore::compare_set(std::string_view key, std::string_view expected,
                               std::string_view desired, TimeLimit timeout) {
  return perform([&] { return store_->compare_set(key, expected, desired, limit(timeout)); });
}

bool BuiltInStore::delete_key(std::string_view key, TimeLimit timeout) {
  return perform([&] { return store_->delete_key(key, limit(timeout)); });
}

void BuiltInStore::append(std::string_view key, std::string_view more, TimeLimit timeout) {
  perform([&] { return store_->append(key, more, limit(timeout)); });
}

void BuiltInStore::multi_set(std::span<const std::string> keys, std::span<const std::string> values,
                             TimeLimit timeout) {
  perform([&] { return store_->multi_set(list(keys), list(values), limit(timeout)); });
}

std::vector<std::string> BuiltInStore::multi_get(std::span<const std::string> keys,
                                                 TimeLimit timeout) {
  return perform([&] { return store_->multi_get(list(keys), limit(timeout)); });
}

void BuiltInStore::barrier(std::string_view name, std::int64_t size, TimeLimit timeout) {
  perform([&] { return store_->barrier(name, size, limit(timeout)); });
}

std::int64_t BuiltInStore::num_keys(TimeLimit timeout) {
  return perform([&] { return store_->num_keys(limit(timeout)); });
}

std::vector<std::string> BuiltInStore::keys(std::string_view prefix, TimeLimit timeout) {
  return perform([&] { return store_->keys(prefix, limit(timeout)); });
}

void BuiltInStore::queue_push(std::string_view key, std::string_view value, TimeLimit timeout) {
  perform([&] { return store_->queue_push(key, value, limit(timeout)); });
}

std::string BuiltInStore::queue_pop(std::string_view key, TimeLimit timeout) {
  return perform([&] { return store_->queue_pop(key, limit(timeout)); });
}

std::int64_t BuiltInStore::queue_length(std::string_view key, TimeLimit timeout) {
  return perform([&] { return store_->queue_len(key, limit(timeout)); });
}

}  // namespace hocket::bridge
