// A file descriptor with an owner.
#pragma once

#include <utility>

#include <unistd.h>

namespace hocket {

/// Closes its descriptor; -1 for none.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int descriptor) noexcept : descriptor_(descriptor) {}
  Fd(Fd&& other) noexcept : descriptor_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

  void reset(int descriptor = -1) noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = descriptor;
  }

 private:
  int descriptor_ = -1;
};

}  // namespace hocket
