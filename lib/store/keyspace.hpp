// What a store holds, and what each request does to it: a state machine without clock, thread or
// socket. The server, the store of a process and the store in a file each drive one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "store/message.hpp"

namespace hocket::store {

/// The name, given by the driver, of a request that may have to wait.
using Ticket = std::uint64_t;

struct Completion {
  Ticket ticket = 0;
  Reply reply;
};

class Keyspace {
 public:
  explicit Keyspace(std::size_t bytes_max = limits::store_bytes_max) : bytes_max_(bytes_max) {}

  /// Serves the request, which passed check(), or parks it under its ticket, which is not in use,
  /// and gives nothing; its reply comes out of take_completions then.
  [[nodiscard]] std::optional<Reply> execute(Ticket ticket, Request request, Instant now);

  /// Forgets a request that is parked: no queue gives it anything, no barrier counts it.
  void cancel(Ticket ticket);

  /// Completes every parked request whose time has run out.
  void expire(Instant now);

  /// When the first of them does.
  [[nodiscard]] Deadline next_deadline() const noexcept;

  /// Whether the key has a value.
  [[nodiscard]] bool has(const std::string& key) const { return values_.contains(key); }

  /// The replies that have become ready, in that order.
  [[nodiscard]] std::vector<Completion> take_completions() { return std::exchange(completed_, {}); }

  /// What is held, requests that wait included, each piece with what keeping it costs.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t parked() const noexcept { return parked_.size(); }

 private:
  // A reply may still share the text, which is then not changed any more. Who lets replies out of
  // its lock must unshare() them first: a count is no word from another thread that it has read.
  using Text = std::shared_ptr<std::string>;
  template <class T>
  using ByKey = std::map<std::string, T, std::less<>>;
  using Line = std::deque<Ticket>;  // who waited longest stands first

  struct Parked {
    Request request;
    Instant deadline;
    std::size_t missing = 0;  // of its keys, the one that it waits for
  };
  struct Barrier {
    std::int64_t size = 0;
    Line line;
  };

  Reply set(Request request);
  Reply add(const Request& request);
  Reply append(Request request);
  Reply compare_set(Request request);
  Reply delete_key(const std::string& key);
  void count_key(std::string_view key, int change) noexcept;
  [[nodiscard]] std::int64_t count_keys(std::string_view prefix) const;
  Reply list_keys(std::string_view prefix) const;
  Reply queue_push(Request request);
  std::optional<Reply> await_keys(Ticket ticket, Request request, Instant now);
  std::optional<Reply> queue_pop(Ticket ticket, Request request, Instant now);
  std::optional<Reply> barrier(Ticket ticket, Request request, Instant now);

  [[nodiscard]] std::size_t queue_length(const std::string& key) const;
  [[nodiscard]] std::optional<std::size_t> first_missing(const Request& request,
                                                         std::size_t start) const;
  [[nodiscard]] bool is_there(const Request& request, const std::string& key) const;
  [[nodiscard]] Reply values_of(const Request& request) const;
  [[nodiscard]] Reply timed_out(const Request& request) const;

  /// Puts a value in place, in memory that can_hold said yes to.
  void put(const std::string& key, Text text);
  /// Whether `more` bytes can come in where `less` go.
  [[nodiscard]] bool can_hold(std::size_t more, std::size_t less = 0) const noexcept;
  [[nodiscard]] Reply full() const;

  std::optional<Reply> park(Ticket ticket, Request request, std::size_t missing, Instant now);
  /// Takes it out of parked_, but not out of the line in which it stands.
  void stand_in_line(Ticket ticket, const Request& request, const std::string& key);
  Request unpark(Ticket ticket);
  void leave_line(Ticket ticket, const Parked& parked);
  void complete(Ticket ticket, Reply reply);
  /// Those who waited for this key now wait for another, or have all they want.
  void wake(const std::string& key);
  /// As wake(), for the first waiter that counts queues and then has all it wants.
  void wake_one_for_queue(const std::string& key);
  /// Returns whether it has all it wants.
  bool look_again(Ticket ticket);

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  ByKey<Text> values_;
  std::array<std::int64_t, 256> key_counts_ = {};  // of the keys in values_, by the first byte
  ByKey<std::list<Value>> queues_;                 // none is empty
  ByKey<Line> waiters_;  // each request stands in the line of one missing key
  ByKey<Line> poppers_;
  ByKey<Barrier> barriers_;
  std::unordered_map<Ticket, Parked> parked_;
  std::set<std::pair<Instant, Ticket>> deadlines_;
  std::vector<Completion> completed_;
};

}  // namespace hocket::store
