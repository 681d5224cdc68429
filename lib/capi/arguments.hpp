// Converts the arguments of the C ABI. Every function here throws if an argument is wrong.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hocket/hocket.h"
#include "hocket/setting.hpp"
#include "hocket/status.hpp"

namespace hocket::capi {

[[noreturn]] inline void refuse(const char* why) {
  hocket::throw_error(hocket::Status(hocket::StatusCode::invalid_argument, why));
}

template <class T>
T& given(T* pointer) {
  if (pointer == nullptr) refuse("a null pointer");
  return *pointer;
}

/// Copies a caller's struct into the version of this library. Members that the caller's header does
/// not have are zero; members that this library does not know must be zero.
template <class Struct>
Struct read(const Struct* from) {
  const std::size_t size = given(from).struct_size;
  if (size < sizeof(std::size_t)) refuse("struct_size is not set");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) refuse("a struct of a newer version asks for what this one can't do");
  }
  Struct known = {};
  std::memcpy(&known, from, std::min(size, sizeof(Struct)));
  return known;
}

/// Copies a struct of this library into a caller's, as much as the caller's header knows of it.
template <class Struct>
void write(Struct known, Struct* to) {
  known.struct_size = given(to).struct_size;
  if (known.struct_size < sizeof(std::size_t)) refuse("struct_size is not set");
  std::memcpy(to, &known, std::min(known.struct_size, sizeof known));
}

/// Converts a timeout (convention 9 of hocket.h). No value means the default.
inline std::optional<std::chrono::nanoseconds> timeout(std::int64_t nanoseconds) {
  if (nanoseconds == 0) return std::nullopt;
  if (nanoseconds == HOCKET_NO_WAIT) return std::chrono::nanoseconds(0);
  if (nanoseconds < 0) {
    hocket::throw_error(
        hocket::Status(hocket::StatusCode::invalid_argument,
                       "the timeout is below zero: " + std::to_string(nanoseconds) + " ns")
            .with_hint("0 is the default; HOCKET_NO_WAIT is no time at all"));
  }
  return std::chrono::nanoseconds(nanoseconds);
}

inline std::vector<Setting> settings(const hocket_setting* from, std::size_t count) {
  if (count > 0) given(from);
  std::vector<Setting> settings;
  for (const hocket_setting& each : std::span(from, count)) {
    settings.push_back(
        {.name = &given(each.name), .value = each.value == nullptr ? "" : each.value});
  }
  return settings;
}

}  // namespace hocket::capi
