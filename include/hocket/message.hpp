// Messages from one rank of a communicator to another, as data (communicator.hpp runs them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>

#include "hocket/collective.hpp"
#include "hocket/hocket.h"
#include "hocket/types.hpp"

namespace hocket::inline v1 {

inline constexpr int any_rank = -1;
inline constexpr int any_tag = -1;

enum class MessageKind : std::int32_t {
  recv = HOCKET_MESSAGE_RECV,
  send = HOCKET_MESSAGE_SEND,
};

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
  MessageKind kind = MessageKind::recv;
  void* data = nullptr;  // a send only reads it
  DataType type = DataType::u8;
  std::size_t count = 0;  // elements
  int peer = any_rank;    // a send needs a rank
  int tag = any_tag;      // a send needs a tag from 0 on
  OperationOptions options = {};
  /// For a receive: if its timeout expires before a message for it has arrived, it fails alone, and
  /// the communicator goes on. Otherwise the communicator fails as well. A send can't be taken
  /// back.
  bool fails_alone = false;

  /// Values are a vector, an array, a span or any other contiguous range of elements.
  template <ElementRange Values>
  [[nodiscard]] static Message send(const Values& values, int peer, int tag = 0,
                                    const OperationOptions& options = {}) {
    return {.kind = MessageKind::send,
            .data = const_cast<ElementOf<Values>*>(std::ranges::data(values)),
            .type = data_type_of<ElementOf<Values>>,
            .count = std::ranges::size(values),
            .peer = peer,
            .tag = tag,
            .options = options};
  }
  template <WritableElementRange Values>
  [[nodiscard]] static Message recv(Values&& values, int peer = any_rank, int tag = any_tag,
                                    const OperationOptions& options = {}) {
    return {.data = std::ranges::data(values),
            .type = data_type_of<ElementOf<Values>>,
            .count = std::ranges::size(values),
            .peer = peer,
            .tag = tag,
            .options = options};
  }
};

}  // namespace hocket::inline v1
