// Which earlier steps a step must wait for, because it reads what they write or writes what they
// read or write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/cells.hpp"
#include "plan/plan.hpp"

namespace hocket::plan {

/// Follows the steps of one rank, in their order. Memory and time grow with the steps and the
/// stretches that they cut the memory into, not with the blocks.
class Hazards {
 public:
  explicit Hazards(const Cells& cells) : cells_(cells) {}

  /// Notes what the step, the next one, reads and writes; gives those that it must wait for, in
  /// rising order. Valid until the next call.
  [[nodiscard]] std::span<const std::uint32_t> add(const Step& step);

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  /// From its first cell to that of the next one: who touched it last.
  struct Stretch {
    std::uint32_t begin = 0;
    std::uint32_t writer = nobody;
    std::uint32_t readers = nobody;  // since then; the last of them, a place in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t earlier;
  };
  struct Region {
    std::vector<Stretch> stretches = std::vector<Stretch>(1);
    std::size_t latest = 0;  // of them that was cut

    /// The stretch that begins there from now on.
    [[nodiscard]] std::size_t cut(std::uint32_t at);
    /// The stretch that the cell is in.
    [[nodiscard]] std::size_t find(std::uint32_t at) const noexcept;
  };

  void read(Cells::Run run);
  void write(Cells::Run run);
  void note(std::uint32_t step);

  Cells cells_;
  std::array<Region, Cells::region_count> regions_;
  std::vector<Reader> readers_;
  std::vector<std::uint32_t> noted_by_;  // by step: the last one that waits for it
  std::vector<std::uint32_t> before_;
  std::uint32_t step_ = 0;
};

}  // namespace hocket::plan
