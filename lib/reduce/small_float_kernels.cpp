// Kernels of f16, bf16 and the 8-bit floats.
#include "reduce/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/small_float_kernels.cpp"
#include <hwy/foreach_target.h>

#include "reduce/families.hpp"
#include "reduce/float_ops-inl.hpp"
#include "reduce/loops-inl.hpp"
#include "reduce/small_float_ops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace {

template <DataType type>
using Stored = std::conditional_t<type == DataType::f16 || type == DataType::bf16, std::uint16_t,
                                  std::uint8_t>;

/// As many lanes as a vector has of f32, but for bf16, which is widened two lanes at a time.
template <DataType type>
using StoredTag = std::conditional_t<type == DataType::bf16, hn::ScalableTag<std::uint16_t>,
                                     hn::Rebind<Stored<type>, hn::ScalableTag<float>>>;

template <DataType type, class Op>
void combine_small_floats(void* out, const void* a, const void* b, std::size_t count) {
  using T = Stored<type>;
  combine(StoredTag<type>(), Through<type, Op>(), static_cast<T*>(out), static_cast<const T*>(a),
          static_cast<const T*>(b), count);
}

template <DataType type, class Op>
void scale_small_floats(void* out, const void* in, std::size_t count, double factor) {
  using T = Stored<type>;
  combine(StoredTag<type>(), Through<type, Op>{{factor}}, static_cast<T*>(out),
          static_cast<const T*>(in), static_cast<const T*>(in), count);
}

template <DataType type>
CombineKernel choose_combine(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return combine_small_floats<type, FloatSum>;
    case ReduceOp::product:
      return combine_small_floats<type, FloatProduct>;
    case ReduceOp::min:
      return combine_small_floats<type, FloatMin>;
    case ReduceOp::max:
      return combine_small_floats<type, FloatMax>;
    default:
      return nullptr;
  }
}

template <DataType type>
ScaleKernel choose_scale(Scaling scaling) {
  return scaling == Scaling::multiply ? scale_small_floats<type, FloatMultiply>
                                      : scale_small_floats<type, FloatDivide>;
}

/// What `find` gives for the type, its template argument.
template <class Find>
auto find_for(DataType type, const Find& find) {
  switch (type) {
    case DataType::f16:
      return find.template operator()<DataType::f16>();
    case DataType::bf16:
      return find.template operator()<DataType::bf16>();
    case DataType::f8e4m3:
      return find.template operator()<DataType::f8e4m3>();
    case DataType::f8e5m2:
      return find.template operator()<DataType::f8e5m2>();
    default:
      return decltype(find.template operator()<DataType::f16>())();
  }
}

CombineKernel find_combine(DataType type, ReduceOp op) {
  return find_for(type, [op]<DataType each>() { return choose_combine<each>(op); });
}

ScaleKernel find_scale(DataType type, Scaling scaling) {
  return find_for(type, [scaling]<DataType each>() { return choose_scale<each>(scaling); });
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

CombineKernel find_small_float_combine(DataType type, ReduceOp op, long long target) {
  return HWY_DISPATCH_TABLE(find_combine)[table_index(target)](type, op);
}

ScaleKernel find_small_float_scale(DataType type, Scaling scaling, long long target) {
  return HWY_DISPATCH_TABLE(find_scale)[table_index(target)](type, scaling);
}

}  // namespace hocket::reduce
#endif
