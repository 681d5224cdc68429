// Who is in a communicator, and which of all communicators it is: what one is made from. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "comm/arguments.hpp"
#include "engine/group.hpp"

namespace hocket::comm {

class Membership {
 public:
  /// Of all ranks of a world, in their order.
  [[nodiscard]] static Membership of_world(std::uint32_t rank, std::uint32_t size);
  /// Of some of these ranks, in this order, this process's among them. No two communicators that
  /// share a process have one id.
  [[nodiscard]] Membership part(std::uint64_t id, std::span<const std::uint32_t> ranks) const;
  /// The same ranks once more: the communicator by which one on device memory moves what it stages.
  [[nodiscard]] Membership twin() const;

  /// The same on all members. The world's is 0.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] bool is_of_world() const noexcept { return id_ == 0; }
  /// For records, and what ranks tell each other of failures: unlike id(), it differs between the
  /// parts of one split.
  [[nodiscard]] std::uint64_t unique_id() const noexcept;
  /// For questions about calls on device memory.
  [[nodiscard]] std::uint64_t device_calls_unique_id() const noexcept {
    return unique_id() | device_calls_bit;
  }
  [[nodiscard]] const Position& position() const noexcept { return position_; }

  /// As ranks of the world, by rank.
  [[nodiscard]] std::span<const std::uint32_t> members() const noexcept { return members_; }
  [[nodiscard]] std::vector<std::uint32_t> others() const;
  [[nodiscard]] std::uint32_t in_world(std::uint32_t rank) const { return members_[rank]; }
  /// Nothing for one that is no member.
  [[nodiscard]] std::optional<std::uint32_t> rank_of(std::uint32_t in_world) const noexcept;
  /// With a peer of the world as a rank of this communicator.
  [[nodiscard]] Status in_group(Status why) const noexcept;

  /// Of the channels between its ranks, the one with this number.
  [[nodiscard]] std::uint64_t lane(std::uint64_t number) const noexcept {
    return id_ << lane_bits | number;
  }
  /// All of a communicator with that id.
  [[nodiscard]] static engine::Group::Lanes lanes_of(std::uint64_t id) noexcept {
    return {.first = id << lane_bits, .last = ((id + 1) << lane_bits) - 1};
  }

  static constexpr unsigned lane_bits = 8;
  /// The largest id of split and group: unique_id() has other bits above it.
  static constexpr std::uint64_t id_max = (std::uint64_t{1} << 29) - 1;

 private:
  // Ids of split never have these bits.
  static constexpr std::uint64_t twin_bit = std::uint64_t{1} << 55;
  // Of unique ids, as are those of records (record/layout.hpp).
  static constexpr std::uint64_t device_calls_bit = std::uint64_t{1} << 61;
  static_assert(id_max << 32 < device_calls_bit);

  Membership(std::uint64_t id, std::vector<std::uint32_t> members, std::uint32_t rank)
      : id_(id),
        members_(std::move(members)),
        position_{.rank = rank, .size = static_cast<std::uint32_t>(members_.size())} {}

  std::uint64_t id_;
  std::vector<std::uint32_t> members_;
  Position position_;
};

}  // namespace hocket::comm
