// The bytes that a client of PyTorch's TCPStore sends and gets (docs/wire.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.hpp"

namespace hocket::testing::torch_words {

/// How PyTorch 2 begins.
inline const std::string greeting("\x00\xCE\xF7\x85\x3C", 5);

/// The numbers of PyTorch 2, written here once more so that tests notice a wrong one in the
/// library. Up to num_keys, those of PyTorch 1.13 are one less.
enum Code : std::uint8_t {
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

inline std::string integer(std::uint64_t value) {
  std::string bytes;
  wire::FieldWriter(bytes).integer(value);
  return bytes;
}

inline std::string text(std::string_view bytes) {
  return integer(bytes.size()) + std::string(bytes);
}

inline std::string texts(const std::vector<std::string>& all) {
  std::string bytes = integer(all.size());
  for (const std::string& each : all) bytes += text(each);
  return bytes;
}

inline std::string byte(int code) { return {static_cast<char>(code)}; }

}  // namespace hocket::testing::torch_words
