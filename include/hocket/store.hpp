// Key-value stores: those that come with Hocket, and a class for a program's own. Worlds meet in
// one (JoinOptions::store).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/export.h"
#include "hocket/setting.hpp"
#include "hocket/status.hpp"

namespace hocket::store {
class Server;
}

namespace hocket::inline v1 {

/// What Store::compare_set found.
struct Swap {
  bool is_set = false;  // the key held what was expected, and holds the new value now
  std::optional<std::string> value = {};  // what the key holds now; nothing if there is no such key
};

/// A key-value store. A program can bring its own: derive from this class, override the pure
/// functions, and override others where the store can do better.
///
/// Keys and values are any bytes. Any thread may call any function, also several at once; a call
/// that waits must not block the others.
///
/// A call that fails throws an Error; it throws Timeout if what it waits for is missing at the end
/// of its timeout. No call takes longer than its timeout. No value means timeout(); zero or less
/// means not to wait. If an override throws anything else, the operation that called it fails: with
/// LimitExceeded for std::bad_alloc, else with code internal.
///
/// A child made by fork() must not use the stores of its parent.
class HOCKET_API Store {
 public:
  using TimeLimit = std::optional<std::chrono::nanoseconds>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store();

  /// Makes the key, or changes its value.
  virtual void set(std::string_view key, std::string_view value, TimeLimit timeout = {}) = 0;
  /// Waits until the key is there.
  [[nodiscard]] virtual std::string get(std::string_view key, TimeLimit timeout = {}) = 0;
  /// Waits until all keys are there.
  virtual void wait(std::span<const std::string> keys, TimeLimit timeout = {}) = 0;
  /// Returns whether all keys are there now.
  [[nodiscard]] virtual bool check(std::span<const std::string> keys, TimeLimit timeout = {}) = 0;
  /// Adds to a number that is kept as decimal text, and returns the sum. A missing key counts as 0.
  /// A value that is not a number is an error.
  virtual std::int64_t add(std::string_view key, std::int64_t amount, TimeLimit timeout = {}) = 0;
  /// Sets the key if it holds `expected`, or if it is missing and `expected` is empty. Returns
  /// whether it did, and what the key holds then.
  virtual Swap compare_set(std::string_view key, std::string_view expected,
                           std::string_view desired, TimeLimit timeout = {}) = 0;
  /// Returns whether there was such a key.
  virtual bool delete_key(std::string_view key, TimeLimit timeout = {}) = 0;

  // By default, these call the functions above.
  /// Appends to the value. A missing key counts as empty.
  virtual void append(std::string_view key, std::string_view more, TimeLimit timeout = {});
  /// As many values as keys. Stores of Hocket set all keys at once, so that nobody sees some of
  /// them without the others; the default sets one after the other.
  virtual void multi_set(std::span<const std::string> keys, std::span<const std::string> values,
                         TimeLimit timeout = {});
  /// Waits until all keys are there, and returns their values in that order.
  [[nodiscard]] virtual std::vector<std::string> multi_get(std::span<const std::string> keys,
                                                           TimeLimit timeout = {});
  /// Waits until `size` calls have come to the barrier of this name; then the name can be used
  /// again, with the same size. In stores of Hocket a call that times out does not count any more.
  /// The default uses the keys "NAME/came" and "NAME/round K", and counts it.
  virtual void barrier(std::string_view name, std::int64_t size, TimeLimit timeout = {});

  // By default these throw Unsupported.
  [[nodiscard]] virtual std::int64_t num_keys(TimeLimit timeout = {});
  /// Returns the keys that begin with `prefix`, sorted.
  [[nodiscard]] virtual std::vector<std::string> keys(std::string_view prefix = {},
                                                      TimeLimit timeout = {});
  // Queues are apart from values: a key may name one of each. wait() and check() treat a queue
  // that is not empty as a key that is there; each pushed element wakes one who waits. First in,
  // first out.
  virtual void queue_push(std::string_view key, std::string_view value, TimeLimit timeout = {});
  /// Waits until there is an element.
  [[nodiscard]] virtual std::string queue_pop(std::string_view key, TimeLimit timeout = {});
  [[nodiscard]] virtual std::int64_t queue_length(std::string_view key, TimeLimit timeout = {});

  /// For messages, such as "the store at 127.0.0.1:29500".
  [[nodiscard]] virtual std::string describe() const;

  /// The timeout of calls that give none, 5 minutes at first. Any thread may call these.
  void set_timeout(std::chrono::nanoseconds timeout) noexcept;
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept;

 private:
  std::atomic<std::chrono::nanoseconds::rep> timeout_ns_ = 300'000'000'000;
};

struct StoreOptions {
  /// tcp://HOST:PORT of a StoreServer, of rank 0 or of `hocket store serve`; file:///PATH; or
  /// torch://HOST:PORT of a server of PyTorch's TCPStore, whose keys are those without the "/" that
  /// TCPStore puts in front. May end with ?timeout=TIME, tcp:// and file:// also with ?job=NAME.
  std::string url = {};
  /// How long to wait for the server, and afterwards the store's timeout(). No value: the URL's,
  /// else HOCKET_STORE_TIMEOUT.
  Store::TimeLimit timeout = {};
  /// Variables in place of the environment's, such as HOCKET_SECRET and HOCKET_TLS.
  std::vector<Setting> settings = {};
};

/// Opens a store that several processes share. Throws InvalidArgument for a wrong URL or setting,
/// and PermissionDenied if the server refuses this process. Fails within the timeout if there is no
/// server.
[[nodiscard]] HOCKET_API std::shared_ptr<Store> open_store(const StoreOptions& options);
/// Makes an empty store that only this process can use.
[[nodiscard]] HOCKET_API std::shared_ptr<Store> make_local_store();
/// Returns a part of another store: key k of the part is "PREFIX/k" of `whole`. The part has the
/// timeout that `whole` has now. If `whole` is a client of a server, the part makes a connection of
/// its own, so this may wait and throw like open_store().
[[nodiscard]] HOCKET_API std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> whole,
                                                                  std::string_view prefix);

struct StoreServerOptions {
  /// The address to listen at. An empty host means all addresses of this host. An address that
  /// other hosts reach needs HOCKET_SECRET, or HOCKET_ALLOW_WITHOUT_SECRET=1.
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;              // 0 picks a free one
  std::vector<Setting> settings = {};  // as StoreOptions::settings
  /// Whether to serve clients of PyTorch's TCPStore, too. They can't prove who they are: any
  /// process that reaches the address can read and change the keys that start with "/", and no
  /// others. Not allowed with TLS, or with a host that means every address (empty, 0.0.0.0, ::).
  bool serves_torch = false;
};

/// Serves a store to other processes, from a thread of its own, until it is destroyed.
class HOCKET_API StoreServer {
 public:
  /// Listens when it returns. Throws PermissionDenied if a secret is needed, and an Error if the
  /// address can't be used.
  explicit StoreServer(const StoreServerOptions& options = {});
  StoreServer(StoreServer&&) noexcept;
  StoreServer& operator=(StoreServer&&) noexcept;
  /// From then on, calls of its clients fail.
  ~StoreServer();

  /// The port that it listens at. Not of a server that was moved from.
  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  std::unique_ptr<store::Server> server_;
};

}  // namespace hocket::inline v1
