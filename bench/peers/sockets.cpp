// What the machine allows: a bare TCP connection between two processes, as a peer (contest.hpp).
// Small messages are polled for, which is as fast as a system call lets them be. An all_reduce of
// two is an exchange: each sends all that it has.
//
// usage: sockets sendrecv|all_reduce SECONDS_PER_SIZE BYTES,BYTES...
#include <algorithm>
#include <cerrno>
#include <functional>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contest.hpp"

namespace peers {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

class Sockets final : public Contestant {
 public:
  Sockets(int rank, int socket) : rank_(rank), socket_(socket) {
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return 2; }
  void barrier() override { static_cast<void>(max(0)); }
  [[nodiscard]] double max(double value) override {
    double other = 0;
    send(&value, sizeof value);
    receive(&other, sizeof other);
    return std::max(value, other);
  }

  [[nodiscard]] bool prepare(Work& work) override {
    work_ = &work;
    bytes_ = work.count * sizeof(float);
    return work.operation == "sendrecv" || work.operation == "all_reduce";
  }
  void call() override {
    if (work_->operation == "all_reduce") return all_reduce();
    if (rank_ == 0) send(work_->in.data(), bytes_);
    receive(work_->out.data(), bytes_);
    if (rank_ == 1) send(work_->in.data(), bytes_);
  }
  void stream() override {
    float answer = 0;
    for (std::size_t i = 0; i < work_->window; ++i) {
      if (rank_ == 0) send(work_->in.data(), bytes_);
      if (rank_ == 1) receive(work_->out.data() + i * work_->count, bytes_);
    }
    if (rank_ == 0) receive(&answer, sizeof answer);
    if (rank_ == 1) send(&answer, sizeof answer);
  }

 private:
  void all_reduce() {
    const auto* const from = reinterpret_cast<const char*>(work_->in.data());
    auto* const to = reinterpret_cast<char*>(work_->out.data());
    std::size_t sent = 0;
    std::size_t got = 0;
    while (sent < bytes_ || got < bytes_) {
      if (sent < bytes_) {
        sent += moved(::send(socket_, from + sent, bytes_ - sent, MSG_NOSIGNAL | MSG_DONTWAIT));
      }
      if (got < bytes_) got += moved(::recv(socket_, to + got, bytes_ - got, MSG_DONTWAIT));
    }
    std::transform(work_->in.begin(), work_->in.end(), work_->out.begin(), work_->out.begin(),
                   std::plus());
  }
  /// 0 where nothing could be.
  static std::size_t moved(ssize_t bytes) {
    if (bytes < 0 && errno == EAGAIN) return 0;
    if (bytes <= 0) give_up("moving");
    return static_cast<std::size_t>(bytes);
  }
  void send(const void* data, std::size_t bytes) const {
    for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
      const ssize_t sent = ::send(socket_, at, bytes, MSG_NOSIGNAL);
      if (sent < 0) give_up("send");
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    }
  }
  void receive(void* data, std::size_t bytes) const {
    for (auto* at = static_cast<char*>(data); bytes > 0;) {
      const ssize_t got = ::recv(socket_, at, bytes, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) give_up("recv");
      at += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

  int rank_;
  int socket_;
  Work* work_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Rank 0 listens, rank 1, which is another process from here on, connects.
int connect_two(int& rank) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, any, size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, any, &size) != 0) {
    give_up("listen");
  }
  rank = ::fork() == 0 ? 1 : 0;
  if (rank == 0) return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket, any, size) != 0) give_up("connect");
  return socket;
}

}  // namespace
}  // namespace peers

int main(int count, char** words) {
  int rank = 0;
  const int socket = peers::connect_two(rank);
  peers::Sockets sockets(rank, socket);
  const int status = peers::contest(sockets, count - 1, words + 1);
  if (rank == 0) ::wait(nullptr);
  return status;
}
