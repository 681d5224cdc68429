// What the kinds of collective operations of the API are to plans.
#pragma once

#include "hocket/collective.hpp"

#include "plan/problem.hpp"

namespace hocket::comm {

// In the same order.
static_assert(static_cast<int>(CollectiveKind::all_reduce) ==
              static_cast<int>(plan::Operation::all_reduce));
static_assert(static_cast<int>(CollectiveKind::broadcast) ==
              static_cast<int>(plan::Operation::broadcast));
static_assert(static_cast<int>(CollectiveKind::all_to_all) ==
              static_cast<int>(plan::Operation::all_to_all));
static_assert(static_cast<int>(CollectiveKind::barrier) ==
              static_cast<int>(plan::Operation::barrier));
static_assert(static_cast<int>(CollectiveKind::exscan) ==
              static_cast<int>(plan::Operation::exscan));

/// Of a kind that there is.
[[nodiscard]] constexpr plan::Operation operation_of(CollectiveKind kind) noexcept {
  return static_cast<plan::Operation>(kind);
}

[[nodiscard]] constexpr bool is_known(CollectiveKind kind) noexcept {
  return kind >= CollectiveKind::all_reduce && kind <= CollectiveKind::exscan;
}

/// Whether ranks have parts of the whole, and `count` is of one.
[[nodiscard]] constexpr bool has_parts(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::gather || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::all_to_all;
}

}  // namespace hocket::comm
