// Collective operations as data: a Communicator runs them, now or in the background, once or many
// times (communicator.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hocket/device.hpp"
#include "hocket/export.h"
#include "hocket/status.hpp"
#include "hocket/types.hpp"

namespace hocket::inline v0 {

class CompletionQueue;

enum class CollectiveKind : std::int32_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  scan,
  exscan,
};

/// "all_reduce", …; "unknown" for a value that is not one of the enumerators.
[[nodiscard]] HOCKET_API std::string_view name(CollectiveKind kind) noexcept;

/// How values of several ranks become one.
struct Reduce {
  ReduceOp op = ReduceOp::sum;
  double factor = 1.0;  // premul_sum's; a whole number for integers
  /// The caller's own op: out[i] = a[i] op b[i], associative and commutative; out may be a or b. It
  /// is called from any thread. If it throws, the operation fails with code aborted and the text of
  /// the exception, and the communicator with it: other ranks get an error, too.
  void (*custom)(void* context, void* out, const void* a, const void* b, std::size_t count,
                 DataType type) = nullptr;
  void* context = nullptr;

  constexpr Reduce() noexcept = default;
  constexpr Reduce(ReduceOp which) noexcept : op(which) {}
};

struct Options {
  /// If it expires, the operation and its communicator fail. Not set: the communicator's
  /// (JoinOptions::operation_timeout). Zero: only what can be done at once. Below zero is an error.
  std::optional<std::chrono::nanoseconds> timeout = {};
  /// Called once when the operation has ended; not if it could not begin. run() without a stream
  /// calls it on the calling thread before it returns. Otherwise a thread of the library calls it
  /// soon after the end. wait() does not wait for that call, so the context must live until then.
  /// The function may wait and call Hocket. Its exceptions are logged and have no other effect.
  void (*on_end)(void* context, StatusCode status) = nullptr;
  void* on_end_context = nullptr;
  /// An operation that is started reports its end to this queue instead of calling on_end
  /// (queue.hpp). You need not keep its Work: ~Work does not wait, and the memory is borrowed until
  /// CompletionQueue::next() has returned the completion.
  CompletionQueue* queue = nullptr;
  std::uint64_t queue_tag = 0;  // comes back with the completion
  /// Of the memory of a collective, when you know: saves asking, which takes longer than starting a
  /// small operation. With device memory, this thread's device is the one. All ranks of an
  /// operation have memory of the host (host, pinned), or all of a device (device, managed).
  MemoryKind memory = MemoryKind::detect;
  /// The operation begins when all that is in this stream now is done; see Work::wait(Stream). For
  /// memory of a device, or pinned.
  std::optional<Stream> stream = {};
};

namespace detail {

/// One rank's part of `whole` elements.
inline std::size_t part(std::size_t whole, std::size_t part, std::string_view what) {
  if (part == 0 ? whole == 0 : whole % part == 0) return part;
  throw_error(Status(StatusCode::invalid_argument,
                     std::string(what) + ": the larger span is no multiple of the smaller"));
}

inline void check_same_size(std::size_t one, std::size_t other, std::string_view what) {
  if (one == other) return;
  throw_error(
      Status(StatusCode::invalid_argument, std::string(what) + ": spans of different sizes"));
}

}  // namespace detail

/// An operation that all ranks of a communicator call with the same kind, count, type, op and root.
/// in and out may be one buffer, or the part of the larger that the smaller is a copy of; any other
/// overlap is an error. The memory is borrowed until the operation is over.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;
  const void* in = nullptr;  // null where this rank gives nothing
  void* out = nullptr;       // null where it gets nothing
  DataType type = DataType::u8;
  /// Elements: of the whole, or of one rank's part where ranks have parts (reduce_scatter,
  /// all_gather, gather, scatter, all_to_all).
  std::size_t count = 0;
  /// In place of count, where parts differ: elements of each rank's part; of all_to_all, of the
  /// part for each rank. The same on all ranks, but for all_to_all.
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> counts_from = {};  // of all_to_all: of the part from each rank
  Reduce reduction = {};
  int root = 0;
  Options options = {};
  /// Of all_reduce and broadcast, in place of in and out: what lies one behind the other in the
  /// vector of `count` elements. Each is in place, and overlaps no other. They are copied there and
  /// back, so that they should be small; the list of them is needed only until the call returns.
  /// Of device memory: if one rank has pieces, all have, of the same sizes in the same order.
  std::span<const Piece> pieces = {};

  /// out[i] = the values in[i] of all ranks, reduced; on every rank.
  template <Element T>
  [[nodiscard]] static Collective all_reduce(std::span<const T> in, std::span<T> out,
                                             Reduce reduction = {}, Options options = {}) {
    detail::check_same_size(in.size(), out.size(), "all_reduce");
    Collective it = of<T>(CollectiveKind::all_reduce, in, out, options);
    it.count = in.size();
    it.reduction = reduction;
    return it;
  }

  /// Many small vectors of T in one operation: sooner over than one operation for each.
  template <Element T>
  [[nodiscard]] static Collective all_reduce(std::span<const Piece> pieces, Reduce reduction = {},
                                             Options options = {}) {
    Collective it = of<T>(CollectiveKind::all_reduce, pieces, options);
    it.reduction = reduction;
    return it;
  }

  /// Of as many parts as there are ranks, each rank gets its own, reduced.
  template <Element T>
  [[nodiscard]] static Collective reduce_scatter(std::span<const T> in, std::span<T> out,
                                                 Reduce reduction = {}, Options options = {}) {
    Collective it = of<T>(CollectiveKind::reduce_scatter, in, out, options);
    it.count = detail::part(in.size(), out.size(), "reduce_scatter");
    it.reduction = reduction;
    return it;
  }
  template <Element T>
  [[nodiscard]] static Collective reduce_scatter_v(std::span<const T> in, std::span<T> out,
                                                   std::span<const std::size_t> counts,
                                                   Reduce reduction = {}, Options options = {}) {
    Collective it = of<T>(CollectiveKind::reduce_scatter, in, out, options);
    it.counts = counts;
    it.reduction = reduction;
    return it;
  }

  /// The parts of all ranks, in their order, on every rank.
  template <Element T>
  [[nodiscard]] static Collective all_gather(std::span<const T> in, std::span<T> out,
                                             Options options = {}) {
    Collective it = of<T>(CollectiveKind::all_gather, in, out, options);
    it.count = detail::part(out.size(), in.size(), "all_gather");
    return it;
  }
  template <Element T>
  [[nodiscard]] static Collective all_gather_v(std::span<const T> in, std::span<T> out,
                                               std::span<const std::size_t> counts,
                                               Options options = {}) {
    Collective it = of<T>(CollectiveKind::all_gather, in, out, options);
    it.counts = counts;
    return it;
  }

  /// What the root has in `values`, on every rank.
  template <Element T>
  [[nodiscard]] static Collective broadcast(std::span<T> values, int root = 0,
                                            Options options = {}) {
    Collective it = of<T>(CollectiveKind::broadcast, values, values, options);
    it.count = values.size();
    it.root = root;
    return it;
  }

  template <Element T>
  [[nodiscard]] static Collective broadcast(std::span<const Piece> pieces, int root = 0,
                                            Options options = {}) {
    Collective it = of<T>(CollectiveKind::broadcast, pieces, options);
    it.root = root;
    return it;
  }

  /// out[i] = the values in[i] of all ranks, reduced; on the root. `out` is empty elsewhere.
  template <Element T>
  [[nodiscard]] static Collective reduce(std::span<const T> in, std::span<T> out,
                                         Reduce reduction = {}, int root = 0,
                                         Options options = {}) {
    Collective it = of<T>(CollectiveKind::reduce, in, out, options);
    it.count = in.size();
    it.reduction = reduction;
    it.root = root;
    return it;
  }

  /// The parts of all ranks, in their order, on the root. `out` is empty elsewhere.
  template <Element T>
  [[nodiscard]] static Collective gather(std::span<const T> in, std::span<T> out, int root = 0,
                                         Options options = {}) {
    Collective it = of<T>(CollectiveKind::gather, in, out, options);
    it.count = in.size();
    it.root = root;
    return it;
  }
  template <Element T>
  [[nodiscard]] static Collective gather_v(std::span<const T> in, std::span<T> out,
                                           std::span<const std::size_t> counts, int root = 0,
                                           Options options = {}) {
    Collective it = of<T>(CollectiveKind::gather, in, out, options);
    it.counts = counts;
    it.root = root;
    return it;
  }

  /// Each rank gets its part of what the root has. `in` is empty elsewhere.
  template <Element T>
  [[nodiscard]] static Collective scatter(std::span<const T> in, std::span<T> out, int root = 0,
                                          Options options = {}) {
    Collective it = of<T>(CollectiveKind::scatter, in, out, options);
    it.count = out.size();
    it.root = root;
    return it;
  }
  template <Element T>
  [[nodiscard]] static Collective scatter_v(std::span<const T> in, std::span<T> out,
                                            std::span<const std::size_t> counts, int root = 0,
                                            Options options = {}) {
    Collective it = of<T>(CollectiveKind::scatter, in, out, options);
    it.counts = counts;
    it.root = root;
    return it;
  }

  /// Part i of `in` goes to rank i; part i of `out` comes from it. Never in place.
  template <Element T>
  [[nodiscard]] static Collective all_to_all(std::span<const T> in, std::span<T> out,
                                             std::size_t part, Options options = {}) {
    detail::check_same_size(in.size(), out.size(), "all_to_all");
    Collective it = of<T>(CollectiveKind::all_to_all, in, out, options);
    it.count = part;
    return it;
  }
  template <Element T>
  [[nodiscard]] static Collective all_to_all_v(std::span<const T> in, std::span<T> out,
                                               std::span<const std::size_t> counts_to,
                                               std::span<const std::size_t> counts_from,
                                               Options options = {}) {
    Collective it = of<T>(CollectiveKind::all_to_all, in, out, options);
    it.counts = counts_to;
    it.counts_from = counts_from;
    return it;
  }

  /// Over when all ranks have begun it.
  [[nodiscard]] static Collective barrier(Options options = {}) { return {.options = options}; }

  /// out[i] = the values in[i] of this rank and those below it, reduced. By any op but average.
  template <Element T>
  [[nodiscard]] static Collective scan(std::span<const T> in, std::span<T> out,
                                       Reduce reduction = {}, Options options = {}) {
    detail::check_same_size(in.size(), out.size(), "scan");
    Collective it = of<T>(CollectiveKind::scan, in, out, options);
    it.count = in.size();
    it.reduction = reduction;
    return it;
  }

  /// out[i] = the values in[i] of the ranks below this one, reduced. By any op but average. Rank 0
  /// gets nothing: `out` may be empty there, and is left as it is.
  template <Element T>
  [[nodiscard]] static Collective exscan(std::span<const T> in, std::span<T> out,
                                         Reduce reduction = {}, Options options = {}) {
    if (!out.empty()) detail::check_same_size(in.size(), out.size(), "exscan");
    Collective it = of<T>(CollectiveKind::exscan, in, out, options);
    it.count = in.size();
    it.reduction = reduction;
    return it;
  }

 private:
  template <Element T>
  [[nodiscard]] static Collective of(CollectiveKind kind, std::span<const T> in, std::span<T> out,
                                     const Options& options) {
    return {.kind = kind,
            .in = in.data(),
            .out = out.data(),
            .type = data_type_of<T>,
            .options = options};
  }
  template <Element T>
  [[nodiscard]] static Collective of(CollectiveKind kind, std::span<const Piece> pieces,
                                     const Options& options) {
    Collective it = {.kind = kind, .type = data_type_of<T>, .options = options, .pieces = pieces};
    for (const Piece& each : pieces) it.count += each.count;
    return it;
  }
};

}  // namespace hocket::inline v0
