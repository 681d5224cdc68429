#include "store/torch_client.hpp"

#include <concepts>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "store/torch_code.hpp"
#include "wire/fields.hpp"

namespace hocket::store {
namespace {

constexpr std::size_t greeting_bytes = 1 + sizeof torch_greeting;

/// TCPStore counts its workers under this key, which is stored by another name, so that all keys of
/// such clients start with a slash. Keys of worlds don't.
constexpr std::string_view workers_key = "init/";
constexpr std::string_view stored_workers_key("/\0init/", 7);

/// So much memory stays for the next call.
constexpr std::size_t spare_bytes_max = 4096;

/// The client ends its waiting calls by itself.
constexpr Duration endless = Duration::max();

/// What a call consists of behind its number, in this order.
struct Layout {
  std::uint8_t texts = 0;           // each behind its length
  std::uint8_t texts_per_item = 0;  // with the number of items in front
  std::uint8_t more_bytes = 0;
};

Layout layout_of(TorchCode code) noexcept {
  switch (code) {
    case TorchCode::validate:
    case TorchCode::num_keys:
    case TorchCode::list_keys:
    case TorchCode::cancel_wait:
      return {};
    case TorchCode::ping:
      return {.more_bytes = sizeof(std::uint32_t)};
    case TorchCode::get:
    case TorchCode::delete_key:
    case TorchCode::queue_pop:
    case TorchCode::queue_len:
      return {.texts = 1};
    case TorchCode::set:
    case TorchCode::append:
    case TorchCode::queue_push:
      return {.texts = 2};
    case TorchCode::compare_set:
      return {.texts = 3};
    case TorchCode::add:
    case TorchCode::barrier:
      return {.texts = 1, .more_bytes = sizeof(std::int64_t)};
    case TorchCode::check:
    case TorchCode::wait:
    case TorchCode::multi_get:
      return {.texts_per_item = 1};
    case TorchCode::multi_set:
      return {.texts_per_item = 2};
  }
  return {};
}

constexpr std::size_t length_bytes = sizeof(std::uint64_t);

std::uint64_t length_at(std::string_view bytes, std::size_t at) noexcept {
  return load_little_endian<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data() + at));
}

/// Reads the fields of a call that is there in full.
class CallReader {
 public:
  explicit CallReader(std::string_view from) noexcept : fields_(from) {}

  template <std::unsigned_integral T>
  T integer() {
    return fields_.integer<T>();
  }
  std::int64_t number() { return fields_.signed_integer(); }
  std::uint64_t count() { return fields_.integer<std::uint64_t>(); }
  std::string text() { return std::string(fields_.take(fields_.integer<std::uint64_t>())); }

  std::string key() {
    std::string key = text();
    if (key == workers_key) return std::string(stored_workers_key);
    if (!key.starts_with(torch_key_prefix) && failure_.ok()) {
      failure_ = Status(StatusCode::permission_denied,
                        fmt::format("a client of TCPStore may not use key {}", quote(key)));
    }
    return key;
  }

  std::vector<std::string> keys() {
    std::vector<std::string> keys(count());
    for (std::string& each : keys) each = key();
    return keys;
  }

  [[nodiscard]] const Status& failure() const noexcept { return failure_; }

 private:
  wire::FieldReader fields_;
  Status failure_;
};

using Answer = TorchCall::Answer;

TorchCall ask(Answer answer, Request request) {
  TorchCall call{.answer = answer};
  call.requests.push_back(std::move(request));
  return call;
}

TorchCall read_compare_set(CallReader& from) {
  std::string key = from.key();
  std::string expected = from.text();
  std::string desired = from.text();
  TorchCall call = ask(Answer::swapped, {.kind = Kind::compare_set,
                                         .keys = {std::move(key)},
                                         .values = {expected, std::move(desired)}});
  call.expected = std::move(expected);
  return call;
}

TorchCall read_multi_get(CallReader& from) {
  TorchCall call{.answer = Answer::value};
  for (std::string& key : from.keys()) {
    call.requests.push_back({.kind = Kind::get, .keys = {std::move(key)}});
  }
  return call;
}

TorchCall read_multi_set(CallReader& from) {
  Request request{.kind = Kind::set};
  for (std::uint64_t left = from.count(); left > 0; --left) {
    request.keys.push_back(from.key());
    request.values.push_back(from.text());
  }
  return ask(Answer::none, std::move(request));
}

/// A key and a value.
TorchCall read_pair(CallReader& from, Kind kind) {
  Request request{.kind = kind, .keys = {from.key()}};
  request.values = {from.text()};
  return ask(Answer::none, std::move(request));
}

/// A key and a number.
TorchCall read_sum(CallReader& from, Kind kind, Answer answer, Duration timeout) {
  Request request{.kind = kind, .keys = {from.key()}, .timeout = timeout};
  request.number = from.number();
  return ask(answer, std::move(request));
}

TorchCall read_key(CallReader& from, Kind kind, Answer answer) {
  return ask(answer, {.kind = kind, .keys = {from.key()}});
}

TorchCall read_keys(CallReader& from, Kind kind, Answer answer, Duration timeout) {
  return ask(answer, {.kind = kind, .keys = from.keys(), .timeout = timeout});
}

TorchCall about_all_keys(Kind kind, Answer answer) {
  return ask(answer, {.kind = kind, .keys = {std::string(torch_key_prefix)}});
}

TorchCall read_call(TorchCode code, CallReader& from) {
  switch (code) {
    case TorchCode::validate:
      break;
    case TorchCode::set:
      return read_pair(from, Kind::set);
    case TorchCode::compare_set:
      return read_compare_set(from);
    case TorchCode::get:
      return read_key(from, Kind::get, Answer::value);
    case TorchCode::add:
      return read_sum(from, Kind::add, Answer::number, Duration::zero());
    case TorchCode::check:
      return read_keys(from, Kind::check, Answer::is_absent, Duration::zero());
    case TorchCode::wait:
      return read_keys(from, Kind::wait, Answer::done, endless);
    case TorchCode::num_keys:
      return about_all_keys(Kind::num_keys, Answer::number);
    case TorchCode::delete_key:
      return read_key(from, Kind::delete_key, Answer::number);
    case TorchCode::append:
      return read_pair(from, Kind::append);
    case TorchCode::multi_get:
      return read_multi_get(from);
    case TorchCode::multi_set:
      return read_multi_set(from);
    case TorchCode::cancel_wait:
      return {.answer = Answer::cancelled};
    case TorchCode::ping:
      return {.answer = Answer::echo, .nonce = from.integer<std::uint32_t>()};
    case TorchCode::queue_push:
      return read_pair(from, Kind::queue_push);
    case TorchCode::queue_pop:
      return read_key(from, Kind::queue_pop, Answer::popped);
    case TorchCode::queue_len:
      return read_key(from, Kind::queue_len, Answer::number);
    case TorchCode::list_keys:
      return about_all_keys(Kind::keys, Answer::keys);
    case TorchCode::barrier:
      return read_sum(from, Kind::barrier, Answer::done, endless);
  }
  return {};
}

void write_text(std::string_view text, std::string& to) {
  wire::FieldWriter(to).integer(static_cast<std::uint64_t>(text.size()));
  to.append(text);
}

void write_keys(const std::vector<Value>& keys, std::string& to) {
  for (const Value& key : keys) write_text(*key == stored_workers_key ? workers_key : *key, to);
}

void add_value(const Value& value, TorchAnswer& to) {
  wire::FieldWriter(to.head).integer(static_cast<std::uint64_t>(value->size()));
  to.value = value;
}

/// Nothing if the answer is not so simple.
std::optional<std::uint8_t> byte_of(Answer answer, const Reply& reply) noexcept {
  if (answer == Answer::is_absent) return static_cast<std::uint8_t>(reply.number == 0 ? 1 : 0);
  if (answer == Answer::done) return std::uint8_t{0};
  if (answer == Answer::cancelled) return std::uint8_t{1};
  return std::nullopt;
}

}  // namespace

bool TorchClient::starts_with(char first) noexcept {
  return static_cast<std::uint8_t>(first) <= torch_1_code_max;
}

/// Only once half of the buffer has been served, because this moves what is left.
void TorchClient::compact() {
  if (start_ < bytes_.size() / 2) return;
  bytes_.erase(0, std::exchange(start_, 0));
  if (bytes_.capacity() > spare_bytes_max && bytes_.size() < bytes_.capacity() / 4) {
    bytes_.shrink_to_fit();
  }
}

void TorchClient::append(std::string_view bytes) {
  bytes_.erase(0, std::exchange(start_, 0));
  bytes_.append(bytes);
}

/// A set of PyTorch 1.13 starts with the same byte as the greeting. The length of a key follows,
/// and no key is so long that the next four bytes are those of the greeting.
bool TorchClient::take_greeting() noexcept {
  if (bytes_.front() != static_cast<char>(TorchCode::validate)) {
    dialect_ = Dialect::torch_1;
  } else if (bytes_.size() >= greeting_bytes) {
    const auto word =
        load_little_endian<std::uint32_t>(reinterpret_cast<const std::byte*>(bytes_.data() + 1));
    dialect_ = word == torch_greeting ? Dialect::torch_2 : Dialect::torch_1;
    if (word == torch_greeting) start_ = greeting_bytes;
  }
  return dialect_ != Dialect::unknown;
}

Result<std::optional<TorchCall>> TorchClient::next() {
  const auto incomplete = std::optional<TorchCall>();
  if (bytes() == 0) return incomplete;
  if (dialect_ == Dialect::unknown && (!take_greeting() || bytes() == 0)) return incomplete;
  if (Status status = measure(); !status.ok()) return status;
  if (!is_whole_) return incomplete;
  CallReader reader(rest().substr(1, measured_ - 1));
  TorchCall call = read_call(*code_, reader);
  call.bytes = measured_ + call.requests.size() * sizeof(Request);
  start_ += measured_;
  code_.reset();
  if (!reader.failure().ok()) return reader.failure();
  for (const Request& request : call.requests) {
    if (Status status = check(request); !status.ok()) return status;
  }
  return std::optional(std::move(call));
}

Status TorchClient::begin_to_measure() {
  const auto number = static_cast<std::uint8_t>(rest().front());
  code_ = dialect_ == Dialect::torch_1 ? torch_1_code(number) : torch_2_code(number);
  if (!code_) {
    return Status(StatusCode::unsupported,
                  fmt::format("call {} of PyTorch's TCPStore is not served", number));
  }
  const Layout layout = layout_of(*code_);
  texts_left_ = layout.texts;
  is_counted_ = layout.texts_per_item == 0;
  measured_ = 1;
  is_whole_ = false;
  return {};
}

Status TorchClient::measure() {
  if (!code_) {
    if (Status status = begin_to_measure(); !status.ok()) return status;
  }
  const Layout layout = layout_of(*code_);
  const std::string_view rest = this->rest();
  if (!is_counted_) {
    if (rest.size() < measured_ + length_bytes) return {};
    const std::uint64_t items = length_at(rest, measured_);
    if (items > limits::store_keys_per_request_max) {
      return Status(StatusCode::limit_exceeded,
                    fmt::format("{} keys in one request; {} are the most", items,
                                limits::store_keys_per_request_max));
    }
    texts_left_ = items * layout.texts_per_item;
    measured_ += length_bytes;
    is_counted_ = true;
  }
  for (; texts_left_ > 0; --texts_left_) {
    if (rest.size() < measured_ + length_bytes) return {};
    const std::uint64_t length = length_at(rest, measured_);
    if (length > encoded_bytes_max || measured_ + length_bytes + length > encoded_bytes_max) {
      return Status(StatusCode::limit_exceeded,
                    fmt::format("a call of more than {}", format_size(encoded_bytes_max)));
    }
    if (rest.size() < measured_ + length_bytes + length) return {};
    measured_ += length_bytes + length;
  }
  if (rest.size() < measured_ + layout.more_bytes) return {};
  measured_ += layout.more_bytes;
  is_whole_ = true;
  return {};
}

Result<TorchAnswer> make_answer(const TorchCall& call, const Reply& reply) {
  TorchAnswer answer;
  wire::FieldWriter head(answer.head);
  const bool is_missing = reply.status.code() == StatusCode::timeout;
  if (is_missing && (call.answer == Answer::value || call.answer == Answer::popped)) {
    head.signed_integer(0);  // an empty value, or an empty queue
    return answer;
  }
  if (!reply.status.ok()) return reply.status;
  if (const auto byte = byte_of(call.answer, reply)) {
    head.integer(*byte);
  } else if (call.answer == Answer::echo) {
    head.integer(call.nonce);
  } else if (call.answer == Answer::swapped && reply.values.front() == nullptr) {
    write_text(call.expected, answer.head);
  } else if (call.answer == Answer::keys) {
    head.signed_integer(reply.number);
    write_keys(reply.values, answer.head);
  } else {
    const bool has_number = call.answer == Answer::number || call.answer == Answer::popped;
    if (has_number) head.signed_integer(reply.number);
    if (!reply.values.empty()) add_value(reply.values.front(), answer);
  }
  return answer;
}

}  // namespace hocket::store
