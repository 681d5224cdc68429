#include "link/line.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "base/exception.hpp"
#include "base/log.hpp"
#include "link/sockets.hpp"

namespace hocket::link {
namespace {

/// Who takes no more than this behind does not read any more.
constexpr std::size_t unsent_bytes_max = 1 << 20;
/// Before others have their turn.
constexpr int reads_at_once_max = 16;

Status line_broke(int error) {
  return Status(StatusCode::peer_lost, "its connection broke").with_system_error(error);
}

}  // namespace

Line::Line(Reactor& reactor, int socket, LineHost& host)
    : descriptor_(reactor.io(), socket), host_(&host) {}

std::shared_ptr<Line> Line::accept(Reactor& reactor, Fd socket, const Terms& terms,
                                   const Words& words, LineHost& host) {
  auto line = std::shared_ptr<Line>(new Line(reactor, socket.get(), host));
  line->greeting_ = std::make_unique<ListenGreeting>(std::move(socket), terms, words);
  line->await_input();
  return line;
}

Result<std::shared_ptr<Line>> Line::dial(Reactor& reactor, const net::Address& to,
                                         const net::Address& from, const Terms& terms,
                                         const Words& words, std::string hello, LineHost& host) {
  auto socket = begin_connecting(to, from);
  if (!socket.ok()) return socket.status();
  auto line = std::shared_ptr<Line>(new Line(reactor, socket->get(), host));
  line->stage_ = Stage::connecting;
  line->connecting_ = std::move(*socket);
  line->terms_ = &terms;
  line->words_ = words;
  line->to_ = to;
  line->hello_ = std::move(hello);
  line->await(asio::posix::descriptor_base::wait_write);
  return line;
}

void Line::await(asio::posix::descriptor_base::wait_type what) {
  descriptor_.async_wait(what, [self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->go_on();
  });
}

/// Without memory the line ends, and does not stand still.
void Line::go_on() {
  if (stage_ == Stage::closed) return;
  Status status = described([this] {
    Status advanced = advance();
    if (advanced.ok() && stage_ != Stage::closed) await_input();
    return advanced;
  });
  if (!status.ok()) end(status);
}

Status Line::advance() {
  if (stage_ == Stage::connecting) {
    if (Status status = connect(); !status.ok()) return status;
  }
  if (stage_ == Stage::greeting) {
    if (Status status = greet(); !status.ok()) return status;
  }
  return stage_ == Stage::ready ? receive() : Status();
}

Status Line::connect() {
  if (const int error = connect_error(connecting_.get(), to_); error != 0) {
    return Status(error == ECONNREFUSED ? StatusCode::not_found : StatusCode::system_error,
                  "can't connect")
        .with_system_error(error);
  }
  greeting_ =
      std::make_unique<DialGreeting>(std::move(connecting_), *terms_, words_, std::move(hello_));
  stage_ = Stage::greeting;
  return {};
}

Status Line::greet() {
  const auto is_over = greeting_->advance();
  if (!is_over.ok()) return is_over.status();
  return *is_over ? welcome() : Status();
}

Status Line::welcome() {
  if (terms_ != nullptr) {
    const auto& dialled = static_cast<const DialGreeting&>(*greeting_);
    if (Status status = host_->on_answer(*this, dialled.answer()); !status.ok()) return status;
  } else {
    auto& listened = static_cast<ListenGreeting&>(*greeting_);
    const auto answer = host_->on_hello(*this, listened.hello());
    if (!answer.ok()) return answer.status();
    if (stage_ == Stage::closed) return {};
    if (Status status = listened.answer(*answer); !status.ok()) return status;
  }
  if (stage_ == Stage::closed) return {};
  link_ = greeting_->take();
  greeting_.reset();
  stage_ = Stage::ready;
  const std::string surplus = std::exchange(link_.surplus, {});
  if (Status status = transmit(std::exchange(early_, {})); !status.ok()) return status;
  return take(surplus);
}

Status Line::receive() {
  std::array<char, 4096> bytes;
  for (int reads = 0; reads < reads_at_once_max && stage_ == Stage::ready; ++reads) {
    const ssize_t count = ::recv(link_.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) {
      return failure_.ok() ? Status(StatusCode::peer_lost, "its connection ended") : failure_;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Status() : line_broke(errno);
    std::string_view came(bytes.data(), static_cast<std::size_t>(count));
    std::string plain;
    if (link_.tls != nullptr) {
      Status status = link_.tls->receive(came, plain);
      unsent_ += link_.tls->take_output();
      if (!status.ok()) return status;
      came = plain;
    }
    if (Status status = take(came); !status.ok()) return status;
  }
  return {};
}

Status Line::take(std::string_view bytes) {
  incoming_.append(bytes);
  while (stage_ == Stage::ready) {
    const auto frame = incoming_.next();
    if (!frame.ok()) return frame.status();
    if (!*frame) break;
    host_->on_message(*this, (*frame)->message);
  }
  incoming_.compact();
  return {};
}

void Line::send(std::string_view message) {
  if (stage_ == Stage::closed) return;
  frame_.clear();
  const std::size_t start = wire::open_frame(frame_);
  frame_ += message;
  wire::close_frame(frame_, start, 0);
  if (stage_ != Stage::ready) {
    early_ += frame_;
    return;
  }
  Status status = transmit(frame_);
  if (status.ok() || !failure_.ok()) return;
  // It ends when that is noticed, not in the midst of what the caller does.
  failure_ = std::move(status);
  ::shutdown(link_.socket.get(), SHUT_RDWR);
}

Status Line::transmit(std::string_view frames) {
  if (link_.tls == nullptr) {
    unsent_ += frames;
  } else if (!frames.empty()) {
    Status status = link_.tls->send(frames);
    unsent_ += link_.tls->take_output();
    if (!status.ok()) return status;
  }
  return flush();
}

Status Line::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent =
        ::send(link_.socket.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return line_broke(errno);
    if (unsent_.size() > unsent_bytes_max) {
      return Status(StatusCode::limit_exceeded, "it does not read what it is sent");
    }
    if (std::exchange(awaits_output_, true)) return {};
    descriptor_.async_wait(asio::posix::descriptor_base::wait_write,
                           [self = shared_from_this()](const asio::error_code& error) {
                             self->awaits_output_ = false;
                             if (error || self->stage_ != Stage::ready) return;
                             Status status = described([&] { return self->flush(); });
                             if (!status.ok()) self->end(status);
                           });
    return {};
  }
  return {};
}

void Line::end(const Status& why) {
  const auto self = shared_from_this();
  if (stage_ != Stage::closed) {
    const Status told = described([&] {
      host_->on_end(*this, why);
      return Status();
    });
    if (!told.ok()) log::line(log::Level::warning, "control: {}", told.to_string());
  }
  close();
}

void Line::close() noexcept {
  if (std::exchange(stage_, Stage::closed) == Stage::closed) return;
  host_ = nullptr;
  // Before the socket is closed: it is the descriptor of nobody then.
  try {
    if (descriptor_.is_open()) static_cast<void>(descriptor_.release());
  } catch (...) {  // there is nothing to release
  }
  connecting_.reset();
  if (greeting_ != nullptr) link_ = greeting_->take();
  link_ = {};
}

void Line::reset() noexcept {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  static_cast<void>(
      ::setsockopt(link_.socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
  close();
}

}  // namespace hocket::link
