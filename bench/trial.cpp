#include "trial.hpp"

#include <algorithm>
#include <string_view>

#include "comm/kinds.hpp"

namespace hocket::bench {

using comm::has_parts;

namespace {

/// FNV-1a.
std::uint64_t hash(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte each : bytes) {
    hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 0x100000001b3;
  }
  return hash;
}

bool is_rounded(DataType type) {
  return size_of(type) > 0 && type >= DataType::f16 && type != DataType::boolean;
}

std::vector<std::uint64_t> gather(Communicator& world, std::uint64_t ours) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather(std::span(&ours, 1), all);
  return all;
}

}  // namespace

bool reduces(CollectiveKind kind) noexcept { return plan::reduces(comm::operation_of(kind)); }

bool has_root(CollectiveKind kind) noexcept { return plan::has_root(comm::operation_of(kind)); }

bool can_be_in_place(CollectiveKind kind) noexcept {
  return kind != CollectiveKind::all_to_all && kind != CollectiveKind::barrier;
}

double bus_factor(CollectiveKind kind, int ranks) noexcept {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (kind == CollectiveKind::all_reduce) return 2 * others;
  return has_parts(kind) ? others : 1;
}

std::size_t count_of(const Case& what, std::uint64_t bytes, int ranks) noexcept {
  if (bytes == 0 || what.kind == CollectiveKind::barrier) return 0;
  const std::uint64_t parts = has_parts(what.kind) ? static_cast<std::uint64_t>(ranks) : 1;
  return std::max<std::uint64_t>(bytes / size_of(what.type) / parts, 1);
}

std::uint64_t bytes_of(const Case& what, std::size_t count, int ranks) noexcept {
  const std::uint64_t parts = has_parts(what.kind) ? static_cast<std::uint64_t>(ranks) : 1;
  return count * size_of(what.type) * parts;
}

Trial::Trial(Communicator& world, const Case& what, std::size_t count)
    : world_(world), what_(what), count_(count), rank_(world.rank()), size_(world.size()) {
  if (what.memory != MemoryKind::host) device_ = std::make_unique<DeviceStream>();
  place();
  Storage& outs = what.in_place ? memory_ : memory_apart_;
  const auto given = [](Storage& storage, std::span<std::byte> part) -> std::byte* {
    return part.empty() ? nullptr : storage.data() + (part.data() - storage.copy().data());
  };
  collective_ = {.kind = what.kind,
                 .in = given(memory_, in_),
                 .out = given(outs, out_),
                 .type = what.type,
                 .count = count,
                 .reduction = what.op,
                 .root = what.root};
  collective_.reduction.factor = what.op == ReduceOp::premul_sum ? Pattern::factor : 1;
  collective_.options.memory = what.memory;
  if (device_) collective_.options.stream = device_->stream();
  if (what.is_prepared) prepared_.emplace(world.prepare(collective_));
}

Work Trial::start() { return prepared_ ? prepared_->start() : world_.start(collective_); }

void Trial::call() {
  if (what_.is_started && device_) return start().wait(device_->stream());
  if (what_.is_started) return start().wait();
  prepared_ ? prepared_->run() : world_.run(collective_);
}

std::size_t Trial::elements_in() const noexcept {
  const bool is_root = rank_ == what_.root;
  const std::size_t all = count_ * static_cast<std::size_t>(size_);
  switch (what_.kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return all;
    case CollectiveKind::broadcast:
      return is_root ? count_ : 0;
    case CollectiveKind::scatter:
      return is_root ? all : 0;
    default:
      return count_;
  }
}

std::size_t Trial::elements_out() const noexcept {
  const bool is_root = rank_ == what_.root;
  const std::size_t all = count_ * static_cast<std::size_t>(size_);
  switch (what_.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return all;
    case CollectiveKind::reduce:
      return is_root ? count_ : 0;
    case CollectiveKind::gather:
      return is_root ? all : 0;
    case CollectiveKind::exscan:
      return rank_ > 0 ? count_ : 0;
    default:
      return count_;
  }
}

/// In place, the smaller buffer is this rank's part of the larger.
void Trial::place() {
  const std::size_t element_bytes = size_of(what_.type);
  const std::size_t in_bytes = elements_in() * element_bytes;
  const std::size_t out_bytes = elements_out() * element_bytes;
  if (!what_.in_place) {
    memory_ = Storage(device_.get(), what_.memory, in_bytes);
    memory_apart_ = Storage(device_.get(), what_.memory, out_bytes);
    in_ = memory_.copy();
    out_ = memory_apart_.copy();
    return;
  }
  memory_ = Storage(device_.get(), what_.memory, std::max(in_bytes, out_bytes));
  const std::size_t before = has_parts(what_.kind) && in_bytes != out_bytes
                                 ? static_cast<std::size_t>(rank_) * count_ * element_bytes
                                 : 0;
  const std::span<std::byte> all = memory_.copy();
  in_ = in_bytes == 0 ? all.first(0) : all.subspan(in_bytes < out_bytes ? before : 0, in_bytes);
  out_ = out_bytes == 0 ? all.first(0) : all.subspan(out_bytes < in_bytes ? before : 0, out_bytes);
}

Pattern Trial::next_pattern() {
  return Pattern({.type = what_.type,
                  .op = what_.op,
                  .ranks = static_cast<std::uint32_t>(size_),
                  .salt = ++salt_});
}

void Trial::call_and_read() {
  memory_.write_back();
  memory_apart_.write_back();
  call();
  if (device_) device_->wait();
  memory_.read();
  memory_apart_.read();
}

std::size_t Trial::check() {
  if (what_.kind == CollectiveKind::barrier) return check_barrier();
  const Pattern pattern = next_pattern();
  const auto rank = static_cast<std::uint32_t>(rank_);
  poison(out_);
  pattern.write(rank, 0, in_);
  call_and_read();
  std::size_t wrong = count_wrong_out(pattern);
  if (!what_.in_place) wrong += pattern.count_wrong(rank, 0, in_);
  return wrong;
}

std::size_t Trial::count_wrong_out(const Pattern& pattern) const {
  const auto rank = static_cast<std::uint32_t>(rank_);
  const auto root = static_cast<std::uint32_t>(what_.root);
  if (out_.empty()) return 0;
  switch (what_.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      return pattern.count_wrong_reduced(0, out_);
    case CollectiveKind::scan:
      return pattern.count_wrong_reduced(0, out_, rank + 1);
    case CollectiveKind::exscan:
      return pattern.count_wrong_reduced(0, out_, rank);
    case CollectiveKind::reduce_scatter:
      return pattern.count_wrong_reduced(rank * count_, out_);
    case CollectiveKind::broadcast:
      return pattern.count_wrong(root, 0, out_);
    case CollectiveKind::scatter:
      return pattern.count_wrong(root, rank * count_, out_);
    default:
      break;
  }
  const std::size_t first = what_.kind == CollectiveKind::all_to_all ? rank * count_ : 0;
  const std::size_t part_bytes = out_.size() / static_cast<std::size_t>(size_);
  std::size_t wrong = 0;
  for (std::uint32_t from = 0; from < static_cast<std::uint32_t>(size_); ++from) {
    wrong += pattern.count_wrong(from, first, out_.subspan(from * part_bytes, part_bytes));
  }
  return wrong;
}

/// Nobody leaves before the last has come. Only processes of one host have one clock.
std::size_t Trial::check_barrier() {
  const Clock& clock = monotonic_clock();
  const auto now = [&] {
    return static_cast<std::uint64_t>(clock.now().time_since_epoch().count());
  };
  const std::uint64_t came = now();
  call_and_read();
  const std::uint64_t left = now();
  return std::ranges::max(gather(world_, came)) > left ? 1 : 0;
}

bool Trial::differs() {
  if (what_.kind != CollectiveKind::all_reduce || !is_rounded(what_.type)) return false;
  poison(out_);
  next_pattern().write_rough(static_cast<std::uint32_t>(rank_), in_);
  call_and_read();
  const std::uint64_t ours = hash(out_);
  return gather(world_, ours).front() != ours;
}

std::vector<Duration> Trial::time(std::size_t calls) {
  if (device_) return time_in_stream(calls);
  const Clock& clock = monotonic_clock();
  std::vector<Duration> times(calls);
  world_.barrier();
  Instant last = clock.now();
  for (Duration& each : times) {
    call();
    const Instant now = clock.now();
    each = now - last;
    last = now;
  }
  return times;
}

/// A mark between any two calls, so that the stream is never empty.
std::vector<Duration> Trial::time_in_stream(std::size_t calls) {
  std::vector<device::Event> marks;
  while (marks.size() <= calls) marks.push_back(device_->make_mark());
  world_.barrier();
  device_->mark(marks[0]);
  for (std::size_t i = 0; i < calls; ++i) {
    call();
    device_->mark(marks[i + 1]);
  }
  device_->wait();
  std::vector<Duration> times(calls);
  for (std::size_t i = 0; i < calls; ++i) times[i] = device_->between(marks[i], marks[i + 1]);
  return times;
}

}  // namespace hocket::bench
