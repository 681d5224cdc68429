// Messages from one rank of a communicator to another, as data (communicator.hpp runs them).
#pragma once

#include <cstddef>
#include <span>

#include "hocket/collective.hpp"
#include "hocket/types.hpp"

namespace hocket::inline v0 {

inline constexpr int any_rank = -1;
inline constexpr int any_tag = -1;

/// What a receive got.
struct Received {
  int peer = 0;
  int tag = 0;
  std::size_t count = 0;  // elements
};

/// A send, or a receive of as many elements or fewer. Of messages from one rank to another, a
/// receive gets the first that fits it, in the order in which they were sent. A send may be over
/// before its receive has begun. The memory is borrowed until the operation is over.
struct Message {
  bool is_sent = false;
  void* data = nullptr;  // a send only reads it
  DataType type = DataType::u8;
  std::size_t count = 0;  // elements
  int peer = any_rank;    // a send names one
  int tag = any_tag;      // likewise; not below zero
  Options options = {};
  /// For a receive: if its timeout expires before a message for it has arrived, it fails alone, and
  /// the communicator goes on. Otherwise the communicator fails as well. A send can't be taken
  /// back.
  bool fails_alone = false;

  template <Element T>
  [[nodiscard]] static Message send(std::span<const T> values, int peer, int tag = 0,
                                    Options options = {}) {
    return {.is_sent = true,
            .data = const_cast<T*>(values.data()),
            .type = data_type_of<T>,
            .count = values.size(),
            .peer = peer,
            .tag = tag,
            .options = options};
  }
  template <Element T>
  [[nodiscard]] static Message recv(std::span<T> values, int peer = any_rank, int tag = any_tag,
                                    Options options = {}) {
    return {.data = values.data(),
            .type = data_type_of<T>,
            .count = values.size(),
            .peer = peer,
            .tag = tag,
            .options = options};
  }
};

}  // namespace hocket::inline v0
