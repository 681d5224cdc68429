// Failures that several transports find, in the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::common {

/// The other end turns out to be gone: its connection ended without a farewell.
[[nodiscard]] Status lost_peer(std::uint32_t peer, std::string_view how, int error = 0);
/// What it means when its host does not answer: the same as when the system finds that out.
[[nodiscard]] Status unanswered_by_peer(std::uint32_t peer);
[[nodiscard]] Status too_many_channels(std::size_t count);
/// A message is longer than the receive that it meets.
[[nodiscard]] Status too_long(std::uint32_t peer, std::uint64_t bytes, std::uint64_t room);

}  // namespace hocket::common
