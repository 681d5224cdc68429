#include "store/connection.hpp"

#include <algorithm>
#include <string_view>
#include <thread>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "net/socket.hpp"
#include "wire/handshake.hpp"

namespace hocket::store {
namespace {

using namespace std::chrono_literals;

/// At once: condition variables add what they are given to the clock, which may overflow.
constexpr Duration wait_max = 1min;

/// Whether to try again is in vain.
bool is_final(StatusCode code) noexcept {
  return code == StatusCode::permission_denied || code == StatusCode::mismatch ||
         code == StatusCode::protocol_error || code == StatusCode::unsupported;
}

Result<std::unique_ptr<wire::TlsContext>> make_tls(const ConnectOptions& options) {
  if (options.tls.mode == wire::TlsMode::off) return std::unique_ptr<wire::TlsContext>();
  return wire::TlsContext::make(wire::TlsContext::Role::client, options.tls, options.credentials);
}

Status shake_hands(Channel& channel, const ConnectOptions& options, Deadline deadline) {
  const auto binding = channel.binding();
  if (!binding.ok()) return binding.status();
  wire::Nonce nonce{};
  random_bytes(nonce);
  wire::ClientHandshake handshake(options.credentials, wire::Purpose::store, nonce, *binding,
                                  options.rank);
  if (Status status = channel.send(handshake.hello(), deadline); !status.ok()) return status;
  const auto challenge = channel.receive_exactly(wire::challenge_bytes, deadline);
  if (!challenge.ok()) return challenge.status();
  const auto proof = handshake.on_challenge(*challenge);
  if (!proof.ok()) return proof.status();
  if (Status status = channel.send(*proof, deadline); !status.ok()) return status;
  const auto answer = channel.receive_exactly(wire::answer_bytes, deadline);
  if (!answer.ok()) return answer.status();
  return handshake.on_answer(*answer);
}

Result<std::unique_ptr<Channel>> try_address(const net::Address& address,
                                             const ConnectOptions& options,
                                             const wire::TlsContext* tls, Deadline deadline) {
  auto socket = net::connect_to(address, deadline);
  if (!socket.ok()) return socket.status();
  auto channel = Channel::open(std::move(*socket), tls, deadline);
  if (!channel.ok()) return channel;
  if (Status status = shake_hands(**channel, options, deadline); !status.ok()) return status;
  return channel;
}

/// One attempt at each address of the server.
Result<std::unique_ptr<Channel>> try_once(const ConnectOptions& options,
                                          const wire::TlsContext* tls, Deadline deadline) {
  const auto addresses = net::resolve(options.server, deadline);
  if (!addresses.ok()) return addresses.status();
  Status failure;
  for (const net::Address& address : *addresses) {
    // What swallows everything that is sent to it must not take all the time.
    const Deadline cap =
        Deadline::after(monotonic_clock(), limits::handshake_timeout).or_sooner(deadline);
    auto channel = try_address(address, options, tls, cap);
    if (channel.ok()) return channel;
    failure = channel.status();
    if (is_final(failure.code())) break;
  }
  return failure;
}

Status not_there(const ConnectOptions& options, Status last) {
  return Status(StatusCode::timeout,
                fmt::format("no store at {} answered within {}", options.server.to_string(),
                            format_duration(options.timeout)))
      .with_hint("check that rank 0 runs, that the address is its, and that no firewall is between")
      .caused_by(std::move(last));
}

Status refused(const ConnectOptions& options, const Status& why) {
  return Status(why.code(), fmt::format("the store at {} can't be used: {}",
                                        options.server.to_string(), why.what()))
      .with_hint(std::string(why.hint()));
}

}  // namespace

/// The turn of a thread to do what one thread does at a time, without the lock; whatever ends it,
/// another thread can have the next.
class Connection::Turn {
 public:
  Turn(bool& is_taken, std::condition_variable& over, std::unique_lock<std::mutex>& lock)
      : is_taken_(is_taken), over_(over), lock_(lock) {
    is_taken_ = true;
    lock_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!lock_.owns_lock()) lock_.lock();
    is_taken_ = false;
    over_.notify_all();
  }

 private:
  bool& is_taken_;
  std::condition_variable& over_;
  std::unique_lock<std::mutex>& lock_;
};

Connection::Connection(std::unique_ptr<wire::TlsContext> tls, std::unique_ptr<Channel> channel,
                       std::string server)
    : tls_(std::move(tls)), channel_(std::move(channel)), server_(std::move(server)) {}

Result<std::unique_ptr<Connection>> Connection::open(const ConnectOptions& options) {
  constexpr Duration pause_max = 100ms;
  const Deadline deadline = Deadline::after(monotonic_clock(), options.timeout);
  auto tls = make_tls(options);
  if (!tls.ok()) return refused(options, tls.status());
  Status failure;
  for (Duration pause = 1ms;; pause = std::min(2 * pause, pause_max)) {
    auto channel = try_once(options, tls->get(), deadline);
    if (channel.ok()) {
      return std::unique_ptr<Connection>(
          new Connection(std::move(*tls), std::move(*channel), options.server.to_string()));
    }
    const Duration left = deadline.remaining(monotonic_clock().now());
    // That the time ended in the midst of an attempt says less than what an earlier one was told.
    const bool was_cut_off = left <= Duration::zero();
    if (failure.ok() || !was_cut_off) failure = channel.status();
    if (is_final(failure.code())) return refused(options, failure);
    if (left <= pause) {
      return not_there(options, std::move(failure));
    }
    std::this_thread::sleep_for(pause);
  }
}

Result<std::uint64_t> Connection::send(const Request& request, Deadline deadline) {
  std::string bytes;
  const std::size_t start = wire::open_frame(bytes);
  encode(request, bytes);
  std::unique_lock lock(mutex_);
  while (is_sending_) {
    const Duration remaining = deadline.remaining(monotonic_clock().now());
    if (remaining <= Duration::zero()) {
      return Status(StatusCode::timeout, "earlier requests are still being sent");
    }
    sent_.wait_for(lock, std::min<Duration>(remaining, wait_max));
  }
  if (!failure_.ok()) return lost();
  const std::uint64_t id = next_id_++;
  awaited_.emplace(id, std::nullopt);
  wire::close_frame(bytes, start, id);
  Status status = transmit(lock, std::move(bytes), deadline);
  if (status.ok()) return id;
  awaited_.erase(id);
  fail(status);
  return status;
}

/// As the only thread that sends; comes back with the lock.
Status Connection::transmit(std::unique_lock<std::mutex>& lock, std::string bytes,
                            Deadline deadline) {
  const Turn turn(is_sending_, sent_, lock);
  for (;;) {
    Status status = described([&] { return channel_->send(bytes, deadline); });
    lock.lock();
    if (!status.ok() || withdrawals_.empty()) return status;
    bytes = std::exchange(withdrawals_, {});
    lock.unlock();
  }
}

/// Lest a request that the server comes to only now takes what somebody else could have. If even
/// that can't be said, the server finds out by the end of the connection.
void Connection::withdraw(std::uint64_t id, std::unique_lock<std::mutex>& lock) {
  wire::close_frame(withdrawals_, wire::open_frame(withdrawals_), id);
  if (is_sending_) return;  // who sends takes it along
  Status status = transmit(lock, std::exchange(withdrawals_, {}), Deadline(Instant()));
  if (!status.ok()) fail(std::move(status));
}

Reply Connection::receive(std::uint64_t id, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = awaited_.find(id);
    if (found == awaited_.end()) {
      return {.status = Status(StatusCode::internal, "a reply that nobody is waiting for")};
    }
    const Instant now = monotonic_clock().now();
    if (found->second || !failure_.ok() || deadline.passed(now)) {
      std::optional<Reply> reply = std::move(found->second);
      awaited_.erase(found);
      if (reply) return std::move(*reply);
      if (!failure_.ok()) return {.status = lost()};
      withdraw(id, lock);
      return {.status = Status(StatusCode::timeout, "the server does not answer")
                            .with_hint("see whether its process is stopped or its host is gone")};
    }
    if (is_reading_) {
      read_.wait_for(lock, std::min<Duration>(deadline.remaining(now), wait_max));
    } else {
      read(lock, deadline);
    }
  }
}

void Connection::read(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  const Turn turn(is_reading_, read_, lock);
  Replies replies;
  // Replies that were on their way would be lost, so a failure is that of all who wait.
  Status status = described([&] { return read_some(deadline, replies); });
  lock.lock();
  for (auto& [id, reply] : replies) {
    // Who gave up waiting is not in the list any more.
    if (const auto found = awaited_.find(id); found != awaited_.end()) {
      found->second = std::move(reply);
    }
  }
  if (!status.ok() && status.code() != StatusCode::timeout) fail(std::move(status));
}

Status Connection::read_some(Deadline deadline, Replies& replies) {
  const auto received = channel_->receive(deadline);
  if (!received.ok()) return received.status();
  incoming_.append(*received);
  for (;;) {
    auto frame = incoming_.next();
    if (!frame.ok()) return frame.status();
    if (!*frame) return {};
    auto reply = decode_reply((*frame)->message);
    if (!reply.ok()) return reply.status();
    replies.emplace_back((*frame)->id, std::move(*reply));
  }
}

void Connection::fail(Status why) {
  if (!failure_.ok()) return;
  failure_ = std::move(why);
  ::shutdown(channel_->socket(), SHUT_RDWR);  // wakes the thread that reads
  read_.notify_all();
}

void Connection::close(Status why) {
  const std::lock_guard lock(mutex_);
  fail(std::move(why));
}

Status Connection::lost() const {
  return Status(StatusCode::peer_lost, fmt::format("the connection is lost: {}", failure_.what()))
      .with_system_error(failure_.system_error())
      .with_hint("see why the process that serves the store, rank 0 or the launcher, has ended");
}

std::string Connection::local_host() const {
  return net::local_address(channel_->socket()).endpoint().host;
}

}  // namespace hocket::store
