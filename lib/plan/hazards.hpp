// Which earlier steps a step must wait for, because it reads what they write or writes what they
// read or write.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/cell_map.hpp"
#include "plan/marks.hpp"
#include "plan/plan.hpp"

namespace hocket::plan {

/// Follows the steps of one rank, in their order. Time grows with the steps and the stretches that
/// they cut the memory into, not with the blocks, of which each costs a bit to forget.
class Hazards {
 public:
  explicit Hazards(const CellMap& cells) { restart(cells); }
  /// Forgets all steps, and keeps the memory. The next one has that number.
  void restart(const CellMap& cells, std::uint32_t step = 0);

  /// Notes what the step, the next one, reads and writes, and appends those that it must wait for,
  /// in rising order.
  void add(const Step& step, std::vector<std::uint32_t>& awaited);

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  /// From its first cell to that of the next one: who touched it last.
  struct Stretch {
    std::uint32_t writer;
    std::uint32_t reader;   // the last one since then
    std::uint32_t earlier;  // readers since then, but for the last: a place in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t earlier;
  };

  void read(const Range& range, std::vector<std::uint32_t>& awaited);
  void write(const Range& range, std::vector<std::uint32_t>& awaited);
  void read(Stretch& stretch, std::vector<std::uint32_t>& awaited);
  void write(Stretch& stretch, std::vector<std::uint32_t>& awaited);
  /// The stretch that the range is, if that is one cell, as in most steps; else null.
  [[nodiscard]] Stretch* single(const Range& range) noexcept;
  /// Calls visit(first cell, stretch) for the stretches that the range is cut into; 0 for the first
  /// one of a run.
  template <class Visit>
  void visit(const Range& range, Visit visit);
  /// A stretch begins there from now on.
  void cut(std::uint32_t at);
  /// For all copies of the vector as far as that of the cell.
  void make_room(std::uint32_t cell);

  CellMap cells_ = {{}, {}, 0, false};
  std::uint32_t cell_count_ = 0;
  Marks begins_;                          // of stretches
  std::unique_ptr<Stretch[]> stretches_;  // by first cell
  std::uint32_t room_ = 0;                // for stretches
  std::vector<Reader> readers_;
  std::uint32_t step_ = 0;
};

}  // namespace hocket::plan
