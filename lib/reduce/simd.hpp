// Highway, set up for our kernels: three widths on x86 and one on Arm, and plain scalar code where
// none of them can run. Vectors whose length is known only at run time (SVE, RVV) are left out.
#pragma once

#ifdef HWY_HIGHWAY_PER_TARGET
#error "include reduce/simd.hpp before any header of Highway"
#endif

#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#include <hwy/targets.h>

namespace hocket::reduce {

/// The place of a target in the table that HWY_EXPORT makes in the calling source file. A build for
/// one target alone (-march=native, Arm) has tables of one entry.
inline std::size_t table_index(long long target) {
  constexpr bool has_one_target = (HWY_TARGETS & (HWY_TARGETS - 1)) == 0;
  if constexpr (has_one_target) return 0;
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex();
}

}  // namespace hocket::reduce
