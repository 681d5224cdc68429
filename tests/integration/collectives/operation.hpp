// One rank's part of a collective operation: its memory, which notices every byte that is written
// where it must not be, and whether it got what it should.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hocket/hocket.hpp"

#include "integration/collectives/model.hpp"

namespace hocket::testing {

/// How an operation is begun; ranks need not agree on it.
enum class Way : std::uint8_t { run, start, run_prepared, start_prepared };
inline constexpr std::size_t ways = 4;

/// Stays where it is from begin() to end().
class Operation {
 public:
  Operation(Model model, std::size_t rank);

  /// Writes the values anew and poisons what is to be overwritten.
  void fill();
  [[nodiscard]] Collective collective();
  void begin(Communicator& communicator, Way way);
  [[nodiscard]] Work& work() { return work_; }
  /// Waits. What is wrong; empty when all is well.
  [[nodiscard]] std::string end();
  /// What is wrong with the memory of an operation that is over.
  [[nodiscard]] std::string check() const;

  [[nodiscard]] const Model& model() const { return model_; }
  /// Of the output.
  [[nodiscard]] std::uint64_t hash() const;

 private:
  [[nodiscard]] Bytes output() const;

  Model model_;
  std::size_t rank_;
  std::size_t in_at_ = 0;
  std::size_t out_at_ = 0;
  std::size_t in_bytes_ = 0;
  std::size_t out_bytes_ = 0;
  Bytes memory_;  // with guards around all
  Bytes before_;  // what it was when the operation began
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> counts_from_;
  std::optional<Prepared> prepared_;
  Work work_;
};

}  // namespace hocket::testing
