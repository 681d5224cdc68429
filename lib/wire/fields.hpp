// Fields of a message, one after the other: little-endian integers, and texts behind their length.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace hocket::wire {

/// Appends fields to a buffer that it borrows.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& to) noexcept : to_(to) {}

  template <std::unsigned_integral T>
  void integer(T value) {
    std::byte bytes[sizeof(T)];
    store_little_endian(bytes, value);
    to_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }
  void signed_integer(std::int64_t value) { integer(static_cast<std::uint64_t>(value)); }

  /// Its length in 32 bits, then its bytes. The caller keeps it under 4 GiB.
  void text(std::string_view value) {
    integer(static_cast<std::uint32_t>(value.size()));
    to_.append(value);
  }

 private:
  std::string& to_;
};

/// Takes fields from the front of bytes that it borrows. A field that is not there in full makes it
/// bad for good: from then on it gives zeros and empty texts, so that one look at ok() at the end
/// is enough.
class FieldReader {
 public:
  explicit FieldReader(std::string_view from) noexcept : rest_(from) {}

  template <std::unsigned_integral T>
  [[nodiscard]] T integer() noexcept {
    const std::string_view bytes = take(sizeof(T));
    return bytes.empty() ? T{0}
                         : load_little_endian<T>(reinterpret_cast<const std::byte*>(bytes.data()));
  }
  [[nodiscard]] std::int64_t signed_integer() noexcept {
    return static_cast<std::int64_t>(integer<std::uint64_t>());
  }
  [[nodiscard]] std::string_view text() noexcept { return take(integer<std::uint32_t>()); }

  /// Exactly `count` bytes; nothing when there are fewer.
  [[nodiscard]] std::string_view take(std::size_t count) noexcept {
    is_ok_ = is_ok_ && count <= rest_.size();
    if (!is_ok_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  [[nodiscard]] std::size_t remaining() const noexcept { return is_ok_ ? rest_.size() : 0; }
  [[nodiscard]] bool ok() const noexcept { return is_ok_; }
  /// Every field was there, and nothing is left over.
  [[nodiscard]] bool ended_well() const noexcept { return is_ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_ok_ = true;
};

}  // namespace hocket::wire
