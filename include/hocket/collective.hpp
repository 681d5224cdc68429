// Collective operations as data: a Communicator runs them, now or in the background, once or many
// times (communicator.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>

#include "hocket/device.hpp"
#include "hocket/export.h"
#include "hocket/status.hpp"
#include "hocket/types.hpp"

namespace hocket::inline v1 {

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
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1.0;  // premul_sum's; a whole number for integers
  /// The caller's own op: out[i] = a[i] op b[i], associative; out may be a or b. If it is not
  /// commutative, set keeps_order. All three may be unaligned for their type. It is called from any
  /// thread, but never twice at once in one world. If it throws, the operation fails with code
  /// aborted and the text of the exception, and the communicator with it: other ranks get an error,
  /// too.
  void (*custom)(void* context, void* out, const void* a, const void* b, std::size_t count,
                 DataType type) = nullptr;
  void* context = nullptr;
  /// The result is r0 op r1 op r2 … in the order of the ranks; only the parentheses may differ. Set
  /// it alike on all ranks. Fewer algorithms can do this, so an operation may take longer. It has
  /// no effect on what NCCL carries out.
  bool keeps_order = false;

  constexpr Reduction() noexcept = default;
  /// So that an op stands for itself: `world.all_reduce(values, ReduceOp::max)`.
  constexpr Reduction(ReduceOp which) noexcept : op(which) {}
};

struct OperationOptions {
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

/// The same, of so many parts.
inline std::size_t part_of(std::size_t whole, int parts, std::string_view what) {
  const auto count = static_cast<std::size_t>(parts);
  if (whole % count == 0) return whole / count;
  throw_error(Status(StatusCode::invalid_argument,
                     std::string(what) + ": the elements are no multiple of the ranks"));
}

inline void check_size(std::size_t size, std::size_t wanted, std::string_view what) {
  if (size == wanted) return;
  throw_error(Status(StatusCode::invalid_argument,
                     std::string(what) + ": a range of " + std::to_string(size) +
                         " elements, where the world needs " + std::to_string(wanted)));
}

inline std::size_t sum(std::span<const std::size_t> counts) {
  std::size_t sum = 0;
  for (const std::size_t each : counts) sum += each;
  return sum;
}

inline void check_same_size(std::size_t one, std::size_t other, std::string_view what) {
  if (one == other) return;
  throw_error(
      Status(StatusCode::invalid_argument, std::string(what) + ": spans of different sizes"));
}

}  // namespace detail

/// An operation that all ranks of a communicator call with the same kind, count, type, op and root.
/// In place, in and out are the same buffer; where ranks have parts, the smaller one is this rank's
/// part of the larger one (all_to_all is never in place). Any other overlap is an error.
///
/// A Collective keeps only addresses. The memory must live until the operation has ended, and hold
/// as many elements as the kind needs: of a whole where ranks have parts, size() parts or the sum
/// of the counts. That is not checked here; the methods of Communicator check it.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;
  const void* in = nullptr;  // null where this rank gives nothing
  void* out = nullptr;       // null where it gets nothing
  DataType type = DataType::u8;
  /// Elements: of the whole, or of one rank's part where ranks have parts (reduce_scatter,
  /// all_gather, gather, scatter, all_to_all).
  std::size_t count = 0;
  /// Instead of count, where parts differ: elements of each rank's part; of all_to_all, of the
  /// part for each rank. The same on all ranks, but for all_to_all.
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> counts_from = {};  // of all_to_all: of the part from each rank
  Reduction reduction = {};
  int root = 0;
  OperationOptions options = {};
  /// For all_reduce and broadcast, instead of in and out. The vector of `count` elements is these
  /// pieces, one after the other; each is both input and output, and none overlaps another. See
  /// in_pieces for when they are copied. The list is only read during the call. With device memory:
  /// if one rank has pieces, all have, of the same sizes in the same order.
  std::span<const Piece> pieces = {};
  /// For any kind, instead of in or out. The input (or output) of this rank is these pieces, one
  /// after the other, for example one for each rank; a piece may end inside a rank's part. Set
  /// `count` or `counts` as usual. They overlap nothing else. They are copied into one buffer and
  /// back, except if they are contiguous in memory, or if together they have at least 4 KiB and
  /// each message of the chosen algorithm lies in at most two of them. With one piece for each rank
  /// this is usual for all_to_all, gather and scatter. Host memory only.
  std::span<const Piece> in_pieces = {};  // only read
  std::span<const Piece> out_pieces = {};

  // Below, in, out and values are vectors, arrays, spans or other contiguous ranges, of one type of
  // element. Those with values alone are in place.

  /// out[i] = the values in[i] of all ranks, reduced; on every rank.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective all_reduce(const In& in, Out&& out, Reduction reduction = {},
                                             const OperationOptions& options = {}) {
    detail::check_same_size(std::ranges::size(in), std::ranges::size(out), "all_reduce");
    Collective it = of(CollectiveKind::all_reduce, in, out, options);
    it.count = std::ranges::size(in);
    it.reduction = reduction;
    return it;
  }
  template <WritableElementRange Values>
  [[nodiscard]] static Collective all_reduce(Values&& values, Reduction reduction = {},
                                             const OperationOptions& options = {}) {
    return all_reduce(values, values, reduction, options);
  }

  /// Many small vectors of T in one operation: sooner over than one operation for each.
  template <Element T>
  [[nodiscard]] static Collective all_reduce(std::span<const Piece> pieces,
                                             Reduction reduction = {},
                                             const OperationOptions& options = {}) {
    Collective it = of<T>(CollectiveKind::all_reduce, pieces, options);
    it.reduction = reduction;
    return it;
  }

  /// Of as many parts as there are ranks, each rank gets its own, reduced.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective reduce_scatter(const In& in, Out&& out, Reduction reduction = {},
                                                 const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::reduce_scatter, in, out, options);
    it.count = detail::part(std::ranges::size(in), std::ranges::size(out), "reduce_scatter");
    it.reduction = reduction;
    return it;
  }
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective reduce_scatter_v(const In& in, Out&& out,
                                                   std::span<const std::size_t> counts,
                                                   Reduction reduction = {},
                                                   const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::reduce_scatter, in, out, options);
    it.counts = counts;
    it.reduction = reduction;
    return it;
  }

  /// The parts of all ranks, in their order, on every rank.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective all_gather(const In& in, Out&& out,
                                             const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::all_gather, in, out, options);
    it.count = detail::part(std::ranges::size(out), std::ranges::size(in), "all_gather");
    return it;
  }
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective all_gather_v(const In& in, Out&& out,
                                               std::span<const std::size_t> counts,
                                               const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::all_gather, in, out, options);
    it.counts = counts;
    return it;
  }

  /// What the root has in `values`, on every rank.
  template <WritableElementRange Values>
  [[nodiscard]] static Collective broadcast(Values&& values, int root = 0,
                                            const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::broadcast, values, values, options);
    it.count = std::ranges::size(values);
    it.root = root;
    return it;
  }

  /// Many small vectors of T in one operation.
  template <Element T>
  [[nodiscard]] static Collective broadcast(std::span<const Piece> pieces, int root = 0,
                                            const OperationOptions& options = {}) {
    Collective it = of<T>(CollectiveKind::broadcast, pieces, options);
    it.root = root;
    return it;
  }

  /// out[i] = the values in[i] of all ranks, reduced; on the root. Other ranks may leave `out`
  /// empty; it is not written there.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective reduce(const In& in, Out&& out, Reduction reduction = {},
                                         int root = 0, const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::reduce, in, out, options);
    it.count = std::ranges::size(in);
    it.reduction = reduction;
    it.root = root;
    return it;
  }
  template <WritableElementRange Values>
  [[nodiscard]] static Collective reduce(Values&& values, Reduction reduction = {}, int root = 0,
                                         const OperationOptions& options = {}) {
    return reduce(values, values, reduction, root, options);
  }

  /// The parts of all ranks, in their order, on the root. `out` is empty elsewhere.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective gather(const In& in, Out&& out, int root = 0,
                                         const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::gather, in, out, options);
    it.count = std::ranges::size(in);
    it.root = root;
    return it;
  }
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective gather_v(const In& in, Out&& out,
                                           std::span<const std::size_t> counts, int root = 0,
                                           const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::gather, in, out, options);
    it.counts = counts;
    it.root = root;
    return it;
  }

  /// Each rank gets its part of what the root has. `in` is empty elsewhere.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective scatter(const In& in, Out&& out, int root = 0,
                                          const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::scatter, in, out, options);
    it.count = std::ranges::size(out);
    it.root = root;
    return it;
  }
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective scatter_v(const In& in, Out&& out,
                                            std::span<const std::size_t> counts, int root = 0,
                                            const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::scatter, in, out, options);
    it.counts = counts;
    it.root = root;
    return it;
  }

  /// Part i of `in` goes to rank i; part i of `out` comes from it. Never in place.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective all_to_all(const In& in, Out&& out, std::size_t part,
                                             const OperationOptions& options = {}) {
    detail::check_same_size(std::ranges::size(in), std::ranges::size(out), "all_to_all");
    Collective it = of(CollectiveKind::all_to_all, in, out, options);
    it.count = part;
    return it;
  }
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective all_to_all_v(const In& in, Out&& out,
                                               std::span<const std::size_t> counts_to,
                                               std::span<const std::size_t> counts_from,
                                               const OperationOptions& options = {}) {
    Collective it = of(CollectiveKind::all_to_all, in, out, options);
    it.counts = counts_to;
    it.counts_from = counts_from;
    return it;
  }

  /// Over when all ranks have begun it.
  [[nodiscard]] static Collective barrier(const OperationOptions& options = {}) {
    return {.options = options};
  }

  /// out[i] = the values in[i] of this rank and those below it, reduced. By any op but average.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective scan(const In& in, Out&& out, Reduction reduction = {},
                                       const OperationOptions& options = {}) {
    detail::check_same_size(std::ranges::size(in), std::ranges::size(out), "scan");
    Collective it = of(CollectiveKind::scan, in, out, options);
    it.count = std::ranges::size(in);
    it.reduction = reduction;
    return it;
  }
  template <WritableElementRange Values>
  [[nodiscard]] static Collective scan(Values&& values, Reduction reduction = {},
                                       const OperationOptions& options = {}) {
    return scan(values, values, reduction, options);
  }

  /// out[i] = the values in[i] of the ranks below this one, reduced. By any op but average. Rank 0
  /// gets nothing: `out` may be empty there, and is left as it is.
  template <ElementRange In, OutputFor<In> Out>
  [[nodiscard]] static Collective exscan(const In& in, Out&& out, Reduction reduction = {},
                                         const OperationOptions& options = {}) {
    if (!std::ranges::empty(out))
      detail::check_same_size(std::ranges::size(in), std::ranges::size(out), "exscan");
    Collective it = of(CollectiveKind::exscan, in, out, options);
    it.count = std::ranges::size(in);
    it.reduction = reduction;
    return it;
  }
  template <WritableElementRange Values>
  [[nodiscard]] static Collective exscan(Values&& values, Reduction reduction = {},
                                         const OperationOptions& options = {}) {
    return exscan(values, values, reduction, options);
  }

 private:
  template <class In, class Out>
  [[nodiscard]] static Collective of(CollectiveKind kind, const In& in, Out& out,
                                     const OperationOptions& options) {
    return {.kind = kind,
            .in = std::ranges::data(in),
            .out = std::ranges::data(out),
            .type = data_type_of<ElementOf<In>>,
            .options = options};
  }
  template <Element T>
  [[nodiscard]] static Collective of(CollectiveKind kind, std::span<const Piece> pieces,
                                     const OperationOptions& options) {
    Collective it = {.kind = kind, .type = data_type_of<T>, .options = options, .pieces = pieces};
    for (const Piece& each : pieces) it.count += each.count;
    return it;
  }
};

}  // namespace hocket::inline v1
