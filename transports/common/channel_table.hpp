// Channels by their numbers. The low bits of a number are a place in a list; those above them
// change each time that a place is used again, so that late ops meet no other channel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

namespace hocket::common {

/// Makes room for so many in all, growing as push_back() would.
template <class T>
void make_room_in(std::vector<T>& list, std::size_t size) {
  if (list.capacity() < size) list.reserve(std::max(size, 2 * list.capacity()));
}

/// `Pointer` points to something with an `id`, and is null where no channel is.
template <class Pointer>
class ChannelTable {
 public:
  using Channel = typename std::pointer_traits<Pointer>::element_type;
  static constexpr ChannelId places_max = ChannelId{1} << 20;

  [[nodiscard]] bool is_full() const noexcept {
    return free_.empty() && channels_.size() == places_max;
  }
  /// So that add() of one more channel, and remove() of it, need no memory.
  void make_room() {
    make_room_in(channels_, channels_.size() + 1);
    make_room_in(free_, channels_.size() + 1);
  }
  /// The number of the channel that is added next.
  [[nodiscard]] ChannelId next() const noexcept {
    return free_.empty() ? static_cast<ChannelId>(channels_.size()) : free_.back();
  }
  /// Call make_room() before.
  void add(Pointer channel) noexcept {
    if (free_.empty()) return channels_.push_back(std::move(channel));
    channels_[place_of(free_.back())] = std::move(channel);
    free_.pop_back();
  }
  void remove(ChannelId id) noexcept {
    channels_[place_of(id)] = nullptr;
    free_.push_back((id + places_max) % channel_ids_end);
  }

  /// One that is there.
  [[nodiscard]] Channel& at(ChannelId id) const noexcept { return *channels_[place_of(id)]; }
  /// Null if it is not there, or not any more.
  [[nodiscard]] Channel* find(ChannelId id) const noexcept {
    if (!has_place_of(id)) return nullptr;
    Channel* const found = std::to_address(channels_[place_of(id)]);
    return found != nullptr && found->id == id ? found : nullptr;
  }
  /// Whether some channel has been in its place.
  [[nodiscard]] bool has_place_of(ChannelId id) const noexcept {
    return place_of(id) < channels_.size();
  }

  [[nodiscard]] std::size_t size() const noexcept { return channels_.size(); }
  [[nodiscard]] auto begin() const noexcept { return channels_.begin(); }
  [[nodiscard]] auto end() const noexcept { return channels_.end(); }

 private:
  [[nodiscard]] static constexpr ChannelId place_of(ChannelId id) noexcept {
    return id % places_max;
  }

  std::vector<Pointer> channels_ = {};
  std::vector<ChannelId> free_ = {};  // for the places where no channel is any more
};

}  // namespace hocket::common
