#include "bridge/torch_store.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "bridge/torch_line.hpp"
#include "wire/fields.hpp"

namespace hocket::bridge {
namespace {

using namespace std::chrono_literals;
using store::TorchCode;

constexpr Duration first_pause = 500us;
constexpr Duration pause_max = 50ms;

void write_number(std::int64_t value, std::string& to) {
  wire::FieldWriter(to).signed_integer(value);
}

void write_text(std::string_view text, std::string& to) {
  write_number(static_cast<std::int64_t>(text.size()), to);
  to += text;
}

void write_key(std::string_view key, std::string& to) {
  write_number(static_cast<std::int64_t>(key.size() + store::torch_key_prefix.size()), to);
  to += store::torch_key_prefix;
  to += key;
}

std::string fields_of(std::string_view key) {
  std::string fields;
  write_key(key, fields);
  return fields;
}

std::string fields_of(std::span<const std::string> keys) {
  std::string fields;
  write_number(static_cast<std::int64_t>(keys.size()), fields);
  for (const std::string& key : keys) write_key(key, fields);
  return fields;
}

/// Throws the failure.
template <class T>
T take(Result<T> result) {
  if (!result.ok()) throw_error(result.status());
  return *std::move(result);
}

void say(TorchLine& line, TorchCode code, std::string_view fields, Deadline deadline) {
  if (Status status = line.say(code, fields, deadline); !status.ok()) throw_error(status);
}

Duration left_until(Deadline deadline) {
  return std::max(deadline.remaining(monotonic_clock().now()), Duration::zero());
}

bool are_there(TorchLine& line, std::span<const std::string> keys, Deadline deadline) {
  say(line, TorchCode::check, fields_of(keys), deadline);
  const auto said = static_cast<unsigned char>(take(line.hear(1, deadline)).front());
  if (said > 1) {
    throw_error(Status(StatusCode::protocol_error, fmt::format("{} instead of 0 or 1", said)));
  }
  return said == 0;
}

bool is_there(TorchLine& line, std::string_view key, Deadline deadline) {
  const std::string keys[] = {std::string(key)};
  return are_there(line, keys, deadline);
}

std::string held_by(TorchLine& line, std::string_view key, Deadline deadline) {
  say(line, TorchCode::get, fields_of(key), deadline);
  return take(line.hear_value(deadline));
}

}  // namespace

struct TorchStore::Connection {
  std::mutex mutex;
  std::condition_variable over;  // a call's turn
  bool is_taken = false;
  std::optional<TorchLine> line;  // of the call whose turn it is
};

/// A call's turn to use the connection, if it came within the deadline.
class TorchStore::Turn {
 public:
  Turn(Connection& connection, Deadline deadline) : connection_(connection) {
    std::unique_lock lock(connection_.mutex);
    has_come_ =
        connection_.over.wait_until(lock, deadline.at(), [&] { return !connection_.is_taken; });
    if (has_come_) connection_.is_taken = true;
  }
  ~Turn() {
    if (!has_come_) return;
    const std::scoped_lock lock(connection_.mutex);
    connection_.is_taken = false;
    connection_.over.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] bool has_come() const noexcept { return has_come_; }

 private:
  Connection& connection_;
  bool has_come_;
};

TorchStore::TorchStore(net::Endpoint server, Duration timeout)
    : server_(std::move(server)), connection_(std::make_unique<Connection>()) {
  connection_->line = take(TorchLine::open(server_, Deadline::after(monotonic_clock(), timeout)));
  set_timeout(timeout);
}
TorchStore::~TorchStore() {
  if (origin_.is_inherited()) abandon(connection_);
}

/// Does one call's part of the conversation, which must not wait for other clients.
template <class Talk>
auto TorchStore::talk(std::string_view operation, TimeLimit timeout, const Talk& work) {
  if (origin_.is_inherited()) throw_error(inherited_status(describe()));
  const Deadline deadline = Deadline::after(
      monotonic_clock(),
      std::max<Duration>(timeout.value_or(this->timeout()), limits::store_answer_timeout));
  const Turn turn(*connection_, deadline);
  if (!turn.has_come()) {
    throw_error(Status(StatusCode::timeout, fmt::format("{}: {}: other calls wait for the server",
                                                        describe(), operation)));
  }
  try {
    if (!connection_->line) connection_->line = take(TorchLine::open(server_, deadline));
    return work(*connection_->line, deadline);
  } catch (...) {
    connection_->line.reset();  // nobody knows how much of the answer is still to come
    const Status why = status_of_exception();
    throw_error(Status(why.code(), fmt::format("{}: {}: {}", describe(), operation, why.what()))
                    .with_hint(std::string(why.hint())));
  }
}

void TorchStore::set(std::string_view key, std::string_view value, TimeLimit timeout) {
  talk("set", timeout, [&](TorchLine& line, Deadline deadline) {
    std::string fields = fields_of(key);
    write_text(value, fields);
    say(line, TorchCode::set, fields, deadline);
    // A set has no answer. Once another call has one, others see the value.
    is_there(line, key, deadline);
  });
}

std::string TorchStore::get(std::string_view key, TimeLimit timeout) {
  const std::string keys[] = {std::string(key)};
  const Duration limit = timeout.value_or(this->timeout());
  const Deadline deadline = Deadline::after(monotonic_clock(), limit);
  wait_until(deadline, keys, limit);
  return talk("get", left_until(deadline),
              [&](TorchLine& line, Deadline end) { return held_by(line, key, end); });
}

void TorchStore::wait(std::span<const std::string> keys, TimeLimit timeout) {
  const Duration limit = timeout.value_or(this->timeout());
  if (!keys.empty()) wait_until(Deadline::after(monotonic_clock(), limit), keys, limit);
}

void TorchStore::wait_until(Deadline deadline, std::span<const std::string> keys,
                            Duration timeout) {
  Duration pause = first_pause;
  while (!check(keys, left_until(deadline))) {
    const Duration left = left_until(deadline);
    if (left == Duration::zero()) {
      throw_error(Status(StatusCode::timeout,
                         fmt::format("{}: wait: {}{} did not appear within {}", describe(),
                                     quote(keys.front()), keys.size() > 1 ? " or another key" : "",
                                     format_duration(std::max(timeout, Duration::zero())))));
    }
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min(2 * pause, pause_max);
  }
}

bool TorchStore::check(std::span<const std::string> keys, TimeLimit timeout) {
  return talk("check", timeout,
              [&](TorchLine& line, Deadline deadline) { return are_there(line, keys, deadline); });
}

std::int64_t TorchStore::add(std::string_view key, std::int64_t amount, TimeLimit timeout) {
  return talk("add", timeout, [&](TorchLine& line, Deadline deadline) {
    std::string fields = fields_of(key);
    write_number(amount, fields);
    say(line, TorchCode::add, fields, deadline);
    auto sum = line.hear_number(deadline);
    if (sum.status().code() != StatusCode::peer_lost) return take(sum);
    throw_error(
        Status(sum.status()).with_hint("PyTorch's servers do so if the value is no number"));
  });
}

void TorchStore::append(std::string_view key, std::string_view more, TimeLimit timeout) {
  const bool is_done = talk("append", timeout, [&](TorchLine& line, Deadline deadline) {
    if (line.is_torch_1()) return false;
    std::string fields = fields_of(key);
    write_text(more, fields);
    say(line, TorchCode::append, fields, deadline);
    return is_there(line, key, deadline);
  });
  if (!is_done) Store::append(key, more, timeout);
}

Swap TorchStore::compare_set(std::string_view key, std::string_view expected,
                             std::string_view desired, TimeLimit timeout) {
  return talk("compare_set", timeout, [&](TorchLine& line, Deadline deadline) {
    // The answer is the value in the end, and does not say whether the call changed it.
    const bool was_there = is_there(line, key, deadline);
    if (was_there && expected != desired && held_by(line, key, deadline) == desired) {
      return Swap{.is_set = false, .value = std::string(desired)};
    }
    std::string fields = fields_of(key);
    write_text(expected, fields);
    write_text(desired, fields);
    say(line, TorchCode::compare_set, fields, deadline);
    const std::string value = take(line.hear_value(deadline));
    // Of a missing key these servers say that it holds what was expected.
    const bool may_be_missing = value == expected && !expected.empty();
    if (may_be_missing && (expected != desired || !is_there(line, key, deadline))) return Swap{};
    return Swap{.is_set = value == desired, .value = value};
  });
}

bool TorchStore::delete_key(std::string_view key, TimeLimit timeout) {
  return talk("delete_key", timeout, [&](TorchLine& line, Deadline deadline) {
    say(line, TorchCode::delete_key, fields_of(key), deadline);
    return take(line.hear_number(deadline)) > 0;
  });
}

std::int64_t TorchStore::num_keys(TimeLimit timeout) {
  return talk("num_keys", timeout, [&](TorchLine& line, Deadline deadline) {
    say(line, TorchCode::num_keys, "", deadline);
    return take(line.hear_number(deadline));
  });
}

std::string TorchStore::describe() const {
  return fmt::format("the TCPStore of PyTorch at {}", server_.to_string());
}

}  // namespace hocket::bridge
