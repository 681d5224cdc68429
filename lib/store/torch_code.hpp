// The protocol of PyTorch's TCPStore (docs/wire.md), as far as its servers and clients share it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hocket::store {

/// The calls by their numbers in PyTorch 2. PyTorch 1.13 has other numbers.
enum class TorchCode : std::uint8_t {
  validate = 0,
  set = 1,
  compare_set = 2,
  get = 3,
  add = 4,
  check = 5,
  wait = 6,
  num_keys = 7,
  delete_key = 8,
  append = 9,
  multi_get = 10,
  multi_set = 11,
  cancel_wait = 12,
  ping = 13,
  queue_push = 14,
  queue_pop = 15,
  queue_len = 16,
  list_keys = 17,
  barrier = 18,
};

/// Follows the byte of `validate` when a client of PyTorch 2 connects.
inline constexpr std::uint32_t torch_greeting = 0x3C85F7CE;

/// TCPStore puts this in front of every key of its program.
inline constexpr std::string_view torch_key_prefix = "/";

// Of PyTorch 1.13. The call of its callbacks has no number in PyTorch 2.
inline constexpr std::uint8_t torch_1_watch_key = 7;
inline constexpr std::uint8_t torch_1_code_max = 8;

/// Nothing for a number that is not known here.
[[nodiscard]] constexpr std::optional<TorchCode> torch_1_code(std::uint8_t number) noexcept {
  if (number == torch_1_watch_key || number > torch_1_code_max) return std::nullopt;
  if (number == torch_1_code_max) return TorchCode::delete_key;
  return static_cast<TorchCode>(number + 1);
}

[[nodiscard]] constexpr std::optional<TorchCode> torch_2_code(std::uint8_t number) noexcept {
  const auto code = static_cast<TorchCode>(number);
  if (code == TorchCode::validate || code > TorchCode::barrier) return std::nullopt;
  return code;
}

/// Of a call that PyTorch 1.13 has.
[[nodiscard]] constexpr std::uint8_t torch_1_number(TorchCode code) noexcept {
  const auto number = static_cast<std::uint8_t>(code);
  return code == TorchCode::delete_key ? number : static_cast<std::uint8_t>(number - 1);
}

}  // namespace hocket::store
