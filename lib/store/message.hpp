// What is asked of a store and what it answers: the one currency of every store, and its bytes on a
// connection (docs/wire.md) or in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/limits.hpp"

namespace hocket::store {

/// The numbers travel: never change one, only add.
enum class Kind : std::uint8_t {
  ping = 0,
  set = 1,  // one value for each key, all at once
  get = 2,  // waits until all keys are there
  add = 3,
  append = 4,
  check = 5,
  wait = 6,
  compare_set = 7,
  delete_key = 8,
  num_keys = 9,  // of those that begin with the key given
  keys = 10,     // likewise
  queue_push = 11,
  queue_pop = 12,
  queue_len = 13,
  barrier = 14,
  will = 15,  // what the server does when the connection ends
  absence = 16,
};
inline constexpr std::size_t kind_count = 17;

[[nodiscard]] std::string_view name(Kind kind) noexcept;
/// Whether such a request may have to wait for others.
[[nodiscard]] bool can_wait(Kind kind) noexcept;

struct Request {
  Kind kind = Kind::ping;
  std::vector<std::string> keys = {};
  std::vector<std::string> values = {};  // compare_set: what is expected, what is desired
  std::int64_t number = 0;               // see docs/wire.md; of will and absence a Member
  Duration timeout = Duration::zero();   // of the kinds that wait
};

/// A rank and the size of its world, as one number of a request; a size of 0 stands for neither.
struct Member {
  int rank = -1;
  int size = 0;

  [[nodiscard]] std::int64_t to_number() const noexcept {
    return (static_cast<std::int64_t>(size) << 32) | static_cast<std::uint32_t>(rank);
  }
  [[nodiscard]] static Member from_number(std::int64_t number) noexcept {
    return {.rank = static_cast<int>(static_cast<std::uint32_t>(number)),
            .size = static_cast<int>(number >> 32)};
  }
};

/// Whether the request can be served at all: its kind, how many keys and values it has, and their
/// sizes. Every store asks this first.
[[nodiscard]] Status check(const Request& request);

/// A value is shared by the store and the replies that carry it, never copied for each.
using Value = std::shared_ptr<const std::string>;

struct Reply {
  Status status = {};
  std::int64_t number = 0;         // a count, a sum, a length; 1 or 0 for yes or no
  std::vector<Value> values = {};  // null for a key that is absent (compare_set only)
};

/// Gives the reply values that no store shares: a copy of each that one does. For a reply that
/// leaves the lock under which a value may still grow; only that lock makes the counts true.
void unshare(Reply& reply);

/// Bytes of the values, as the limits count them.
[[nodiscard]] std::size_t value_bytes(const Reply& reply) noexcept;

/// Appends the request's bytes.
void encode(const Request& request, std::string& to);
/// Bytes from anywhere. What comes back passed check().
[[nodiscard]] Result<Request> decode_request(std::string_view bytes);

/// A reply's bytes are its head, and then each value behind its own head: apart, so that a large
/// value can be sent from where it is.
void encode_head(const Reply& reply, std::string& to);
void encode_value_head(const Value& value, std::string& to);
[[nodiscard]] Result<Reply> decode_reply(std::string_view bytes);

/// Whether the reply has as many values as one to this request must have.
[[nodiscard]] bool fits(const Reply& reply, const Request& request) noexcept;

/// The most that a request or a reply takes as bytes.
inline constexpr std::size_t encoded_bytes_max =
    limits::store_message_bytes_max +
    2 * sizeof(std::uint32_t) * limits::store_keys_per_request_max +
    2 * limits::store_error_bytes_max + 64;

}  // namespace hocket::store
