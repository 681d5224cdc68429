#include "store/message.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "wire/fields.hpp"

namespace hocket::store {
namespace {

enum class Count { none, one, two, some, one_for_each_key };

/// What a request of each kind, and the reply to it, are made of.
struct Shape {
  std::string_view name;
  Count keys = Count::one;
  Count values = Count::none;
  Count answers = Count::none;  // `some`: any number
};

constexpr std::array<Shape, kind_count> shapes = {{
    {.name = "ping", .keys = Count::none},
    {.name = "set", .keys = Count::some, .values = Count::one_for_each_key},
    {.name = "get", .keys = Count::some, .answers = Count::one_for_each_key},
    {.name = "add"},
    {.name = "append", .values = Count::one},
    {.name = "check", .keys = Count::some},
    {.name = "wait", .keys = Count::some},
    {.name = "compare_set", .values = Count::two, .answers = Count::one},
    {.name = "delete_key"},
    {.name = "num_keys"},
    {.name = "keys", .answers = Count::some},
    {.name = "queue_push", .values = Count::one},
    {.name = "queue_pop", .answers = Count::one},
    {.name = "queue_len"},
    {.name = "barrier"},
    {.name = "will", .keys = Count::some, .values = Count::one_for_each_key},
    {.name = "absence", .values = Count::one},
}};

const Shape& shape(Kind kind) noexcept { return shapes.at(static_cast<std::size_t>(kind)); }

bool agrees(Count count, std::size_t actual, std::size_t keys) noexcept {
  switch (count) {
    case Count::none:
      return actual == 0;
    case Count::one:
      return actual == 1;
    case Count::two:
      return actual == 2;
    case Count::some:
      return true;
    case Count::one_for_each_key:
      return actual == keys;
  }
  return false;
}

std::size_t total_bytes(const std::vector<std::string>& texts) noexcept {
  return std::accumulate(
      texts.begin(), texts.end(), std::size_t{0},
      [](std::size_t sum, const std::string& text) { return sum + text.size(); });
}

Status too_large(std::string_view what, std::size_t actual, std::size_t limit) {
  return Status(StatusCode::limit_exceeded,
                fmt::format("{} of {}; {} is the most a store takes", what, format_size(actual),
                            format_size(limit)));
}

Status check_sizes(const Request& request) {
  if (request.keys.size() > limits::store_keys_per_request_max) {
    return Status(StatusCode::limit_exceeded,
                  fmt::format("{} keys in one request; {} are the most", request.keys.size(),
                              limits::store_keys_per_request_max));
  }
  for (const std::string& key : request.keys) {
    if (key.size() > limits::store_key_bytes_max) {
      return too_large("a key", key.size(), limits::store_key_bytes_max);
    }
  }
  const std::size_t bytes = total_bytes(request.keys) + total_bytes(request.values);
  if (bytes > limits::store_message_bytes_max) {
    return too_large("a request", bytes, limits::store_message_bytes_max);
  }
  return {};
}

void write_texts(const std::vector<std::string>& texts, wire::FieldWriter& to) {
  to.integer(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) to.text(text);
}

/// How many texts follow. Each has a length, so that a number too large for what remains is a lie,
/// found before anything is allocated for it.
std::optional<std::size_t> read_count(wire::FieldReader& from) noexcept {
  const std::size_t count = from.integer<std::uint32_t>();
  if (count > from.remaining() / sizeof(std::uint32_t)) return std::nullopt;
  return count;
}

std::optional<std::vector<std::string>> read_texts(wire::FieldReader& from) {
  const std::optional<std::size_t> count = read_count(from);
  if (!count || *count > limits::store_keys_per_request_max) return std::nullopt;
  std::vector<std::string> texts(*count);
  for (std::string& text : texts) text = from.text();
  return texts;
}

constexpr auto null_value = std::numeric_limits<std::uint32_t>::max();

Value read_value(wire::FieldReader& from) {
  const auto bytes = from.integer<std::uint32_t>();
  if (bytes == null_value) return nullptr;
  return std::make_shared<const std::string>(from.take(bytes));
}

Status malformed(std::string_view what) {
  return Status(StatusCode::protocol_error, fmt::format("{} that is not well formed", what));
}

}  // namespace

std::string_view name(Kind kind) noexcept { return shape(kind).name; }

bool can_wait(Kind kind) noexcept {
  return kind == Kind::get || kind == Kind::wait || kind == Kind::queue_pop ||
         kind == Kind::barrier;
}

Status check(const Request& request) {
  const Shape& wanted = shape(request.kind);
  if (!agrees(wanted.keys, request.keys.size(), 0)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("a request of {} keys", request.keys.size()));
  }
  if (!agrees(wanted.values, request.values.size(), request.keys.size())) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} keys and {} values", request.keys.size(), request.values.size()));
  }
  if (request.kind == Kind::barrier && request.number < 1) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("a barrier of {}; at least one must take part", request.number));
  }
  return check_sizes(request);
}

bool fits(const Reply& reply, const Request& request) noexcept {
  const Count answers = reply.status.ok() ? shape(request.kind).answers : Count::none;
  const bool may_be_absent = request.kind == Kind::compare_set;
  return agrees(answers, reply.values.size(), request.keys.size()) &&
         (may_be_absent || std::ranges::count(reply.values, nullptr) == 0);
}

void unshare(Reply& reply) {
  for (Value& value : reply.values) {
    if (value.use_count() > 1) value = std::make_shared<const std::string>(*value);
  }
}

std::size_t value_bytes(const Reply& reply) noexcept {
  std::size_t sum = 0;
  for (const Value& value : reply.values) sum += value == nullptr ? 0 : value->size();
  return sum;
}

void encode(const Request& request, std::string& to) {
  wire::FieldWriter fields(to);
  fields.integer(static_cast<std::uint8_t>(request.kind));
  fields.signed_integer(request.number);
  fields.signed_integer(request.timeout.count());
  write_texts(request.keys, fields);
  write_texts(request.values, fields);
}

Result<Request> decode_request(std::string_view bytes) {
  wire::FieldReader fields(bytes);
  const auto kind = fields.integer<std::uint8_t>();
  if (kind >= kind_count) {
    return Status(StatusCode::unsupported, fmt::format("a request of unknown kind {}", kind))
        .with_hint("run the same version of Hocket on every host");
  }
  Request request{.kind = static_cast<Kind>(kind),
                  .number = fields.signed_integer(),
                  .timeout = Duration(fields.signed_integer())};
  auto keys = read_texts(fields);
  if (!keys) return malformed("a request");
  auto values = read_texts(fields);
  if (!values || !fields.ended_well()) return malformed("a request");
  request.keys = std::move(*keys);
  request.values = std::move(*values);
  if (Status status = check(request); !status.ok()) return status;
  return request;
}

void encode_head(const Reply& reply, std::string& to) {
  wire::FieldWriter fields(to);
  fields.integer(static_cast<std::uint8_t>(reply.status.code()));
  fields.text(cut(reply.status.what(), limits::store_error_bytes_max));
  fields.text(cut(reply.status.hint(), limits::store_error_bytes_max));
  fields.signed_integer(reply.number);
  fields.integer(static_cast<std::uint32_t>(reply.values.size()));
}

void encode_value_head(const Value& value, std::string& to) {
  wire::FieldWriter(to).integer(value == nullptr ? null_value
                                                 : static_cast<std::uint32_t>(value->size()));
}

Result<Reply> decode_reply(std::string_view bytes) {
  wire::FieldReader fields(bytes);
  const auto code = static_cast<StatusCode>(fields.integer<std::uint8_t>());
  const std::string_view what = fields.text();
  const std::string_view hint = fields.text();
  Reply reply{.number = fields.signed_integer()};
  const std::optional<std::size_t> count = read_count(fields);
  if (!count) return malformed("a reply");
  reply.values.reserve(*count);
  for (std::size_t i = 0; i < *count && fields.ok(); ++i) {
    reply.values.push_back(read_value(fields));
  }
  if (!fields.ended_well() || name(code) == "unknown") return malformed("a reply");
  if (code != StatusCode::ok) {
    reply.status = Status(code, std::string(what)).with_hint(std::string(hint));
  }
  return reply;
}

}  // namespace hocket::store
