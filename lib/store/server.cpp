#include "store/server.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "link/asio_files.hpp"
#include "net/socket.hpp"
#include "net/token_bucket.hpp"
#include "store/attendance.hpp"
#include "store/keyspace.hpp"
#include "store/session.hpp"
#include "wire/fault.hpp"

namespace hocket::store {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t scratch_bytes = 64 << 10;
constexpr int accepts_at_once_max = 64;
constexpr Duration accept_pause = 100ms;
constexpr Duration retry_pause = 10ms;  // while there is no memory

/// Warnings that a stranger can cause: at most one a second, with the number of those left out.
class StrangerLog {
 public:
  void warn(const std::string& peer, const Status& why) {
    const Instant now = monotonic_clock().now();
    if (now < next_) {
      ++left_out_;
      return;
    }
    next_ = now + 1s;
    const std::string more = left_out_ > 0 ? fmt::format(" ({} more like it)", left_out_) : "";
    left_out_ = 0;
    log::line(log::Level::warning, "store: {} was refused: {}{}", peer, why.what(), more);
  }

 private:
  Instant next_;
  int left_out_ = 0;
};

Status listen_failure(const net::Endpoint& endpoint, int error) {
  const std::string where = endpoint.to_string();
  if (error == EADDRINUSE) {
    return Status(StatusCode::already_exists,
                  fmt::format("can't serve the store at {}: another program listens there", where))
        .with_hint("end it, or take another port; port 0 picks a free one");
  }
  return Status(StatusCode::system_error, fmt::format("can't serve the store at {}", where))
      .with_system_error(error)
      .with_hint("the address must be one of this host");
}

net::Address any_address(int family, std::uint16_t port) {
  net::Address address;
  if (family == AF_INET6) {
    auto& v6 = *reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.bytes = sizeof v6;
  } else {
    auto& v4 = *reinterpret_cast<sockaddr_in*>(&address.storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.bytes = sizeof v4;
  }
  return address;
}

/// Whether a stranger was turned away for what it said, and not because it went or was too slow.
bool is_refusal(StatusCode code) noexcept {
  return code == StatusCode::permission_denied || code == StatusCode::mismatch ||
         code == StatusCode::protocol_error;
}

/// What those are told who wait for a rank that was refused.
std::string fault_of_refused(int rank, const std::string& peer, const Status& why) {
  const std::string who =
      rank < 0 ? fmt::format("a process at {}", peer) : fmt::format("rank {} at {}", rank, peer);
  return wire::encode_fault(
      Status(why.code(), fmt::format("{} was refused by the store: {}", who, why.what()))
          .with_peer(rank)
          .with_hint(why.hint().empty() ? "give all ranks the same HOCKET_JOB and HOCKET_SECRET"
                                        : std::string(why.hint())));
}

/// A listening socket, or errno.
std::pair<Fd, int> listen_at(const net::Address& address) {
  Fd socket = Fd::open_unforked([&] {
    return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  });
  const int on = 1;
  const int off = 0;
  if (!socket) return {Fd(), errno};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Where it is every address, IPv4 comes in on the same socket.
  if (address.storage.ss_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return {Fd(), errno};
  }
  return {std::move(socket), 0};
}

Result<std::vector<net::Address>> addresses_of(const net::Endpoint& listen) {
  if (listen.host.empty()) {
    return std::vector{any_address(AF_INET6, listen.port), any_address(AF_INET, listen.port)};
  }
  return net::resolve(listen, Deadline::after(monotonic_clock(), limits::handshake_timeout));
}

Result<Fd> listen_on(const ServerOptions& options) {
  const auto addresses = addresses_of(options.listen);
  if (!addresses.ok()) return addresses.status();
  const bool is_open = std::ranges::any_of(
      *addresses, [](const net::Address& address) { return !address.is_loopback(); });
  if (is_open && options.credentials.secret.empty() && !options.allow_without_secret) {
    return Status(StatusCode::permission_denied,
                  fmt::format("without a secret the store is served on loopback only, not at {}",
                              options.listen.to_string()))
        .with_hint("give every rank the same HOCKET_SECRET, or set HOCKET_ALLOW_WITHOUT_SECRET=1");
  }
  if (options.serves_torch && std::ranges::any_of(*addresses, &net::Address::is_any)) {
    return Status(
               StatusCode::permission_denied,
               "clients of PyTorch's TCPStore can't prove who they are, so they aren't served at "
               "every address of this host")
        .with_hint("name one address to listen at, such as 127.0.0.1");
  }
  int error = EADDRNOTAVAIL;
  for (const net::Address& address : *addresses) {
    auto [socket, failed] = listen_at(address);
    if (socket) return std::move(socket);
    error = failed;
    if (error == EADDRINUSE) break;
  }
  return listen_failure(options.listen, error);
}

}  // namespace

/// All that the thread works on.
class Server::Hub final : public SessionHost {
 public:
  Hub(ServerOptions options, std::unique_ptr<wire::TlsContext> tls, Fd listener);
  ~Hub() override;

  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return options_.listen; }
  [[nodiscard]] std::size_t connections() const noexcept { return connections_; }
  void end_when_idle();
  [[nodiscard]] bool go_on() noexcept;
  [[nodiscard]] bool has_ended() const noexcept { return life_ == Life::ended; }

  [[nodiscard]] const wire::Credentials& credentials() const noexcept override {
    return options_.credentials;
  }
  [[nodiscard]] const wire::TlsContext* tls() const noexcept override { return tls_.get(); }
  [[nodiscard]] std::span<char> scratch() noexcept override { return scratch_; }
  [[nodiscard]] bool hold(std::ptrdiff_t bytes, bool is_of_torch) noexcept override;
  [[nodiscard]] bool serves_torch() const noexcept override { return options_.serves_torch; }
  void end_silence(Session& session) override;
  void await_proof(Session& session) override;
  void admit(Session& session) override;
  void serve(Session& session, std::uint64_t id, Request request) override;
  void withdraw(Session& session, std::uint64_t id) override;
  void await_turn(std::shared_ptr<Session> session) override;
  void settle(std::shared_ptr<Session> session) override;
  void leave(Session& session, const Status& why) noexcept override;

 private:
  enum class Life : std::uint8_t { goes_on, ends_when_idle, ended };

  struct Place {
    Session* session = nullptr;
    std::uint64_t id = 0;
  };

  void run() noexcept;
  void resume();
  void stop() noexcept;
  void end_if_idle();
  void await_clients();
  void accept();
  bool accept_one();
  void rest(Instant until);
  void set_flooded(bool is_flooded);
  void await_tokens(Instant now);
  void welcome(Fd socket);
  void push_out_one();
  void push_out(std::uint64_t serial);
  void deliver();
  template <class Work>
  auto on_keys(const Work& work);
  [[nodiscard]] std::optional<Reply> attend(const Session& session, Request& request);
  void announce_due(Instant now);
  void announce(std::string key, std::string value);
  void note_place(Session& session, std::uint64_t id, Ticket ticket);
  void note_refusal(const Session& session, const Status& why);
  void note_end(const Session& session, const Status& why, bool is_stranger, bool is_silent);
  void announce_will(std::uint64_t serial);
  void take_turns();
  void await_time();
  void on_time();

  ServerOptions options_;
  const std::unique_ptr<wire::TlsContext> tls_;  // before all that may hold a session
  asio::io_context io_{1};
  link::OwnedSocket<asio::ip::tcp::acceptor> acceptor_;
  bool awaits_clients_ = false;  // now, or after a pause
  const link::ReactorFiles reactor_files_{acceptor_->native_handle()};
  asio::steady_timer timer_{io_};
  Deadline timer_at_;  // never: it is not set
  asio::steady_timer accept_timer_{io_};
  TokenBucket tokens_{limits::strangers_at_once, limits::strangers_per_second};
  bool is_flooded_ = false;

  Keyspace keyspace_;
  bool is_broken_ = false;  // memory ran out while it was changed: it is not used any more
  bool is_stopping_ = false;
  Attendance attendance_;
  Ticket next_ticket_ = 0;
  std::unordered_map<Ticket, Place> places_;  // whose the parked requests are

  std::uint64_t next_serial_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions_;
  std::set<std::pair<Instant, std::uint64_t>> strangers_;  // by when each must prove who it is
  std::set<std::uint64_t> silent_;  // that sent nothing yet, if clients of PyTorch are served
  std::vector<std::shared_ptr<Session>> ready_;
  std::vector<std::shared_ptr<Session>> turns_;  // being taken
  bool takes_turns_ = false;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<Life> life_ = Life::goes_on;
  std::atomic<bool> is_ending_ = false;  // there was no memory to post stop()

  std::vector<char> scratch_ = std::vector<char>(scratch_bytes);
  std::size_t held_ = 0;
  std::size_t torch_held_ = 0;  // likewise, of clients of PyTorch's TCPStore
  StrangerLog stranger_log_;
  std::thread thread_;
};

Server::Hub::Hub(ServerOptions options, std::unique_ptr<wire::TlsContext> tls, Fd listener)
    : options_(std::move(options)),
      tls_(std::move(tls)),
      acceptor_(io_, std::move(listener)),
      keyspace_(options_.bytes_max) {
  options_.listen.port = net::local_address(acceptor_->native_handle()).endpoint().port;
  await_clients();
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Server::Hub::~Hub() {
  try {
    asio::post(io_, [this] { stop(); });
  } catch (const std::bad_alloc&) {
    is_ending_ = true;
    io_.stop();
  }
  thread_.join();
}

void Server::Hub::run() noexcept {
  bool is_interrupted = false;
  for (;;) {
    try {
      if (is_interrupted) resume();
      is_interrupted = false;
      io_.run();
      break;
    } catch (const std::exception& error) {
      log::line(log::Level::error, "store: {}", error.what());
      if (is_interrupted) std::this_thread::sleep_for(retry_pause);
      is_interrupted = true;
    }
  }
  if (is_ending_) stop();
}

/// After an exception: accepts clients and sets the timer again, where that was interrupted.
void Server::Hub::resume() {
  if (is_broken_) stop();
  if (!acceptor_->is_open()) return;
  if (!awaits_clients_) await_clients();
  timer_at_ = Deadline::never();
  await_time();
}

void Server::Hub::stop() noexcept {
  if (std::exchange(is_stopping_, true)) return;
  acceptor_.close();
  accept_timer_.cancel();
  timer_.cancel();
  const Status why =
      described([] { return Status(StatusCode::aborted, "the store is being closed"); });
  while (!sessions_.empty()) {
    const std::shared_ptr<Session> session = sessions_.begin()->second;
    session->close(why);
  }
}

void Server::Hub::end_when_idle() {
  life_ = Life::ends_when_idle;
  asio::post(io_, [this] { end_if_idle(); });
}

bool Server::Hub::go_on() noexcept {
  Life life = Life::ends_when_idle;
  life_.compare_exchange_strong(life, Life::goes_on);
  return life != Life::ended;
}

void Server::Hub::end_if_idle() {
  Life life = Life::ends_when_idle;
  if (sessions_.empty() && life_.compare_exchange_strong(life, Life::ended)) stop();
}

void Server::Hub::await_clients() {
  acceptor_->async_wait(asio::socket_base::wait_read, [this](const asio::error_code& error) {
    awaits_clients_ = false;
    if (!error && acceptor_->is_open()) accept();
  });
  awaits_clients_ = true;
}

void Server::Hub::accept() {
  const Instant now = monotonic_clock().now();
  if (is_flooded_ && tokens_.is_full(now)) set_flooded(false);
  for (int i = 0; i < accepts_at_once_max; ++i) {
    if (!options_.serves_torch && !tokens_.take(now)) return await_tokens(now);
    if (accept_one()) continue;
    const int error = errno;
    tokens_.give_back();
    const bool lacks_files = error == EMFILE || error == ENFILE;
    if (!lacks_files && error != ENOMEM && error != ENOBUFS) break;
    stranger_log_.warn("a client",
                       Status(StatusCode::limit_exceeded,
                              lacks_files ? "this process may open no more files (ulimit -n)"
                                          : "the system has no memory for its connection")
                           .with_system_error(error));
    push_out_one();
    return rest(now + accept_pause);
  }
  await_time();
  await_clients();
}

void Server::Hub::rest(Instant until) {
  accept_timer_.expires_at(until);
  accept_timer_.async_wait([this](const asio::error_code& error) {
    awaits_clients_ = false;
    if (!error && acceptor_->is_open()) await_clients();
  });
  awaits_clients_ = true;
}

/// Too many have come of late who did not prove who they are. A short queue outside: who belongs to
/// the job must not stand behind thousands of others.
void Server::Hub::await_tokens(Instant now) {
  if (!is_flooded_) set_flooded(true);
  await_time();
  rest(tokens_.when(limits::strangers_together, now));
}

void Server::Hub::set_flooded(bool is_flooded) {
  is_flooded_ = is_flooded;
  static_cast<void>(
      ::listen(acceptor_->native_handle(), is_flooded ? limits::flooded_backlog : SOMAXCONN));
  if (is_flooded) {
    log::line(log::Level::warning,
              "store: more than {} connections a second do not prove who they are: they wait from "
              "now on. Is it a port scanner, or a process with another secret?",
              limits::strangers_per_second);
  }
}

void Server::Hub::end_silence(Session& session) { silent_.erase(session.serial()); }

void Server::Hub::await_proof(Session& session) {
  if (strangers_.size() >= options_.strangers_max) push_out(strangers_.begin()->second);
  session.proof_due() = monotonic_clock().now() + options_.handshake_timeout;
  strangers_.emplace(session.proof_due(), session.serial());
}

/// Its place among the strangers is free: somebody else may wait for it.
void Server::Hub::admit(Session& session) {
  strangers_.erase({session.proof_due(), session.serial()});
  tokens_.give_back();
}

/// False, and errno, when there is none.
bool Server::Hub::accept_one() {
  net::Address there;
  Fd socket = Fd::open_unforked([&] {
    return ::accept4(acceptor_->native_handle(), there.get(), &there.bytes,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
  });
  if (!socket) return errno == ECONNABORTED || errno == EINTR;
  if (sessions_.size() >= options_.connections_max && options_.serves_torch) push_out_one();
  if (sessions_.size() >= options_.connections_max) {
    static_cast<void>(
        net::send_all(socket.get(), wire::refusal(wire::Verdict::full), Deadline(Instant())));
    stranger_log_.warn(there.endpoint().to_string(),
                       Status(StatusCode::limit_exceeded, "there are too many connections"));
    return true;
  }
  welcome(std::move(socket));
  return true;
}

void Server::Hub::welcome(Fd socket) {
  const std::uint64_t serial = next_serial_++;
  try {
    const auto session = std::make_shared<Session>(io_, std::move(socket), serial, *this);
    sessions_.emplace(serial, session);
    // PyTorch 1.13 opens connections on which it says nothing.
    if (options_.serves_torch) {
      silent_.insert(serial);
    } else {
      await_proof(*session);
    }
    connections_ = sessions_.size();
    session->start();
  } catch (const std::exception& error) {
    log::line(log::Level::error, "store: a client can't be served: {}", error.what());
    std::erase_if(strangers_, [&](const auto& each) { return each.second == serial; });
    silent_.erase(serial);
    sessions_.erase(serial);
    connections_ = sessions_.size();
  }
}

/// The oldest of those that say nothing; else of those that have not proved who they are.
void Server::Hub::push_out_one() {
  if (!silent_.empty()) return push_out(*silent_.begin());
  if (!strangers_.empty()) push_out(strangers_.begin()->second);
}

void Server::Hub::push_out(std::uint64_t serial) {
  const std::shared_ptr<Session> session = sessions_.at(serial);
  session->close(Status(StatusCode::limit_exceeded, "others wait to be let in"));
}

bool Server::Hub::hold(std::ptrdiff_t bytes, bool is_of_torch) noexcept {
  std::size_t& held = is_of_torch ? torch_held_ : held_;
  held += static_cast<std::size_t>(bytes);
  return held <= (is_of_torch ? limits::store_torch_bytes_max : limits::store_partial_bytes_max);
}

void Server::Hub::await_turn(std::shared_ptr<Session> session) {
  asio::post(io_, [this, session = std::move(session)] {
    session->resume();
    take_turns();
  });
}

/// Does some work on the keyspace. If memory runs out meanwhile, replies that others wait for may
/// be lost. So the store ends, and all clients notice at once.
template <class Work>
auto Server::Hub::on_keys(const Work& work) {
  try {
    return work();
  } catch (...) {
    is_broken_ = true;
    life_ = Life::ended;
    log::line(log::Level::error, "store: it ends, because memory ran out while it changed keys");
    throw;
  }
}

void Server::Hub::serve(Session& session, std::uint64_t id, Request request) {
  const Ticket ticket = next_ticket_++;
  std::optional<Reply> reply = attend(session, request);
  if (!reply) {
    reply = on_keys(
        [&] { return keyspace_.execute(ticket, std::move(request), monotonic_clock().now()); });
  }
  if (reply) {
    session.reply(id, std::move(*reply));
  } else {
    note_place(session, id, ticket);
  }
  deliver();
}

/// In both lists or in none: a session that ends takes its places with it.
void Server::Hub::note_place(Session& session, std::uint64_t id, Ticket ticket) {
  places_.emplace(ticket, Place{&session, id});
  try {
    session.tickets().insert(ticket);
  } catch (const std::bad_alloc&) {
    places_.erase(ticket);
    throw;
  }
}

void Server::Hub::withdraw(Session& session, std::uint64_t id) {
  const auto found = std::ranges::find_if(
      session.tickets(), [&](Ticket ticket) { return places_.at(ticket).id == id; });
  if (found == session.tickets().end()) return;  // it has its reply
  on_keys([&] { keyspace_.cancel(*found); });
  places_.erase(*found);
  session.tickets().erase(found);
  deliver();
}

/// Nothing where the request is of another kind.
std::optional<Reply> Server::Hub::attend(const Session& session, Request& request) {
  if (request.kind != Kind::will && request.kind != Kind::absence) return std::nullopt;
  const Instant now = monotonic_clock().now();
  const Member member = Member::from_number(request.number);
  if (request.kind == Kind::will) {
    Will will = {.member = member};
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      will.says.push_back({std::move(request.keys[i]), std::move(request.values[i])});
    }
    attendance_.add(session.serial(), std::move(will), now);
  } else if (!attendance_.report(
                 {std::move(request.keys.front()), member.rank, std::move(request.values.front())},
                 now)) {
    return Reply{
        .status = Status(StatusCode::limit_exceeded,
                         fmt::format("the store keeps {} reports of ranks that ended, and no more",
                                     Attendance::reports_max))
                      .with_hint("end this job, and start it with a new store")};
  }
  announce_due(now);
  return Reply{};
}

void Server::Hub::announce_due(Instant now) {
  const auto is_set = [this](const std::string& key) { return keyspace_.has(key); };
  for (auto& each : attendance_.take_due(now, is_set)) {
    announce(std::move(each.key), std::move(each.value));
  }
}

void Server::Hub::announce(std::string key, std::string value) {
  const Request request{.kind = Kind::compare_set,
                        .keys = {std::move(key)},
                        .values = {std::string(), std::move(value)}};
  on_keys([&] {
    static_cast<void>(keyspace_.execute(next_ticket_++, request, monotonic_clock().now()));
  });
}

void Server::Hub::deliver() {
  for (Completion& each : keyspace_.take_completions()) {
    const auto found = places_.find(each.ticket);
    if (found == places_.end()) continue;  // its place was never noted, for lack of memory
    const auto [session, id] = found->second;
    places_.erase(found);
    session->tickets().erase(each.ticket);
    try {
      session->reply(id, std::move(each.reply));
      ready_.push_back(session->shared_from_this());
    } catch (const std::bad_alloc&) {
      session->close(Status::out_of_memory());  // its client waits for this reply
    }
  }
}

void Server::Hub::settle(std::shared_ptr<Session> session) {
  ready_.push_back(std::move(session));
  take_turns();
}

void Server::Hub::take_turns() {
  if (std::exchange(takes_turns_, true)) return;
  // A turn may make others ready.
  while (!ready_.empty()) {
    std::swap(ready_, turns_);
    for (const std::shared_ptr<Session>& session : turns_) session->turn();
    turns_.clear();
  }
  takes_turns_ = false;
  await_time();
}

void Server::Hub::leave(Session& session, const Status& why) noexcept {
  const auto unless_memory_lacks = [](const auto& work) {
    static_cast<void>(described([&] {
      work();
      return Status();
    }));
  };
  for (const Ticket ticket : session.tickets()) {
    if (!is_broken_) unless_memory_lacks([&] { on_keys([&] { keyspace_.cancel(ticket); }); });
    places_.erase(ticket);
  }
  session.tickets().clear();
  const bool is_stranger = strangers_.erase({session.proof_due(), session.serial()}) > 0;
  const bool is_silent = silent_.erase(session.serial()) > 0;
  unless_memory_lacks([&] { note_end(session, why, is_stranger, is_silent); });
  sessions_.erase(session.serial());
  connections_ = sessions_.size();
  unless_memory_lacks([&] { announce_will(session.serial()); });
  if (sessions_.empty() && life_ == Life::ends_when_idle) {
    unless_memory_lacks([&] { asio::post(io_, [this] { end_if_idle(); }); });
  }
  if (is_broken_) stop();
}

void Server::Hub::note_end(const Session& session, const Status& why, bool is_stranger,
                           bool is_silent) {
  if (why.code() == StatusCode::aborted) {
    log::line(log::Level::debug, "store: {} left: {}", session.peer(), why.what());
  } else if (is_stranger) {
    note_refusal(session, why);
    stranger_log_.warn(session.peer(), why);
  } else if ((session.speaks_torch() || is_silent) && why.code() != StatusCode::peer_lost) {
    stranger_log_.warn(session.peer(), why);
  } else if (why.code() == StatusCode::limit_exceeded) {
    log::line(log::Level::warning, "store: {} was dropped: {}", session.peer(), why.what());
  } else {
    log::line(log::Level::debug, "store: {} left: {}", session.peer(), why.what());
  }
}

void Server::Hub::announce_will(std::uint64_t serial) {
  std::vector<Announcement> will = attendance_.remove(serial);
  if (will.empty() || !acceptor_->is_open()) return;
  for (auto& each : will) announce(std::move(each.key), std::move(each.value));
  deliver();
  take_turns();
}

/// Those who wait for this rank are told, unless it comes after all.
void Server::Hub::note_refusal(const Session& session, const Status& why) {
  const std::optional<int> rank = session.claimed_rank();
  if (!rank || !is_refusal(why.code())) return;
  attendance_.refuse({.rank = *rank, .value = fault_of_refused(*rank, session.peer(), why)},
                     monotonic_clock().now());
}

/// Sets the timer, unless it will go off early enough anyway.
void Server::Hub::await_time() {
  Deadline next = keyspace_.next_deadline().or_sooner(attendance_.next());
  if (!strangers_.empty()) next = next.or_sooner(Deadline(strangers_.begin()->first));
  if (next.at() >= timer_at_.at()) return;
  timer_at_ = next;
  timer_.expires_at(next.at());
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error && acceptor_->is_open()) on_time();
  });
}

void Server::Hub::on_time() {
  timer_at_ = Deadline::never();
  const Instant now = monotonic_clock().now();
  while (!strangers_.empty() && strangers_.begin()->first <= now) {
    const std::shared_ptr<Session> slow = sessions_.at(strangers_.begin()->second);
    slow->close(Status(StatusCode::timeout, "it did not prove in time who it is"));
  }
  on_keys([&] { keyspace_.expire(now); });
  announce_due(now);
  deliver();
  take_turns();
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  std::unique_ptr<wire::TlsContext> tls;
  if (options.tls.mode != wire::TlsMode::off && options.serves_torch) {
    return Status(StatusCode::unsupported, "clients of PyTorch's TCPStore can't speak TLS")
        .with_hint("set HOCKET_TLS=off, or serve them from a store of their own");
  }
  if (options.tls.mode != wire::TlsMode::off) {
    auto made =
        wire::TlsContext::make(wire::TlsContext::Role::server, options.tls, options.credentials);
    if (!made.ok()) return made.status();
    tls = std::move(*made);
  }
  auto listener = listen_on(options);
  if (!listener.ok()) return listener.status();
  try {
    auto hub = std::make_unique<Hub>(std::move(options), std::move(tls), std::move(*listener));
    return std::unique_ptr<Server>(new Server(std::move(hub)));
  } catch (const std::system_error& error) {
    return Status(StatusCode::system_error, fmt::format("can't serve the store: {}", error.what()));
  }
}

Server::Server(std::unique_ptr<Hub> hub) noexcept : hub_(std::move(hub)) {}
Server::~Server() {
  if (origin_.is_inherited()) abandon(hub_);
}
const net::Endpoint& Server::endpoint() const noexcept { return hub_->endpoint(); }
std::size_t Server::connections() const noexcept { return hub_->connections(); }
const wire::Credentials& Server::credentials() const noexcept { return hub_->credentials(); }
void Server::end_when_idle() { hub_->end_when_idle(); }
bool Server::go_on() noexcept { return hub_->go_on(); }
bool Server::has_ended() const noexcept { return hub_->has_ended(); }

}  // namespace hocket::store
