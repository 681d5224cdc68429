#include "store/hash_store.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "store/keyspace.hpp"

namespace hocket::store {

class HashStore::Contents {
 public:
  Reply perform(Request request) {
    std::unique_lock lock(mutex_);
    const Ticket ticket = next_ticket_++;
    std::optional<Reply> reply =
        keyspace_.execute(ticket, std::move(request), monotonic_clock().now());
    announce();
    while (!reply) reply = await(ticket, lock);
    unshare(*reply);
    return std::move(*reply);
  }

 private:
  /// One sleep at most: nothing when it brought no reply.
  std::optional<Reply> await(Ticket ticket, std::unique_lock<std::mutex>& lock) {
    if (const auto found = ready_.find(ticket); found != ready_.end()) {
      Reply reply = std::move(found->second);
      ready_.erase(found);
      return reply;
    }
    const Instant now = monotonic_clock().now();
    keyspace_.expire(now);
    if (announce()) return std::nullopt;
    // A condition variable can't be given a time that is very far away.
    constexpr Duration sleep_max = std::chrono::minutes(1);
    woken_.wait_for(lock, std::min(keyspace_.next_deadline().remaining(now), sleep_max));
    return std::nullopt;
  }

  /// Whether there was anything.
  bool announce() {
    std::vector<Completion> completed = keyspace_.take_completions();
    for (Completion& each : completed) ready_.emplace(each.ticket, std::move(each.reply));
    if (!completed.empty()) woken_.notify_all();
    return !completed.empty();
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  Keyspace keyspace_;
  Ticket next_ticket_ = 0;
  std::unordered_map<Ticket, Reply> ready_;
};

HashStore::HashStore() : HashStore(std::make_shared<Contents>()) {}

HashStore::HashStore(std::shared_ptr<Contents> contents) noexcept
    : contents_(std::move(contents)) {}

HashStore::~HashStore() = default;

Result<std::unique_ptr<Store>> HashStore::clone() {
  std::unique_ptr<HashStore> copy(new HashStore(contents_));
  copy->set_timeout(timeout());
  return std::unique_ptr<Store>(std::move(copy));
}

Reply HashStore::perform(Request request) { return contents_->perform(std::move(request)); }

}  // namespace hocket::store
