// Whether the steps of one rank that touch the same memory wait for each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/cell_map.hpp"
#include "plan/plan.hpp"

namespace hocket::proof {

/// Who touched each cell, and whether later steps wait for them.
class Races {
 public:
  /// Of a plan whose steps are what they must be, each taken for itself. Forgets the plan before,
  /// and keeps the memory.
  void start(const plan::Plan& plan);
  /// Of the steps in their order.
  [[nodiscard]] Status check(std::uint32_t number);

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  struct Touched {
    std::uint32_t writer = nobody;
    std::uint32_t reader = nobody;   // the last one since then
    std::uint32_t earlier = nobody;  // readers since then, but for the last: a place in readers_

    friend bool operator==(const Touched&, const Touched&) = default;
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t earlier;
  };

  [[nodiscard]] static bool is_shifted(const plan::CellRuns& source,
                                       const plan::CellRuns& target) noexcept;
  [[nodiscard]] Status check_runs(const plan::Step& step);
  // Each gives a step that touched the cell before and that this one does not wait for.
  [[nodiscard]] std::uint32_t read(std::uint32_t at);
  [[nodiscard]] std::uint32_t write(std::uint32_t at);
  // The same of all cells of a run.
  [[nodiscard]] std::uint32_t read_run(const plan::CellRun& run);
  [[nodiscard]] std::uint32_t write_run(const plan::CellRun& run);
  [[nodiscard]] Status race_with(std::uint32_t other) const;

  void begin(std::uint32_t number, std::span<const std::uint32_t> awaited);
  [[nodiscard]] bool waits(std::uint32_t earlier) {
    return earlier == step_ || reached_by_[earlier] == step_ || waits_through_others(earlier);
  }
  [[nodiscard]] bool waits_through_others(std::uint32_t earlier);
  void reach(std::span<const std::uint32_t> steps);

  const plan::Plan* plan_ = nullptr;
  plan::CellMap cells_ = {{}, {}, 0, false};
  std::uint32_t step_ = nobody;            // the one that all questions are about
  std::uint32_t joint_ = nobody;           // the last one that waits for all before it
  bool is_search_begun_ = false;           // for those that it waits for through others
  std::vector<std::uint32_t> reached_by_;  // by step: the last that was found to wait for it
  std::vector<std::uint32_t> reached_;     // those that this one waits for; a heap
  std::vector<Reader> readers_;
  std::vector<Touched> touched_;
};

}  // namespace hocket::proof
