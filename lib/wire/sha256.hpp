// SHA-256 (FIPS 180-4) and HMAC (RFC 2104). Our own, because libcrypto would cost every rank of a
// job its start-up time and memory for two short messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hocket::wire {

inline constexpr std::size_t digest_bytes = 32;
using Digest = std::array<std::byte, digest_bytes>;

/// The hash of all that was handed to update. Used once: nothing after finish.
class Sha256 {
 public:
  void update(std::string_view bytes) noexcept;
  [[nodiscard]] Digest finish() noexcept;

 private:
  static constexpr std::size_t block_bytes = 64;
  void add_block(const char* block) noexcept;

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t bytes_ = 0;
  std::array<char, block_bytes> partial_;  // bytes_ % block_bytes of it hold what awaits its block
};

[[nodiscard]] Digest sha256(std::string_view message) noexcept;
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view message) noexcept;

/// Takes as long wherever they differ, so that nobody can guess a proof byte by byte. Lengths are
/// no secret.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

}  // namespace hocket::wire
