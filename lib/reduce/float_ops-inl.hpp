// Element-wise operations on vectors of f32 and f64. Compiled once for each instruction set.
//
// The bits of a result never depend on the order of the operands or on the instruction set, so that
// ranks that combine the same contributions the other way round still agree: every NaN becomes the
// one quiet NaN, and in min and max -0 is less than +0.
#if defined(HOCKET_REDUCE_FLOAT_OPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_REDUCE_FLOAT_OPS_INL
#undef HOCKET_REDUCE_FLOAT_OPS_INL
#else
#define HOCKET_REDUCE_FLOAT_OPS_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> quiet_nan(D d) {
  const hn::RebindToUnsigned<D> bits;
  using Bits = hn::TFromD<hn::RebindToUnsigned<D>>;
  constexpr Bits pattern = static_cast<Bits>(sizeof(Bits) == 4 ? 0x7fc00000 : 0x7ff8000000000000);
  return hn::BitCast(d, hn::Set(bits, pattern));
}

template <class D, class V>
HWY_INLINE V with_one_nan(D d, V v) {
  return hn::IfThenElse(hn::IsNaN(v), quiet_nan(d), v);
}

// Sum, product and min give some NaN for a NaN, not yet the one that Canonical makes of it.

struct FloatSum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct FloatProduct {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};

// a < b ? a : b gives b when one is NaN and when both are zeros. Asked both ways round, its answers
// differ in these cases only: the union of their bits is then a NaN, or -0, and the intersection of
// two zeros +0. On x86 that is what the min instruction does; others drop the NaN.
struct FloatMin {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Or(lesser(a, b), lesser(b, a));
  }

 private:
  template <class V>
  static HWY_INLINE V lesser(V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    return hn::Min(a, b);
#else
    return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
  }
};

struct FloatMax {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    const V one_way = greater(a, b);
    const V other_way = greater(b, a);
    const V either = hn::Or(one_way, other_way);
    return hn::IfThenElse(hn::IsNaN(either), quiet_nan(d), hn::And(one_way, other_way));
  }

 private:
  template <class V>
  static HWY_INLINE V greater(V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    return hn::Max(a, b);
#else
    return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
  }
};

/// Scales the first operand.
struct FloatMultiply {
  double factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V) const {
    return hn::Mul(a, hn::Set(d, static_cast<hn::TFromD<D>>(factor)));
  }
};

struct FloatDivide {
  double factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V) const {
    return hn::Div(a, hn::Set(d, static_cast<hn::TFromD<D>>(factor)));
  }
};

#if HWY_TARGET != HWY_SCALAR
/// (a + bi)(c + di) = (ac - bd) + (ad + bc)i on lanes that hold real and imaginary parts in turn.
struct ComplexProduct {
  static constexpr std::size_t lanes_together = 2;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V ab, V cd) const {
    const V ac_ad = hn::Mul(hn::DupEven(ab), cd);
    const V bd_bc = hn::Mul(hn::DupOdd(ab), hn::Reverse2(d, cd));
    return hn::OddEven(hn::Add(ac_ad, bd_bc), hn::Sub(ac_ad, bd_bc));
  }
};
#endif

template <class Op>
struct Canonical : Op {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return with_one_nan(d, Op::operator()(d, a, b));
  }
};

}  // namespace hocket::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
