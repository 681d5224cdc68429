// Kernels of f32, f64 and the complex numbers made of them.
#include "reduce/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/float_kernels.cpp"
#include <hwy/foreach_target.h>

#include "reduce/families.hpp"
#include "reduce/float_ops-inl.hpp"
#include "reduce/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace {

template <class T, class Op>
HWY_NOINLINE void combine_floats(void* out, const void* a, const void* b, std::size_t count) {
  combine(Tag<T>(), Op(), static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b),
          count);
}

template <class T, class Op>
HWY_NOINLINE void scale_floats(void* out, const void* in, std::size_t count, double factor) {
  combine(Tag<T>(), Op{{factor}}, static_cast<T*>(out), static_cast<const T*>(in),
          static_cast<const T*>(in), count);
}

// Complex numbers are two parts, which most ops treat alike.

template <class T, class Op>
void combine_parts(void* out, const void* a, const void* b, std::size_t count) {
  combine_floats<T, Op>(out, a, b, 2 * count);
}

template <class T, class Op>
void scale_parts(void* out, const void* in, std::size_t count, double factor) {
  scale_floats<T, Op>(out, in, 2 * count, factor);
}

template <class T>
void multiply_complex(void* out, const void* a, const void* b, std::size_t count) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < count; ++i) {
    const hn::ScalableTag<T> d;
    const auto part = [&](const void* from, std::size_t index) {
      return load(d, static_cast<const T*>(from) + 2 * i + index);
    };
    const auto a0 = part(a, 0), a1 = part(a, 1), b0 = part(b, 0), b1 = part(b, 1);
    const auto real = hn::Sub(hn::Mul(a0, b0), hn::Mul(a1, b1));
    const auto imaginary = hn::Add(hn::Mul(a0, b1), hn::Mul(a1, b0));
    store(with_one_nan(d, real), d, static_cast<T*>(out) + 2 * i);
    store(with_one_nan(d, imaginary), d, static_cast<T*>(out) + 2 * i + 1);
  }
#else
  combine_parts<T, Canonical<ComplexProduct>>(out, a, b, count);
#endif
}

template <class T>
CombineKernel find_real(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return combine_floats<T, Canonical<FloatSum>>;
    case ReduceOp::product:
      return combine_floats<T, Canonical<FloatProduct>>;
    case ReduceOp::min:
      return combine_floats<T, Canonical<FloatMin>>;
    case ReduceOp::max:
      return combine_floats<T, FloatMax>;
    default:
      return nullptr;
  }
}

template <class T>
CombineKernel find_complex(ReduceOp op) {
  if (op == ReduceOp::sum) return combine_parts<T, Canonical<FloatSum>>;
  if (op == ReduceOp::product) return multiply_complex<T>;
  return nullptr;
}

CombineKernel find_combine(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::f32:
      return find_real<float>(op);
    case DataType::f64:
      return find_real<double>(op);
    case DataType::c64:
      return find_complex<float>(op);
    case DataType::c128:
      return find_complex<double>(op);
    default:
      return nullptr;
  }
}

template <class T>
ScaleKernel find_real_scale(Scaling scaling) {
  return scaling == Scaling::multiply ? scale_floats<T, Canonical<FloatMultiply>>
                                      : scale_floats<T, Canonical<FloatDivide>>;
}

template <class T>
ScaleKernel find_complex_scale(Scaling scaling) {
  return scaling == Scaling::multiply ? scale_parts<T, Canonical<FloatMultiply>>
                                      : scale_parts<T, Canonical<FloatDivide>>;
}

ScaleKernel find_scale(DataType type, Scaling scaling) {
  switch (type) {
    case DataType::f32:
      return find_real_scale<float>(scaling);
    case DataType::f64:
      return find_real_scale<double>(scaling);
    case DataType::c64:
      return find_complex_scale<float>(scaling);
    case DataType::c128:
      return find_complex_scale<double>(scaling);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace hocket::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::reduce {
namespace {

HWY_EXPORT(find_combine);
HWY_EXPORT(find_scale);

}  // namespace

CombineKernel find_float_combine(DataType type, ReduceOp op, long long target) {
  return HWY_DISPATCH_TABLE(find_combine)[table_index(target)](type, op);
}

ScaleKernel find_float_scale(DataType type, Scaling scaling, long long target) {
  return HWY_DISPATCH_TABLE(find_scale)[table_index(target)](type, scaling);
}

}  // namespace hocket::reduce
#endif
