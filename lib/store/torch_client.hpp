// The server's view of a client that speaks the protocol of PyTorch's TCPStore (docs/wire.md):
// takes its calls apart and writes the answers. A state machine without clock, thread or socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "store/message.hpp"
#include "store/torch_code.hpp"

namespace hocket::store {

struct TorchCall {
  enum class Answer : std::uint8_t {
    none,
    value,    // empty if the key is missing
    swapped,  // the value after compare_set; what was expected, if the key is missing
    number,
    is_absent,  // one byte: 0 if all keys are there, else 1
    done,       // one byte: 0
    popped,     // the length of the queue, and its first element if there is one
    keys,
    cancelled,  // one byte: 1
    echo,       // the nonce
  };

  Answer answer = Answer::none;
  /// What to ask of the store, in this order. Each reply gets an answer.
  std::vector<Request> requests = {};
  std::string expected = {};
  std::uint32_t nonce = 0;
  std::size_t bytes = 0;  // of memory, about
};

/// The bytes of an answer: what is written for it, and then a value of the store, if there is one.
struct TorchAnswer {
  std::string head = {};
  Value value = {};
};

/// Fails if the protocol can't express the answer; the connection must end then.
[[nodiscard]] Result<TorchAnswer> make_answer(const TorchCall& call, const Reply& reply);

class TorchClient {
 public:
  /// Whether a client that starts with this byte speaks this protocol. Hocket's own clients start
  /// with another.
  [[nodiscard]] static bool starts_with(char first) noexcept;

  void append(std::string_view bytes);
  /// Gives back memory that a large call needed.
  void compact();
  /// Received bytes of calls that next() has not returned yet.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size() - start_; }

  /// Returns the next call once it is complete. Fails if it can't be served.
  [[nodiscard]] Result<std::optional<TorchCall>> next();

 private:
  // PyTorch 1.13 numbers its calls differently from 2.0 and later, and sends no greeting.
  enum class Dialect : std::uint8_t { unknown, torch_1, torch_2 };

  [[nodiscard]] std::string_view rest() const noexcept {
    return std::string_view(bytes_).substr(start_);
  }
  /// Returns whether the dialect is known.
  bool take_greeting() noexcept;
  /// Finds the end of the next call, as far as it has come: then is_whole_ is set. Goes on where it
  /// stopped, so that the number of pieces in which a call comes does not matter.
  [[nodiscard]] Status measure();
  [[nodiscard]] Status begin_to_measure();

  std::string bytes_;
  std::size_t start_ = 0;  // what is before it has been returned

  // Of the next call.
  std::optional<TorchCode> code_;
  bool is_counted_ = false;       // texts_left_ is known
  std::uint64_t texts_left_ = 0;  // that are not measured yet
  std::size_t measured_ = 0;      // its bytes, from the first on
  bool is_whole_ = false;

  Dialect dialect_ = Dialect::unknown;
};

}  // namespace hocket::store
