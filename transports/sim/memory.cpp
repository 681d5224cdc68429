#include "transports/sim/memory.hpp"

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"

namespace hocket::simulated {
namespace {

[[nodiscard]] std::span<std::byte> span_of(const MemoryPart& part) noexcept {
  return {part.data, static_cast<std::size_t>(part.bytes)};
}

/// What is contiguous behind an offset.
[[nodiscard]] std::span<std::byte> behind(const Memory& memory, std::uint64_t offset) noexcept {
  if (offset < memory.first.bytes) return span_of(memory.first).subspan(offset);
  return span_of(memory.rest).subspan(offset - memory.first.bytes);
}

[[nodiscard]] std::uint64_t print_of(std::span<const std::byte> memory,
                                     std::uint64_t print) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::size_t i = 0;
  for (; i + 8 <= memory.size(); i += 8) {
    print = (print ^ load_little_endian<std::uint64_t>(&memory[i])) * odd;
    print ^= print >> 32;
  }
  for (; i < memory.size(); ++i) print = (print ^ std::to_integer<std::uint64_t>(memory[i])) * odd;
  return print ^ print >> 29;
}

}  // namespace

void poison(std::span<std::byte> memory, SeededRandom& random) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= memory.size(); i += 8) store_little_endian(&memory[i], random.next());
  for (; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(random.next());
}

std::uint64_t Memory::print() const noexcept {
  return print_of(span_of(rest), print_of(span_of(first), bytes()));
}

void Memory::poison(SeededRandom& random) const noexcept {
  simulated::poison(span_of(first), random);
  simulated::poison(span_of(rest), random);
}

void copy(const Memory& from, const Memory& to, std::uint64_t offset,
          std::uint64_t bytes) noexcept {
  while (bytes > 0) {
    const std::span<std::byte> source = behind(from, offset);
    const std::span<std::byte> target = behind(to, offset);
    const std::size_t now = std::min({source.size(), target.size(), std::size_t{bytes}});
    std::memmove(target.data(), source.data(),
                 now);  // a program's fault, and found, if they overlap
    offset += now;
    bytes -= now;
  }
}

}  // namespace hocket::simulated
