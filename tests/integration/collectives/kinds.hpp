// What the kinds of collective operations have.
#pragma once

#include "hocket/collective.hpp"

namespace hocket::testing {

[[nodiscard]] constexpr bool has_root(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

[[nodiscard]] constexpr bool reduces(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scan ||
         kind == CollectiveKind::exscan;
}

}  // namespace hocket::testing
