// One connection of several over which a channel goes: carries frames, which are pieces of messages
// or words about what has come. Reads all that comes, so that words never wait behind messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "transports/tcp/connection.hpp"
#include "transports/tcp/queue.hpp"

namespace hocket::tcp {

class Bundle;

inline constexpr std::size_t frame_header_bytes = 64;
inline constexpr std::size_t frame_bytes_max = 64 << 10;

/// On the wire: the mark and the kind 4, bytes 4, and the seven others 8 each, in this order.
struct Frame {
  enum class Kind : std::uint8_t {
    piece,     // of a message: its bytes follow
    word,      // of what has come
    question,  // to be answered on the same connection
    closed,    // nothing comes behind this: the channel is closed for the reason in `tag`,
    left,      // or the rank ends
    lost,      // a connection of this number is out of use
    count,
  };
  using Header = std::array<std::byte, frame_header_bytes>;

  Kind kind = Kind::piece;
  std::uint32_t bytes = 0;
  std::uint64_t number = 0;   // of a piece; of last words: behind the last piece
  std::uint64_t arrived = 0;  // all the other end's pieces below this number have come
  std::uint64_t taken = 0;    // so many of its bytes, with headers, are in the memory of receives
  std::uint64_t message = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // of the message
  std::uint64_t tag = 0;     // likewise

  [[nodiscard]] std::uint64_t cost() const noexcept { return frame_header_bytes + bytes; }
  [[nodiscard]] Header encode() const noexcept;
  /// Of kind `count` if it is no frame.
  [[nodiscard]] static Frame decode(const Header& header) noexcept;
};

class Rail final : public Connection {
 public:
  Rail(Bundle& of, Queues& queues) : Connection(Role::rail), bundle(of), queues_(queues) {}

  void adopt(link::Link link);
  /// Both ends' addresses.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  [[nodiscard]] bool is_readable() const noexcept { return is_linked() && is_readable_; }
  [[nodiscard]] bool is_writable() const noexcept { return is_linked() && is_writable_; }
  /// Moves what one call of the system can. A failure is final: peer_lost of this connection,
  /// anything else of the channel.
  [[nodiscard]] Status receive(Scratch& scratch);

  /// A frame is on its way.
  [[nodiscard]] bool is_sending() const noexcept {
    return sent_ < out_.cost() || !encrypted_.empty();
  }
  /// That piece is, and its message's memory is needed for it.
  [[nodiscard]] bool is_sending(std::uint64_t number) const noexcept {
    return sent_ < out_.cost() && out_.kind == Frame::Kind::piece && out_.number == number;
  }
  /// How many microseconds a piece would take to come if it were given to this rail now, as the
  /// system knows the connection.
  [[nodiscard]] double piece_time() const noexcept;
  /// While none is.
  void begin(const Frame& frame);
  /// If it fails, nothing can be sent any more; what can be read tells why.
  void send() noexcept;
  /// Says last words if no frame is half sent, and gives the connection away.
  [[nodiscard]] Fd leave(const Frame& last) noexcept;

  // For the bundle.
  Bundle& bundle;
  bool is_out = false;       // lost, or never made
  bool is_ending = false;    // has heard last words
  bool owes_answer = false;  // to a question
  bool asks = false;         // has one
  bool is_spared = false;    // pieces come sooner on others, until something is heard
  bool has_heard = false;    // anything since the last tick
  int silent_ticks = 0;

 private:
  enum class Place : std::uint8_t { receive, aside, nowhere };

  [[nodiscard]] Status lost(std::string_view how, int error = 0) const override {
    return Status(StatusCode::peer_lost, std::string(how)).with_system_error(error);
  }
  [[nodiscard]] Status take(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status open_frame();
  [[nodiscard]] Status close_frame();
  /// Calls visit(data, bytes) for where the rest of the piece goes, up to so many bytes of it.
  template <class Visit>
  void visit_place(std::uint64_t bytes, Visit visit);
  [[nodiscard]] ssize_t send_plain() noexcept;

  Queues& queues_;
  std::string name_ = {};

  Frame::Header header_ = {};  // of what comes
  std::size_t header_got_ = 0;
  Frame in_ = {};
  bool is_open_ = false;  // the header is there
  Place place_ = Place::nowhere;
  std::uint64_t got_ = 0;
  std::vector<std::byte> aside_ = {};  // for a receive that is not posted yet

  Frame out_ = {};
  Frame::Header out_header_ = {};
  std::uint64_t sent_ = frame_header_bytes;
};

}  // namespace hocket::tcp
