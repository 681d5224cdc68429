#include "store/keyspace.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::store {
namespace {

/// What a node of a map, its value's block and the like take, roughly.
constexpr std::size_t overhead_bytes = 128;

std::size_t cost(std::string_view key, std::size_t value_bytes) noexcept {
  return key.size() + value_bytes + overhead_bytes;
}

std::size_t cost(const Request& request) noexcept {
  std::size_t sum = overhead_bytes;
  for (const std::string& key : request.keys) sum += key.size() + sizeof(std::string);
  return sum;
}

/// Whether a queue that is not empty counts as a key that is there.
bool counts_queues(const Request& request) noexcept {
  return request.kind == Kind::wait || request.kind == Kind::check;
}

/// Most who leave stand near the front, as they came first.
void leave(std::deque<Ticket>& line, Ticket ticket) { line.erase(std::ranges::find(line, ticket)); }

Reply failure(StatusCode code, std::string what) {
  return {.status = Status(code, std::move(what))};
}

Value share(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

/// "a", "b", "c" and 5 more
std::string list(const std::vector<std::string_view>& keys) {
  constexpr std::size_t shown_max = 8;
  std::vector<std::string> shown;
  for (const std::string_view key : keys) {
    if (shown.size() == shown_max) break;
    shown.push_back(quote(key));
  }
  const std::string text = joined(shown, ", ");
  return keys.size() > shown_max ? fmt::format("{} and {} more", text, keys.size() - shown_max)
                                 : text;
}

}  // namespace

std::optional<Reply> Keyspace::execute(Ticket ticket, Request request, Instant now) {
  switch (request.kind) {
    case Kind::ping:
      return Reply{};
    case Kind::set:
      return set(std::move(request));
    case Kind::get:
    case Kind::wait:
      return await_keys(ticket, std::move(request), now);
    case Kind::add:
      return add(request);
    case Kind::append:
      return append(std::move(request));
    case Kind::check:
      return Reply{.number = first_missing(request, 0) ? 0 : 1};
    case Kind::compare_set:
      return compare_set(std::move(request));
    case Kind::delete_key:
      return delete_key(request.keys.front());
    case Kind::num_keys:
      return Reply{.number = count_keys(request.keys.front())};
    case Kind::keys:
      return list_keys(request.keys.front());
    case Kind::queue_push:
      return queue_push(std::move(request));
    case Kind::queue_pop:
      return queue_pop(ticket, std::move(request), now);
    case Kind::queue_len:
      return Reply{.number = static_cast<std::int64_t>(queue_length(request.keys.front()))};
    case Kind::barrier:
      return barrier(ticket, std::move(request), now);
    case Kind::will:
    case Kind::absence:
      return failure(StatusCode::unsupported, "this store has no connections to watch");
  }
  return failure(StatusCode::internal, "a request of no kind");
}

Reply Keyspace::set(Request request) {
  std::size_t more = 0;
  std::size_t less = 0;
  std::unordered_set<std::string_view> counted;
  for (std::size_t i = request.keys.size(); i-- > 0;) {
    const std::string& key = request.keys[i];
    if (!counted.insert(key).second) continue;  // of a key given twice, the last value stays
    more += cost(key, request.values[i].size());
    const auto found = values_.find(key);
    if (found != values_.end()) less += cost(key, found->second->size());
  }
  if (!can_hold(more, less)) return full();
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    put(request.keys[i], std::make_shared<std::string>(std::move(request.values[i])));
  }
  for (const std::string& key : request.keys) wake(key);
  return {};
}

Reply Keyspace::add(const Request& request) {
  const std::string& key = request.keys.front();
  const auto found = values_.find(key);
  std::int64_t sum = 0;
  std::size_t less = 0;
  if (found != values_.end()) {
    less = cost(key, found->second->size());
    const auto number = parse_integer(*found->second);
    if (!number) {
      return failure(StatusCode::invalid_argument,
                     fmt::format("{} holds {}, which is no number to add to", quote(key),
                                 quote(*found->second)));
    }
    sum = *number;
  }
  if (__builtin_add_overflow(sum, request.number, &sum)) {
    return failure(StatusCode::invalid_argument,
                   fmt::format("{} and {} are more than 64 bits hold", quote(key), request.number));
  }
  const std::string text = std::to_string(sum);
  if (!can_hold(cost(key, text.size()), less)) return full();
  put(key, std::make_shared<std::string>(text));
  if (found == values_.end()) wake(key);
  return {.number = sum};
}

Reply Keyspace::append(Request request) {
  const std::string& key = request.keys.front();
  const std::string& more = request.values.front();
  const auto found = values_.find(key);
  if (found == values_.end()) return set(std::move(request));
  Text& text = found->second;
  if (text->size() + more.size() > limits::store_message_bytes_max) {
    return failure(StatusCode::limit_exceeded,
                   fmt::format("{} would grow past {}", quote(key),
                               format_size(limits::store_message_bytes_max)));
  }
  if (!can_hold(more.size())) return full();
  if (text.use_count() == 1) {
    text->append(more);
  } else {
    text = std::make_shared<std::string>(*text + more);
  }
  bytes_ += more.size();
  return {};
}

Reply Keyspace::compare_set(Request request) {
  const std::string& key = request.keys.front();
  const std::string& expected = request.values[0];
  const auto found = values_.find(key);
  const bool is_absent = found == values_.end();
  const bool is_expected = is_absent ? expected.empty() : *found->second == expected;
  if (!is_expected) return {.number = 0, .values = {is_absent ? nullptr : Value(found->second)}};
  Reply reply = {.number = 1, .values = std::vector<Value>(1)};  // now: what is set stays set
  Reply done = set({.kind = Kind::set, .keys = {key}, .values = {std::move(request.values[1])}});
  if (!done.status.ok()) return done;
  reply.values.front() = values_.find(key)->second;
  return reply;
}

Reply Keyspace::delete_key(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return {.number = 0};
  bytes_ -= cost(key, found->second->size());
  count_key(key, -1);
  values_.erase(found);
  return {.number = 1};
}

void Keyspace::count_key(std::string_view key, int change) noexcept {
  if (!key.empty()) key_counts_[static_cast<unsigned char>(key.front())] += change;
}

/// Clients of PyTorch's TCPStore, who may be anybody, count the prefix "/". That takes no look at
/// the keys, so that they can't keep the server busy.
std::int64_t Keyspace::count_keys(std::string_view prefix) const {
  if (prefix.empty()) return static_cast<std::int64_t>(values_.size());
  if (prefix.size() == 1) return key_counts_[static_cast<unsigned char>(prefix.front())];
  std::int64_t found = 0;
  for (auto at = values_.lower_bound(prefix); at != values_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    ++found;
  }
  return found;
}

Reply Keyspace::list_keys(std::string_view prefix) const {
  Reply reply;
  std::size_t bytes = 0;
  for (auto at = values_.lower_bound(prefix); at != values_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    ++reply.number;
    bytes += at->first.size();
    if (reply.values.size() == limits::store_keys_per_request_max ||
        bytes > limits::store_message_bytes_max) {
      return failure(StatusCode::limit_exceeded, "more keys than fit into one reply");
    }
    reply.values.push_back(share(at->first));
  }
  return reply;
}

Reply Keyspace::queue_push(Request request) {
  const std::string& key = request.keys.front();
  std::string& value = request.values.front();
  if (const auto found = poppers_.find(key); found != poppers_.end()) {
    const Ticket first = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) poppers_.erase(found);
    unpark(first);
    complete(first, {.values = {share(std::move(value))}});
    return {};
  }
  const std::size_t bytes = cost(key, value.size());
  if (!can_hold(bytes)) return full();
  bytes_ += bytes;
  queues_[key].push_back(share(std::move(value)));
  wake_one_for_queue(key);
  return {};
}

std::size_t Keyspace::queue_length(const std::string& key) const {
  const auto found = queues_.find(key);
  return found == queues_.end() ? 0 : found->second.size();
}

std::optional<Reply> Keyspace::queue_pop(Ticket ticket, Request request, Instant now) {
  const auto found = queues_.find(request.keys.front());
  if (found == queues_.end()) return park(ticket, std::move(request), 0, now);
  const auto length = static_cast<std::int64_t>(found->second.size());
  Value value = std::move(found->second.front());
  found->second.pop_front();
  bytes_ -= cost(found->first, value->size());
  if (found->second.empty()) queues_.erase(found);
  return Reply{.number = length, .values = {std::move(value)}};
}

std::optional<Reply> Keyspace::await_keys(Ticket ticket, Request request, Instant now) {
  const std::optional<std::size_t> missing = first_missing(request, 0);
  if (missing) return park(ticket, std::move(request), *missing, now);
  return values_of(request);
}

std::optional<Reply> Keyspace::barrier(Ticket ticket, Request request, Instant now) {
  const std::string& key = request.keys.front();
  const auto found = barriers_.find(key);
  const std::size_t waiting = found == barriers_.end() ? 0 : found->second.line.size();
  const bool is_agreed = waiting == 0 || found->second.size == request.number;
  if (is_agreed && static_cast<std::int64_t>(waiting) + 1 < request.number) {
    return park(ticket, std::move(request), 0, now);
  }
  Reply reply;
  if (!is_agreed) {
    reply = failure(
        StatusCode::mismatch,
        fmt::format("barrier {}: one caller says that {} take part, and {} who came before say {}",
                    quote(key), request.number, waiting, found->second.size));
  }
  if (waiting == 0) return reply;
  const Line line = std::move(found->second.line);
  barriers_.erase(found);
  for (const Ticket each : line) {
    unpark(each);
    complete(each, reply);
  }
  return reply;
}

/// Looks from `start` on, and at those before it last: they were there once.
std::optional<std::size_t> Keyspace::first_missing(const Request& request,
                                                   std::size_t start) const {
  const std::size_t count = request.keys.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = (start + i) % count;
    if (!is_there(request, request.keys[index])) return index;
  }
  return std::nullopt;
}

bool Keyspace::is_there(const Request& request, const std::string& key) const {
  return values_.contains(key) || (counts_queues(request) && queues_.contains(key));
}

Reply Keyspace::values_of(const Request& request) const {
  Reply reply;
  if (request.kind == Kind::wait) return reply;
  std::size_t bytes = 0;
  reply.values.reserve(request.keys.size());
  for (const std::string& key : request.keys) {
    reply.values.push_back(values_.find(key)->second);
    bytes += reply.values.back()->size();
  }
  if (bytes <= limits::store_message_bytes_max) return reply;
  return failure(StatusCode::limit_exceeded,
                 fmt::format("these values are {} bytes together, and {} fit into one reply", bytes,
                             format_size(limits::store_message_bytes_max)));
}

Reply Keyspace::timed_out(const Request& request) const {
  const std::string after = request.timeout > Duration::zero()
                                ? fmt::format(" within {}", format_duration(request.timeout))
                                : std::string(" at once");
  if (request.kind == Kind::queue_pop) {
    return failure(StatusCode::timeout, fmt::format("queue {} is empty: nothing came into it{}",
                                                    quote(request.keys.front()), after));
  }
  if (request.kind == Kind::barrier) {
    const auto found = barriers_.find(request.keys.front());
    const std::size_t others = found == barriers_.end() ? 0 : found->second.line.size();
    return failure(StatusCode::timeout,
                   fmt::format("only {} of {} came to barrier {}{}", others + 1, request.number,
                               quote(request.keys.front()), after));
  }
  std::vector<std::string_view> missing;
  for (const std::string& key : request.keys) {
    if (!is_there(request, key)) missing.push_back(key);
  }
  return failure(StatusCode::timeout,
                 request.keys.size() == 1
                     ? fmt::format("key {} did not appear{}", list(missing), after)
                     : fmt::format("{} of {} keys did not appear{}: {}", missing.size(),
                                   request.keys.size(), after, list(missing)));
}

void Keyspace::put(const std::string& key, Text text) {
  Text& place = values_[key];
  bytes_ += cost(key, text->size());
  if (place != nullptr) {
    bytes_ -= cost(key, place->size());
  } else {
    count_key(key, 1);
  }
  place = std::move(text);
}

bool Keyspace::can_hold(std::size_t more, std::size_t less) const noexcept {
  return bytes_ - less + more <= bytes_max_ || more <= less;
}

Reply Keyspace::full() const {
  return {.status =
              Status(StatusCode::limit_exceeded,
                     fmt::format("the store is full: it may hold {}", format_size(bytes_max_)))
                  .with_hint("delete keys that are done with")};
}

std::optional<Reply> Keyspace::park(Ticket ticket, Request request, std::size_t missing,
                                    Instant now) {
  if (request.timeout <= Duration::zero()) return timed_out(request);
  if (!can_hold(cost(request))) return full();
  const bool is_endless = request.timeout > Instant::max() - now;
  const Instant deadline = is_endless ? Instant::max() : now + request.timeout;
  const Parked& parked =
      parked_.emplace(ticket, Parked{std::move(request), deadline, missing}).first->second;
  try {
    deadlines_.emplace(deadline, ticket);
    stand_in_line(ticket, parked.request, parked.request.keys[missing]);
  } catch (...) {  // without memory: it does not wait
    deadlines_.erase({deadline, ticket});
    parked_.erase(ticket);
    throw;
  }
  bytes_ += cost(parked.request);
  return std::nullopt;
}

/// Of those that wait for the same. Where it throws, it stands in none.
void Keyspace::stand_in_line(Ticket ticket, const Request& request, const std::string& key) {
  if (request.kind == Kind::barrier) {
    Barrier& barrier = barriers_[key];
    barrier.line.push_back(ticket);
    barrier.size = request.number;
  } else {
    (request.kind == Kind::queue_pop ? poppers_ : waiters_)[key].push_back(ticket);
  }
}

Request Keyspace::unpark(Ticket ticket) {
  const auto found = parked_.find(ticket);
  Parked parked = std::move(found->second);
  parked_.erase(found);
  deadlines_.erase({parked.deadline, ticket});
  bytes_ -= cost(parked.request);
  return std::move(parked.request);
}

void Keyspace::leave_line(Ticket ticket, const Parked& parked) {
  const std::string& key = parked.request.keys[parked.missing];
  if (parked.request.kind == Kind::barrier) {
    const auto found = barriers_.find(key);
    leave(found->second.line, ticket);
    if (found->second.line.empty()) barriers_.erase(found);
    return;
  }
  ByKey<Line>& lines = parked.request.kind == Kind::queue_pop ? poppers_ : waiters_;
  const auto found = lines.find(key);
  leave(found->second, ticket);
  if (found->second.empty()) lines.erase(found);
}

void Keyspace::cancel(Ticket ticket) {
  const auto found = parked_.find(ticket);
  if (found == parked_.end()) return;
  leave_line(ticket, found->second);
  unpark(ticket);
}

void Keyspace::complete(Ticket ticket, Reply reply) {
  completed_.push_back({ticket, std::move(reply)});
}

void Keyspace::wake(const std::string& key) {
  const auto found = waiters_.find(key);
  if (found == waiters_.end()) return;
  const Line line = std::move(found->second);
  waiters_.erase(found);
  for (const Ticket ticket : line) look_again(ticket);
}

void Keyspace::wake_one_for_queue(const std::string& key) {
  for (bool is_complete = false; !is_complete;) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) return;
    Line& line = found->second;
    const auto first = std::ranges::find_if(
        line, [&](Ticket ticket) { return counts_queues(parked_.at(ticket).request); });
    if (first == line.end()) return;
    const Ticket ticket = *first;
    line.erase(first);
    if (line.empty()) waiters_.erase(found);
    is_complete = look_again(ticket);
  }
}

bool Keyspace::look_again(Ticket ticket) {
  Parked& parked = parked_.at(ticket);
  if (const auto missing = first_missing(parked.request, parked.missing)) {
    parked.missing = *missing;
    waiters_[parked.request.keys[*missing]].push_back(ticket);
    return false;
  }
  complete(ticket, values_of(unpark(ticket)));
  return true;
}

void Keyspace::expire(Instant now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const Ticket ticket = deadlines_.begin()->second;
    leave_line(ticket, parked_.at(ticket));
    const Request request = unpark(ticket);
    complete(ticket, timed_out(request));
  }
}

Deadline Keyspace::next_deadline() const noexcept {
  return deadlines_.empty() ? Deadline::never() : Deadline(deadlines_.begin()->first);
}

}  // namespace hocket::store
