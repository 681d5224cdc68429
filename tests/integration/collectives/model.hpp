// A collective operation as all ranks of a test know it: what each rank gives, and what it must
// get, worked out by one rank alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hocket/hocket.hpp"

#include "support/reference.hpp"

namespace hocket::testing {

struct Model {
  CollectiveKind kind = CollectiveKind::barrier;
  DataType type = DataType::u8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;
  /// Elements of each rank's part where parts differ; of all_to_all from each rank, for each.
  std::vector<std::size_t> counts = {};
  int root = 0;
  bool is_in_place = false;
  /// Floats whose sums are not exact: only near the expected ones, and the same on all ranks.
  bool is_rough = false;
  std::uint64_t number = 0;  // of the case: its values follow from it
  std::size_t size = 1;      // ranks

  [[nodiscard]] std::string text() const;

  [[nodiscard]] bool reduces() const;
  [[nodiscard]] bool is_uneven() const { return !counts.empty(); }
  [[nodiscard]] double factor() const;  // of premul_sum
  /// Elements of a rank's part, and of the parts before it.
  [[nodiscard]] std::size_t part(std::size_t rank) const;
  [[nodiscard]] std::size_t before(std::size_t rank) const;
  /// Of all_to_all.
  [[nodiscard]] std::size_t part_between(std::size_t from, std::size_t to) const;
  [[nodiscard]] std::size_t in_elements(std::size_t rank) const;
  [[nodiscard]] std::size_t out_elements(std::size_t rank) const;

  [[nodiscard]] Bytes contribution(std::size_t rank) const;
  [[nodiscard]] Bytes expected(std::size_t rank) const;
  /// Whether what a rank has got is right; `wanted` is expected().
  [[nodiscard]] bool is_right(const Bytes& got, const Bytes& wanted) const;
};

/// Exclusive or of the bytes: an op of the caller's own.
void custom_xor(void* context, void* out, const void* a, const void* b, std::size_t count,
                DataType type);

/// Whether docs/numerics.md defines it, factors and the caller's own op included.
[[nodiscard]] bool is_possible(CollectiveKind kind, DataType type, ReduceOp op);

}  // namespace hocket::testing
