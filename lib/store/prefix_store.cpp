#include "store/prefix_store.hpp"

#include <utility>

namespace hocket::store {

PrefixStore::PrefixStore(std::unique_ptr<Store> whole, std::string_view prefix)
    : whole_(std::move(whole)), prefix_(std::string(prefix) + '/') {
  set_timeout(whole_->timeout());
}

Result<std::unique_ptr<Store>> PrefixStore::clone() {
  auto whole = whole_->clone();
  if (!whole.ok()) return whole.status();
  const std::string_view prefix = prefix_;
  auto copy = std::make_unique<PrefixStore>(std::move(*whole), prefix.substr(0, prefix.size() - 1));
  copy->set_timeout(timeout());
  return std::unique_ptr<Store>(std::move(copy));
}

Reply PrefixStore::perform(Request request) {
  for (std::string& key : request.keys) key.insert(0, prefix_);
  // The prefix may have made a key too long.
  if (Status status = store::check(request); !status.ok()) return {.status = std::move(status)};
  const bool lists_keys = request.kind == Kind::keys;
  Reply reply = whole_->perform(std::move(request));
  if (lists_keys) {
    for (Value& key : reply.values) {
      if (!key->starts_with(prefix_)) {
        return {
            .status = {StatusCode::protocol_error, "a key without the prefix that was asked for"}};
      }
      key = std::make_shared<const std::string>(key->substr(prefix_.size()));
    }
  }
  return reply;
}

}  // namespace hocket::store
