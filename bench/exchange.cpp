#include "exchange.hpp"

#include <algorithm>

namespace hocket::bench {
namespace {

constexpr std::size_t window_max = 64;
constexpr std::size_t window_bytes_max = 64 << 20;

/// Of an odd number of ranks, the last one has none: then it is as many as there are.
int partner_of(int rank, int ranks) {
  const int pairs = ranks / 2;
  if (rank >= 2 * pairs) return ranks;
  return rank < pairs ? rank + pairs : rank - pairs;
}

std::size_t window_for(std::size_t bytes) {
  return std::clamp<std::size_t>(window_bytes_max / std::max<std::size_t>(bytes, 1), 2, window_max);
}

}  // namespace

Exchange::Exchange(Communicator& world, std::size_t bytes)
    : world_(world),
      bytes_(bytes),
      pairs_(world.size() / 2),
      partner_(partner_of(world.rank(), world.size())),
      window_(window_for(bytes)),
      sent_(bytes),
      received_(bytes * window_) {}

std::size_t Exchange::check() {
  const Pattern pattern(
      {.type = DataType::u8, .ranks = static_cast<std::uint32_t>(world_.size()), .salt = ++salt_});
  pattern.write(static_cast<std::uint32_t>(world_.rank()), 0, sent_);
  poison(received_);
  if (has_partner()) {
    world_.sendrecv(message(MessageKind::send, sent_), message(MessageKind::recv, received(0)));
  }
  std::size_t wrong = count_wrong(pattern, 1);
  poison(received_);
  static_cast<void>(stream(1));
  if (!is_first()) wrong += count_wrong(pattern, window_);
  return wrong;
}

std::size_t Exchange::count_wrong(const Pattern& pattern, std::size_t messages) {
  if (!has_partner()) return 0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < messages; ++i) {
    wrong += pattern.count_wrong(static_cast<std::uint32_t>(partner_), 0, received(i));
  }
  return wrong;
}

std::vector<Duration> Exchange::time_trips(std::size_t count) {
  const Clock& clock = monotonic_clock();
  std::vector<Duration> times;
  world_.barrier();
  for (std::size_t i = 0; has_partner() && i < count; ++i) {
    const Instant begin = clock.now();
    if (is_first()) send();
    receive();
    if (!is_first()) send();
    times.push_back((clock.now() - begin) / 2);
  }
  return times;
}

Duration Exchange::stream(std::size_t windows) {
  const Clock& clock = monotonic_clock();
  world_.barrier();
  const Instant begin = clock.now();
  for (std::size_t each = 0; has_partner() && each < windows; ++each) {
    works_.clear();
    for (std::size_t i = 0; i < window_; ++i) {
      works_.push_back(world_.start(is_first() ? message(MessageKind::send, sent_)
                                               : message(MessageKind::recv, received(i))));
    }
    wait_all(works_);
    answer();
  }
  return clock.now() - begin;
}

void Exchange::send() { world_.run(message(MessageKind::send, sent_)); }

void Exchange::receive() { world_.run(message(MessageKind::recv, received(0))); }

void Exchange::answer() {
  world_.run(message(is_first() ? MessageKind::recv : MessageKind::send, {}));
}

Message Exchange::message(MessageKind kind, std::span<std::byte> memory) const {
  return {.kind = kind, .data = memory.data(), .count = memory.size(), .peer = partner_, .tag = 0};
}

}  // namespace hocket::bench
