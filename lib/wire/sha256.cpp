#include "wire/sha256.hpp"

#include <algorithm>
#include <bit>
#include <concepts>

#include "base/bytes.hpp"

namespace hocket::wire {
namespace {

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// little_endian(reverse_bytes(x)) is big-endian on every machine.
std::uint32_t load_big_endian(const char* from) noexcept {
  return reverse_bytes(load_little_endian<std::uint32_t>(reinterpret_cast<const std::byte*>(from)));
}
template <std::unsigned_integral T>
void store_big_endian(std::byte* to, T value) noexcept {
  store_little_endian(to, reverse_bytes(value));
}

/// The block's sixteen words and the 48 that are mixed from them.
std::array<std::uint32_t, 64> message_schedule(const char* block) noexcept {
  std::array<std::uint32_t, 64> words;
  for (std::size_t i = 0; i < 16; ++i) words[i] = load_big_endian(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = words[i - 15];
    const std::uint32_t b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  return words;
}

}  // namespace

void Sha256::add_block(const char* block) noexcept {
  const auto words = message_schedule(block);
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                choice + round_constants[i] + words[i];
    const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const std::array<std::uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += mixed[i];
}

void Sha256::update(std::string_view bytes) noexcept {
  const std::size_t held = bytes_ % block_bytes;
  bytes_ += bytes.size();
  if (held > 0) {
    const std::size_t count = std::min(bytes.size(), block_bytes - held);
    std::copy_n(bytes.data(), count, partial_.data() + held);
    bytes.remove_prefix(count);
    if (held + count < block_bytes) return;
    add_block(partial_.data());
  }
  for (; bytes.size() >= block_bytes; bytes.remove_prefix(block_bytes)) add_block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), partial_.begin());
}

Digest Sha256::finish() noexcept {
  std::array<std::byte, 8> bits;
  store_big_endian(bits.data(), 8 * bytes_);
  // One bit, then zeros up to where the length fills the last block.
  static constexpr std::array<char, block_bytes> padding = {'\x80'};
  const std::size_t held = (bytes_ + bits.size()) % block_bytes;
  update({padding.data(), block_bytes - held});
  update(as_text(bits));
  Digest digest;
  for (std::size_t i = 0; i < 8; ++i) store_big_endian(digest.data() + 4 * i, state_[i]);
  return digest;
}

Digest sha256(std::string_view message) noexcept {
  Sha256 hash;
  hash.update(message);
  return hash.finish();
}

Digest hmac_sha256(std::string_view key, std::string_view message) noexcept {
  constexpr std::size_t block_bytes = 64;
  std::array<char, block_bytes> inner{};
  const Digest short_key = key.size() > block_bytes ? sha256(key) : Digest{};
  if (key.size() > block_bytes) key = as_text(short_key);
  std::copy(key.begin(), key.end(), inner.begin());
  std::array<char, block_bytes> outer = inner;
  for (char& each : inner) each = static_cast<char>(each ^ 0x36);
  for (char& each : outer) each = static_cast<char>(each ^ 0x5c);

  Sha256 hash;
  hash.update({inner.data(), inner.size()});
  hash.update(message);
  const Digest inner_digest = hash.finish();
  Sha256 outer_hash;
  outer_hash.update({outer.data(), outer.size()});
  outer_hash.update(as_text(inner_digest));
  return outer_hash.finish();
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
    asm volatile("" : "+r"(difference));  // or the compiler may leave the loop early
  }
  return difference == 0;
}

}  // namespace hocket::wire
