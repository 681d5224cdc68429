// The loops around an element-wise operation on vectors. Compiled once for each instruction set.
//
// An operation is a function object V operator()(D d, V a, V b) on vectors V of the lanes that D
// describes. It is applied to whole vectors only: what is left behind the last one is done by one
// that overlaps it, loaded before either is stored, and less than a vector through a padded one. So
// no scalar remainder is left, out may be a or b, and the compiler meets each operation few times.
#if defined(HOCKET_REDUCE_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_REDUCE_LOOPS_INL
#undef HOCKET_REDUCE_LOOPS_INL
#else
#define HOCKET_REDUCE_LOOPS_INL
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of 32 bytes, also where there are longer ones: a processor that splits those in two (Zen
/// 4) moves 15 % less through them from its first cache (docs/decisions/0003).
template <class T>
using Tag = hn::CappedTag<T, 32 / sizeof(T)>;

/// From this many bytes on, a result that goes to memory of its own bypasses the cache: it would
/// only push out what is still to be read, and ordinary stores read each line before they write it.
inline constexpr std::size_t streaming_bytes_min = std::size_t{8} << 20;

/// Vectors done in one turn of the main loop.
inline constexpr std::size_t unroll = 4;

// From and to memory of any alignment. Highway's own do it but for a single lane.
template <class D, class T>
HWY_INLINE hn::Vec<D> load(D d, const T* from) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    T value;
    hwy::CopyBytes<sizeof(T)>(from, &value);
    return hn::Set(d, value);
  } else {
    return hn::LoadU(d, from);
  }
}
template <class D, class T>
HWY_INLINE void store(hn::Vec<D> v, D d, T* to) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const T value = hn::GetLane(v);
    hwy::CopyBytes<sizeof(T)>(&value, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

/// Copies fewer than bytes_max bytes, a power of 2, as two blocks that may overlap.
template <std::size_t bytes_max>
HWY_INLINE void copy_below(std::byte* to, const std::byte* from, std::size_t bytes) {
  if constexpr (bytes_max > 1) {
    constexpr std::size_t half = bytes_max / 2;
    if (bytes < half) return copy_below<half>(to, from, bytes);
    std::array<std::byte, half> first;
    std::array<std::byte, half> last;
    hwy::CopyBytes<half>(from, first.data());
    hwy::CopyBytes<half>(from + bytes - half, last.data());
    hwy::CopyBytes<half>(first.data(), to);
    hwy::CopyBytes<half>(last.data(), to + bytes - half);
  }
}
template <std::size_t elements_max, class T>
HWY_INLINE void copy_elements_below(T* to, const T* from, std::size_t count) {
  copy_below<elements_max * sizeof(T)>(reinterpret_cast<std::byte*>(to),
                                       reinterpret_cast<const std::byte*>(from), count * sizeof(T));
}

/// Lanes that are one element together, which an op may say; vectors begin with the first of them.
template <class Op>
inline constexpr std::size_t lanes_together = 1;
template <class Op>
requires requires { Op::lanes_together; }
inline constexpr std::size_t lanes_together<Op> = Op::lanes_together;

/// Fewer elements than one vector: one by itself, more as the first ones of a whole vector.
template <class D, class T, class Op>
HWY_INLINE void combine_short(D d, const Op& op, T* out, const T* a, const T* b,
                              std::size_t count) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  if constexpr (lanes > 1 && lanes_together<Op> == 1) {
    if (count == 1) {
      const hn::CappedTag<T, 1> one;
      return store(op(one, load(one, a), load(one, b)), one, out);
    }
  }
  T left[lanes] = {};
  T right[lanes] = {};
  copy_elements_below<lanes>(left, a, count);
  copy_elements_below<lanes>(right, b, count);
  store(op(d, load(d, left), load(d, right)), d, left);
  copy_elements_below<lanes>(out, left, count);
}

/// At least one vector, ordinary stores.
template <class D, class T, class Op>
HWY_NOINLINE void combine_long(D d, Op op, T* out, const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  // Whole vectors first, then, if anything is left, a last one that overlaps them: its operands are
  // loaded before they may be overwritten.
  const std::size_t last = count - lanes;
  const auto last_a = load(d, a + last);
  const auto last_b = load(d, b + last);
  std::size_t i = 0;
  for (; i + unroll * lanes <= count; i += unroll * lanes) {
    for (std::size_t j = 0; j < unroll * lanes; j += lanes) {
      store(op(d, load(d, a + i + j), load(d, b + i + j)), d, out + i + j);
    }
  }
  for (; i + lanes <= count; i += lanes) {
    store(op(d, load(d, a + i), load(d, b + i)), d, out + i);
  }
  if (i < count) store(op(d, last_a, last_b), d, out + last);
}

/// At least one vector, stores that bypass the cache. out is neither a nor b.
template <class D, class T, class Op>
HWY_NOINLINE void combine_streaming(D d, Op op, T* out, const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  constexpr std::size_t vector_bytes = lanes * sizeof(T);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(out) % vector_bytes;
  std::size_t i = misaligned == 0 ? 0 : (vector_bytes - misaligned) / sizeof(T);
  // Ordinary stores for both ends; what a streamed vector also covers is computed twice.
  combine_long(d, op, out, a, b, lanes);
  for (; i + unroll * lanes <= count; i += unroll * lanes) {
    for (std::size_t j = 0; j < unroll * lanes; j += lanes) {
      hn::Stream(op(d, load(d, a + i + j), load(d, b + i + j)), d, out + i + j);
    }
  }
  hwy::FlushStream();
  i = std::min(i, count - lanes);
  combine_long(d, op, out + i, a + i, b + i, count - i);
}

/// out = a op b on elements stored as T.
template <class D, class T, class Op>
HWY_INLINE void combine(D d, const Op& op, T* out, const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  if (count < lanes) return combine_short(d, op, out, a, b, count);
  if constexpr (lanes * sizeof(T) >= 16) {  // no shorter stores bypass the cache
    if (count >= streaming_bytes_min / sizeof(T) && out != a && out != b &&
        reinterpret_cast<std::uintptr_t>(out) % (lanes_together<Op> * sizeof(T)) == 0) {
      return combine_streaming(d, op, out, a, b, count);
    }
  }
  combine_long(d, op, out, a, b, count);
}

}  // namespace hocket::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
