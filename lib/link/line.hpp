// A connection of the control plane, from the first packet on: dialled or accepted, greeted, and
// then messages of any length both ways. Lives on the reactor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <asio/posix/stream_descriptor.hpp>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "link/greeting.hpp"
#include "link/reactor.hpp"
#include "net/socket.hpp"
#include "wire/frame.hpp"

namespace hocket::link {

class Line;

/// Whoever has lines. May close them meanwhile.
class LineHost {
 public:
  LineHost() = default;
  LineHost(const LineHost&) = delete;
  LineHost& operator=(const LineHost&) = delete;
  virtual ~LineHost() = default;

  /// One who dialled us and has proved who it is says this. Gives the answer, behind which the line
  /// is ready; a failure ends it.
  [[nodiscard]] virtual Result<std::string> on_hello(Line& line, std::string_view hello) = 0;
  /// The line that we dialled is ready, as far as this answer does not say otherwise.
  [[nodiscard]] virtual Status on_answer(Line& line, std::string_view answer) = 0;
  virtual void on_message(Line& line, std::string_view message) = 0;
  /// It has ended, not by close().
  virtual void on_end(Line& line, const Status& why) = 0;
};

class Line : public std::enable_shared_from_this<Line> {
 public:
  static constexpr std::size_t message_bytes_max = 64 << 10;

  /// Of one who dialled us. Borrows the terms and the host until it is closed.
  [[nodiscard]] static std::shared_ptr<Line> accept(Reactor& reactor, Fd socket, const Terms& terms,
                                                    const Words& words, LineHost& host);
  /// Begins to dial; fails where not even that can be done. As long as the host wants to wait.
  [[nodiscard]] static Result<std::shared_ptr<Line>> dial(Reactor& reactor, const net::Address& to,
                                                          const net::Address& from,
                                                          const Terms& terms, const Words& words,
                                                          std::string hello, LineHost& host);
  ~Line() { close(); }

  /// Sends what it can at once, and the rest later; before the line is ready, when it is.
  void send(std::string_view message);
  /// Behind what was sent, as far as it can go without waiting. The host hears no more of it.
  void close() noexcept;
  /// The other end learns of it even if it acknowledges nothing; what it has not got is lost.
  void reset() noexcept;

  [[nodiscard]] bool is_ready() const noexcept { return stage_ == Stage::ready; }

 private:
  enum class Stage : std::uint8_t { connecting, greeting, ready, closed };

  Line(Reactor& reactor, int socket, LineHost& host);

  void await(asio::posix::descriptor_base::wait_type what);
  void await_input() { await(asio::posix::descriptor_base::wait_read); }
  void go_on();
  [[nodiscard]] Status advance();
  [[nodiscard]] Status connect();
  [[nodiscard]] Status greet();
  [[nodiscard]] Status welcome();
  [[nodiscard]] Status receive();
  [[nodiscard]] Status take(std::string_view bytes);
  [[nodiscard]] Status transmit(std::string_view frames);
  [[nodiscard]] Status flush();
  void end(const Status& why);

  asio::posix::stream_descriptor descriptor_;
  LineHost* host_;
  Stage stage_ = Stage::greeting;
  bool awaits_output_ = false;
  // Who owns the socket: the first of these that is there.
  Fd connecting_ = {};
  std::unique_ptr<Greeting> greeting_ = {};
  Link link_ = {};
  // Of one that we dial.
  const Terms* terms_ = nullptr;
  Words words_ = {};
  net::Address to_ = {};
  std::string hello_ = {};

  wire::FrameBuffer incoming_{message_bytes_max};
  std::string frame_ = {};  // that is being made; kept, so that to send one takes no memory
  std::string early_ = {};  // frames to be sent once it is ready
  std::string unsent_ = {};
  Status failure_ = {};  // of a send, which ends it when that is next looked at
};

}  // namespace hocket::link
