// Element-wise operations on vectors of integers. Compiled once for each instruction set.
#if defined(HOCKET_REDUCE_INTEGER_OPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_REDUCE_INTEGER_OPS_INL
#undef HOCKET_REDUCE_INTEGER_OPS_INL
#else
#define HOCKET_REDUCE_INTEGER_OPS_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct IntegerSum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

/// The low half of each product, of unsigned lanes.
struct IntegerProduct {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
      return product_of_bytes(d, a, b);
    } else if constexpr (sizeof(hn::TFromD<D>) == 8) {
      return product_of_words(d, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  /// Vectors multiply lanes of 16 bits: the even bytes in their low half, the odd ones moved there.
  template <class D, class V>
  static HWY_INLINE V product_of_bytes(D d, V a, V b) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(d, static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
    } else {
      const hn::RepartitionToWide<D> wide;
      const auto wide_a = hn::BitCast(wide, a);
      const auto wide_b = hn::BitCast(wide, b);
      const auto even = hn::Mul(wide_a, wide_b);
      const auto odd = hn::Mul(hn::ShiftRight<8>(wide_a), hn::ShiftRight<8>(wide_b));
      return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<8>(odd)), hn::BitCast(d, even));
    }
  }

  /// With a = ah:al and b = bh:bl the low half is al·bl + ((al·bh + ah·bl) << 32).
  template <class D, class V>
  static HWY_INLINE V product_of_words(D d, V a, V b) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(d, hn::GetLane(a) * hn::GetLane(b));
    } else {
      const hn::RepartitionToNarrow<D> narrow;
      const auto narrow_a = hn::BitCast(narrow, a);
      const auto narrow_b = hn::BitCast(narrow, b);
      const auto crossed = hn::BitCast(d, hn::Mul(narrow_a, hn::Reverse2(narrow, narrow_b)));
      const auto cross_sum = hn::Add(crossed, hn::ShiftRight<32>(crossed));
      return hn::Add(hn::MulEven(narrow_a, narrow_b), hn::ShiftLeft<32>(cross_sum));
    }
  }
};

struct IntegerMin {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Min(a, b);
  }
};

struct IntegerMax {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Max(a, b);
  }
};

struct BitAnd {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Or(a, b);
  }
};

struct BitXor {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Xor(a, b);
  }
};

/// 1 where v is not zero, else 0.
template <class D, class V>
HWY_INLINE V truth(D d, V v) {
  return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), hn::Set(d, 1));
}

struct LogicalAnd {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return truth(d, hn::Min(a, b));  // of unsigned lanes: 0 if either is
  }
};

struct LogicalOr {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return truth(d, hn::Or(a, b));
  }
};

struct LogicalXor {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return hn::Xor(truth(d, a), truth(d, b));
  }
};

}  // namespace hocket::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
