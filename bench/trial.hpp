// One collective at one size: its memory, its check, its times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "pattern.hpp"
#include "storage.hpp"

namespace hocket::bench {

struct Case {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  bool in_place = false;
  bool is_started = false;   // in the background, and then waited for
  bool is_prepared = false;  // planned once
  MemoryKind memory = MemoryKind::host;
};

[[nodiscard]] bool reduces(CollectiveKind kind) noexcept;
[[nodiscard]] bool has_root(CollectiveKind kind) noexcept;
[[nodiscard]] bool can_be_in_place(CollectiveKind kind) noexcept;

/// Bandwidth on the bus is size through time times this: that of nccl-tests.
[[nodiscard]] double bus_factor(CollectiveKind kind, int ranks) noexcept;

/// The count at which the whole has about so many bytes; not 0 unless they are.
[[nodiscard]] std::size_t count_of(const Case& what, std::uint64_t bytes, int ranks) noexcept;
/// Of the whole: what nccl-tests call the size.
[[nodiscard]] std::uint64_t bytes_of(const Case& what, std::size_t count, int ranks) noexcept;

class Trial {
 public:
  /// Borrows the communicator. All ranks make the same trials and call the same functions.
  Trial(Communicator& world, const Case& what, std::size_t count);

  /// Once.
  void call();
  [[nodiscard]] Work start();

  /// Runs it once, on data that no call had before, into memory that is poisoned. How many elements
  /// are wrong at this rank: of what comes out, and of what went in and must stay as it is.
  [[nodiscard]] std::size_t check();

  /// Whether this rank has other bits than rank 0 after a reduction on all ranks in which the order
  /// matters.
  [[nodiscard]] bool differs();

  /// Runs it so often, one call after the other, and says how long each took at this rank: on
  /// memory of another kind than the host's, in a stream, by its events.
  [[nodiscard]] std::vector<Duration> time(std::size_t calls);

 private:
  [[nodiscard]] std::size_t elements_in() const noexcept;
  [[nodiscard]] std::size_t elements_out() const noexcept;
  void place();
  void call_and_read();
  [[nodiscard]] std::vector<Duration> time_in_stream(std::size_t calls);
  [[nodiscard]] Pattern next_pattern();
  [[nodiscard]] std::size_t count_wrong_out(const Pattern& pattern) const;
  [[nodiscard]] std::size_t check_barrier();

  Communicator& world_;
  const Case what_;
  const std::size_t count_;
  const int rank_;
  const int size_;
  std::unique_ptr<DeviceStream> device_;  // but for memory of the host
  Storage memory_;                        // of in; in place, of both
  Storage memory_apart_;                  // of out, when not in place
  // Copies that the processor can touch.
  std::span<std::byte> in_;
  std::span<std::byte> out_;
  Collective collective_;
  std::optional<Prepared> prepared_;
  std::uint64_t salt_ = 0;
};

}  // namespace hocket::bench
