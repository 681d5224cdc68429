#include "base/small_float.hpp"

namespace hocket::inline v1 {

template <DataType type, std::unsigned_integral Bits>
SmallFloat<type, Bits>::SmallFloat(float value) noexcept
    : bits(static_cast<Bits>(small_float::encode(format_of(type), value))) {}

template <DataType type, std::unsigned_integral Bits>
SmallFloat<type, Bits>::operator float() const noexcept {
  return small_float::decode(format_of(type), bits);
}

template struct SmallFloat<DataType::f16, std::uint16_t>;
template struct SmallFloat<DataType::bf16, std::uint16_t>;
template struct SmallFloat<DataType::f8e4m3, std::uint8_t>;
template struct SmallFloat<DataType::f8e5m2, std::uint8_t>;

}  // namespace hocket::inline v1
