// Randomness of the system, fit for secrets and nonces.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hocket {

/// Fills `to`. Any thread; waits only while the machine has just been switched on. A system that
/// gives no randomness ends the process: there is nothing safe to do instead.
void random_bytes(std::span<std::byte> to) noexcept;

/// So many random bytes, each as two digits 0-9a-f.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace hocket
