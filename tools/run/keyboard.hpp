// What is typed on the terminal, on its way from the guardian to its worker: the worker is no
// process of the foreground and may not read it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <poll.h>

#include "base/fd.hpp"

namespace hocket::run {

/// Does nothing where stdin is no terminal, and leaves that alone while the launcher itself is in
/// the background.
class Keyboard {
 public:
  /// Where stdin is a terminal, makes a pipe of it for the worker.
  Keyboard();

  void hand_to_worker();
  /// In the guardian, after the fork. Then a worker that is gone shows as a broken pipe.
  void keep() { for_worker_.reset(); }

  [[nodiscard]] pollfd wanted() const;
  void ready();

 private:
  [[nodiscard]] std::string_view pending() const {
    return std::string_view(typed_.data(), end_).substr(begin_);
  }

  Fd for_worker_;
  Fd to_worker_;
  std::array<char, 4096> typed_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace hocket::run
