// A connection to a server that PyTorch's TCPStore runs, such as that of torchrun (docs/wire.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "net/endpoint.hpp"
#include "store/torch_code.hpp"

namespace hocket::bridge {

class TorchLine {
 public:
  /// Tries again until the server is there or the deadline has passed. Finds out whether the server
  /// is of PyTorch 1.13.
  [[nodiscard]] static Result<TorchLine> open(const net::Endpoint& server, Deadline deadline);

  [[nodiscard]] bool is_torch_1() const noexcept { return is_torch_1_; }

  // Each of these fails if the connection is lost or the deadline has passed; then the connection
  // can't be used any more.
  /// Sends a call.
  [[nodiscard]] Status say(store::TorchCode code, std::string_view fields, Deadline deadline);
  /// Returns the next bytes of an answer.
  [[nodiscard]] Result<std::string> hear(std::size_t bytes, Deadline deadline);
  [[nodiscard]] Result<std::int64_t> hear_number(Deadline deadline);
  /// Returns bytes that follow their length.
  [[nodiscard]] Result<std::string> hear_value(Deadline deadline);

 private:
  TorchLine(Fd socket, bool is_torch_1) noexcept
      : socket_(std::move(socket)), is_torch_1_(is_torch_1) {}

  [[nodiscard]] static Result<TorchLine> try_once(const net::Endpoint& server, bool is_torch_1,
                                                  Deadline deadline);
  [[nodiscard]] Status greet(Deadline deadline);

  Fd socket_;
  bool is_torch_1_;
};

}  // namespace hocket::bridge
