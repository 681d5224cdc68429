// The key-value service through which a world forms. One interface for the store of a TCP server,
// of a file, of this process, and for a part of another store under a prefix.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/store.hpp"

#include "base/clock.hpp"
#include "store/message.hpp"

namespace hocket::store {

/// Keys and values are any bytes. Any thread, several at once: a call that waits holds up no other.
///
/// No call takes longer than its timeout, which is that of the store unless one is given; zero or
/// less means: only if it can be done at once. A failure says which store, which operation and what
/// was missing.
class Store {
 public:
  static constexpr Duration default_timeout = std::chrono::minutes(5);

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// One trip there and back.
  Status ping();

  Status set(std::string_view key, std::string_view value, std::optional<Duration> timeout = {});
  /// All at once: nobody sees some of them without the others.
  Status multi_set(std::vector<std::string> keys, std::vector<std::string> values,
                   std::optional<Duration> timeout = {});

  /// Waits until the key is there.
  Result<std::string> get(std::string_view key, std::optional<Duration> timeout = {});
  /// Waits until all keys are there; their values in that order.
  Result<std::vector<std::string>> multi_get(std::vector<std::string> keys,
                                             std::optional<Duration> timeout = {});
  /// Waits until all keys are there.
  Status wait(std::vector<std::string> keys, std::optional<Duration> timeout = {});
  /// Whether all keys are there now.
  Result<bool> check(std::vector<std::string> keys, std::optional<Duration> timeout = {});

  /// Adds to a number kept as decimal text, 0 where there was none, and gives the sum.
  Result<std::int64_t> add(std::string_view key, std::int64_t amount,
                           std::optional<Duration> timeout = {});
  /// Appends to the value, or sets it where there was none.
  Status append(std::string_view key, std::string_view more, std::optional<Duration> timeout = {});
  /// Sets the key if it holds `expected`; where there is no key, if `expected` is empty.
  Result<Swap> compare_set(std::string_view key, std::string_view expected,
                           std::string_view desired, std::optional<Duration> timeout = {});
  /// Whether there was one.
  Result<bool> delete_key(std::string_view key, std::optional<Duration> timeout = {});
  Result<std::int64_t> num_keys(std::optional<Duration> timeout = {});
  /// The keys that begin with `prefix`, sorted.
  Result<std::vector<std::string>> keys(std::string_view prefix = {},
                                        std::optional<Duration> timeout = {});

  // Queues are apart from values: a key may name one of each. wait() and check() treat a queue
  // that is not empty as a key that is there; each pushed element wakes one who waits. First in,
  // first out; who waited longest is served first.
  Status queue_push(std::string_view key, std::string_view value,
                    std::optional<Duration> timeout = {});
  /// Waits until there is one.
  Result<std::string> queue_pop(std::string_view key, std::optional<Duration> timeout = {});
  Result<std::int64_t> queue_len(std::string_view key, std::optional<Duration> timeout = {});

  /// Waits until `size` calls have come to the barrier of this name, which can then be used anew.
  /// Who gives up, or dies, has not come.
  Status barrier(std::string_view name, std::int64_t size, std::optional<Duration> timeout = {});

  /// What the server does when this handle's connection ends: it sets each key to its value, unless
  /// the key is there by then. The last call of a handle counts. Where `member` has a size, the
  /// first key is what the ranks of a world wait for before it is complete, and report_absence, or
  /// a client of this job that the server refused, may set it too. Fails with unsupported where the
  /// store has no server.
  Status leave_will(std::vector<std::string> keys, std::vector<std::string> values,
                    Member member = {});
  /// Tells those who wait for a rank that it won't come: sets the first key of every will, if it
  /// begins with `prefix`, to this value, now and later, unless the key is there, the rank is not
  /// of that world, or a client has left a will as this rank. Fails as leave_will.
  Status report_absence(std::string_view prefix, int rank, std::string_view value);

  void set_timeout(Duration timeout) noexcept { timeout_ = timeout.count(); }
  [[nodiscard]] Duration timeout() const noexcept { return Duration(timeout_.load()); }

  /// Another handle of the same store, with the same timeout and a connection of its own.
  [[nodiscard]] virtual Result<std::unique_ptr<Store>> clone() = 0;

  /// "the store at 127.0.0.1:29500"
  [[nodiscard]] virtual std::string describe() const = 0;

  /// What all of the above are made of. Takes no longer than the request's timeout.
  [[nodiscard]] virtual Reply perform(Request request) = 0;

 private:
  Reply ask(Request request, std::optional<Duration> timeout = {});

  std::atomic<Duration::rep> timeout_ = default_timeout.count();
};

}  // namespace hocket::store
