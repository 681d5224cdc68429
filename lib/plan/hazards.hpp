// Which earlier steps a step must wait for, because it reads what they write or writes what they
// read or write.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/plan.hpp"

namespace hocket::plan {

/// Follows the steps of one rank, in their order. Memory and time grow with the steps and the ranges
/// that they cut the buffers into, not with the blocks.
class Hazards {
 public:
  Hazards(const Problem& problem, const Shape& shape, int rank)
      : problem_(problem), shape_(shape), rank_(rank) {}

  /// Notes what the step, the next one, reads and writes; gives those that it must wait for, each
  /// once and without such as others of them wait for anyway.
  [[nodiscard]] std::vector<std::uint32_t> add(const Step& step);

 private:
  /// Who used a stretch of memory last: from its key to the next one's.
  struct Use {
    std::uint32_t writer = nobody;
    std::vector<std::uint32_t> readers = {};  // since then
  };
  using Uses = std::map<std::uint32_t, Use>;
  static constexpr std::uint32_t nobody = UINT32_MAX;

  struct Stretch {
    Uses& uses;
    std::uint32_t begin;
    std::uint32_t end;
  };
  void read(Stretch stretch, std::uint32_t step, std::vector<std::uint32_t>& before);
  void write(Stretch stretch, std::uint32_t step, std::vector<std::uint32_t>& before);
  template <class Visit>
  void visit_stretches(const Range& range, Visit visit);
  [[nodiscard]] Stretch stretch_of(const Range& part);
  static Uses::iterator cut(Uses& uses, std::uint32_t at);

  Problem problem_;
  Shape shape_;
  int rank_;
  std::uint32_t next_ = 0;
  Uses vector_;   // in and out, which may be the same memory
  Uses apart_;    // out, where it may not
  Uses scratch_;
};

}  // namespace hocket::plan
