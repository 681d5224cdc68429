// Operations of a dump in words.
#pragma once

#include <cstdint>
#include <string>

#include "record/layout.hpp"

namespace hocket::trace {

[[nodiscard]] inline bool is_message(const record::Entry& entry) noexcept {
  return entry.kind == record::kind_send || entry.kind == record::kind_receive;
}
[[nodiscard]] inline bool is_under_way(const record::Entry& entry) noexcept {
  return entry.state == record::State::queued || entry.state == record::State::running;
}
[[nodiscard]] inline bool has_failed(const record::Entry& entry) noexcept {
  return entry.state == record::State::failed;
}
/// Whether a library carries it out on devices, whose kernels tell nobody for whom they wait.
[[nodiscard]] inline bool is_offloaded(const record::Entry& entry) noexcept {
  return (entry.communicator & record::offload_bit) != 0;
}
/// Whether it has waited for a rank for at least 30 ms.
[[nodiscard]] inline bool is_stalled(const record::Entry& entry) noexcept {
  return entry.state == record::State::running && entry.peer != record::nobody &&
         !is_message(entry);
}

/// "all_reduce", "send"
[[nodiscard]] std::string kind_name(std::uint8_t kind);
/// "all_reduce(sum, f32, 128 elements) #812"; a message without the rank that it is exchanged with.
[[nodiscard]] std::string describe(const record::Entry& entry);
/// Which algorithm carries it out; empty for a message.
[[nodiscard]] std::string algorithm_name(const record::Entry& entry);
/// A time of so many nanoseconds, for people: "1.9s"
[[nodiscard]] std::string format_age(std::int64_t nanoseconds);
/// "done", "running"; "stalled" if it has waited for a rank for a while.
[[nodiscard]] std::string state_name(const record::Entry& entry);

}  // namespace hocket::trace
