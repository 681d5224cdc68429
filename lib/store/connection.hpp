// A client's connection to the server of a store. Any number of threads send requests and await
// replies on it; requests need not wait for the replies to earlier ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "net/endpoint.hpp"
#include "store/channel.hpp"
#include "store/message.hpp"
#include "wire/credentials.hpp"
#include "wire/frame.hpp"
#include "wire/tls.hpp"

namespace hocket::store {

struct ConnectOptions {
  net::Endpoint server = {};
  wire::Credentials credentials = {};
  wire::TlsOptions tls = {};  // as the server's
  int rank = -1;              // of this process, if it has one: by which others know us
  /// To be connected, and of later calls that give none.
  Duration timeout = std::chrono::minutes(5);
};

class Connection {
 public:
  /// Tries again until the server is there and lets us in, or the timeout is over. To be refused
  /// ends it at once: permission_denied for a wrong secret, mismatch for another job,
  /// protocol_error where one side alone has TLS. TLS that can't be is unsupported or
  /// invalid_argument.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const ConnectOptions& options);

  /// Sends a request, which passed check(); gives the id to receive its reply with. A connection
  /// that does not take all of it in time is given up.
  [[nodiscard]] Result<std::uint64_t> send(const Request& request, Deadline deadline);

  /// The reply; whether it fits() is not known here. After a timeout the request is withdrawn, and
  /// a reply that comes all the same is dropped.
  [[nodiscard]] Reply receive(std::uint64_t id, Deadline deadline);

  /// From now on every call fails for this reason, and so do those that wait.
  void close(Status why);

  /// Our address on this connection.
  [[nodiscard]] std::string local_host() const;

 private:
  using Replies = std::vector<std::pair<std::uint64_t, Reply>>;
  class Turn;

  Connection(std::unique_ptr<wire::TlsContext> tls, std::unique_ptr<Channel> channel,
             std::string server);

  /// Waits for bytes, as the only thread that does, and hands out the replies among them.
  void read(std::unique_lock<std::mutex>& lock, Deadline deadline);
  Status read_some(Deadline deadline, Replies& replies);
  Status transmit(std::unique_lock<std::mutex>& lock, std::string bytes, Deadline deadline);
  void withdraw(std::uint64_t id, std::unique_lock<std::mutex>& lock);
  /// For good: every call fails from now on, and so do those that wait.
  void fail(Status why);
  [[nodiscard]] Status lost() const;

  const std::unique_ptr<wire::TlsContext> tls_;  // null without TLS
  const std::unique_ptr<Channel> channel_;
  const std::string server_;  // for messages

  std::mutex mutex_;  // of what follows
  bool is_sending_ = false;
  std::condition_variable sent_;  // nobody is sending any more
  std::string withdrawals_;       // frames that whoever sends takes along
  bool is_reading_ = false;
  std::condition_variable read_;  // nobody is reading any more, or the connection is lost
  std::uint64_t next_id_ = 0;
  std::unordered_map<std::uint64_t, std::optional<Reply>> awaited_;
  Status failure_;

  // Of the thread that reads.
  wire::FrameBuffer incoming_{encoded_bytes_max};
};

}  // namespace hocket::store
