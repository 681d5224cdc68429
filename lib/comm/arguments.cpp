#include "comm/arguments.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "comm/kinds.hpp"
#include "comm/local.hpp"

namespace hocket::comm {
namespace {

Status wrong(std::string what) { return Status(StatusCode::invalid_argument, std::move(what)); }

Status below_zero(std::string_view option, std::chrono::nanoseconds value) {
  return wrong(fmt::format("the {} is below zero: {} ns", option, value.count()))
      .with_hint("leave it out for the default");
}

/// Elements in `in` and `out` at this rank.
struct Elements {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

Elements elements_of(const Collective& c, const Position& position) noexcept {
  const bool is_root = position.rank == static_cast<std::uint32_t>(c.root);
  const std::uint64_t part = c.counts.empty() ? c.count : c.counts[position.rank];
  const std::uint64_t all =
      c.counts.empty() ? c.count * position.size
                       : std::accumulate(c.counts.begin(), c.counts.end(), std::uint64_t{});
  switch (c.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::scan:
      return {c.count, c.count};
    case CollectiveKind::reduce_scatter:
      return {all, part};
    case CollectiveKind::all_gather:
      return {part, all};
    case CollectiveKind::broadcast:
      return {is_root ? c.count : 0, c.count};
    case CollectiveKind::reduce:
      return {c.count, is_root ? c.count : 0};
    case CollectiveKind::gather:
      return {part, is_root ? all : 0};
    case CollectiveKind::scatter:
      return {is_root ? all : 0, part};
    case CollectiveKind::all_to_all:
      return {all, c.counts.empty() ? all
                                    : std::accumulate(c.counts_from.begin(), c.counts_from.end(),
                                                      std::uint64_t{})};
    case CollectiveKind::exscan:
      return {c.count, position.rank > 0 ? c.count : 0};
    case CollectiveKind::barrier:
      break;
  }
  return {};
}

Status check_counts(const Collective& c, const Position& position) {
  if (!c.counts.empty() && !has_parts(c.kind)) return wrong("it has no parts that may differ");
  if (!c.counts.empty() && c.counts.size() != position.size) {
    return wrong(fmt::format("{} counts for {} ranks", c.counts.size(), position.size));
  }
  const std::size_t from = c.kind == CollectiveKind::all_to_all ? c.counts.size() : 0;
  if (c.counts_from.size() != from) {
    return wrong(fmt::format("{} counts of parts from ranks, not {}", c.counts_from.size(), from));
  }
  std::uint64_t most = c.count;
  for (const auto& counts : {c.counts, c.counts_from}) {
    for (const std::size_t count : counts) most = std::max<std::uint64_t>(most, count);
  }
  if (most > INT64_MAX / size_of(c.type) / position.size) {
    return wrong(fmt::format("{} elements do not fit in memory", most));
  }
  return {};
}

/// Checks that the pieces hold exactly `elements` elements.
Status check_pieces(std::span<const Piece> pieces, std::uint64_t elements) {
  std::uint64_t left = elements;
  for (const Piece& each : pieces) {
    if (each.count > left) return wrong("its pieces are of more elements than its count");
    if (each.count > 0 && each.data == nullptr) return wrong("a piece with a null pointer");
    left -= each.count;
  }
  return left == 0 ? Status() : wrong(fmt::format("{} elements are in no piece", left));
}

/// Checks the pieces of an operation in place.
Status check_pieces(const Collective& c) {
  if (c.kind != CollectiveKind::all_reduce && c.kind != CollectiveKind::broadcast) {
    return wrong("it can't be of pieces in place: all_reduce and broadcast can")
        .with_hint("give in_pieces and out_pieces");
  }
  const bool has_more = !c.in_pieces.empty() || !c.out_pieces.empty();
  if (has_more || c.in != nullptr || c.out != nullptr) return wrong("both pieces and a buffer");
  return check_pieces(c.pieces, c.count);
}

/// In place, the smaller buffer is the part of the larger one that it is a copy of.
Status check_memory(const Collective& c, const Position& position) {
  const Elements elements = elements_of(c, position);
  for (const auto& [memory, pieces, count] :
       {std::tuple(c.in, c.in_pieces, elements.in),
        std::tuple(static_cast<const void*>(c.out), c.out_pieces, elements.out)}) {
    if (!pieces.empty() && memory != nullptr) return wrong("both pieces and a buffer");
    if (count == 0) continue;  // what this rank neither gives nor gets is not looked at
    if (!pieces.empty()) {
      if (Status status = check_pieces(pieces, count); !status.ok()) return status;
    } else if (memory == nullptr) {
      return wrong(fmt::format("a null pointer for {} elements", count));
    }
  }
  if (c.in == nullptr || c.out == nullptr || elements.in == 0 || elements.out == 0) return {};
  const std::uint64_t element_bytes = size_of(c.type);
  if (!ranges_overlap(c.in, elements.in * element_bytes, c.out, elements.out * element_bytes))
    return {};
  const auto in = reinterpret_cast<std::uintptr_t>(c.in);
  const auto out = reinterpret_cast<std::uintptr_t>(c.out);
  if (c.kind == CollectiveKind::all_to_all)
    return wrong("it can't be in place: in and out overlap");
  const bool is_larger_in = elements.in > elements.out;
  std::uint64_t before = 0;  // elements of the parts of lower ranks
  if (elements.in != elements.out || (has_parts(c.kind) && position.size > 1)) {
    for (std::uint32_t i = 0; i < position.rank; ++i) {
      before += c.counts.empty() ? c.count : c.counts[i];
    }
  }
  const std::uintptr_t larger = is_larger_in ? in : out;
  const std::uintptr_t smaller = is_larger_in ? out : in;
  if (smaller == larger + before * element_bytes) return {};
  return wrong("in and out overlap")
      .with_hint(before == 0 ? "in place, they are one buffer"
                             : fmt::format("in place, the smaller one is {} elements behind the "
                                           "beginning of the larger",
                                           before));
}

}  // namespace

bool ranges_overlap(const void* one, std::uint64_t one_bytes, const void* other,
                    std::uint64_t other_bytes) noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(one);
  const auto b = reinterpret_cast<std::uintptr_t>(other);
  return a < b + other_bytes && b < a + one_bytes;
}

std::uint64_t in_bytes(const Collective& c, const Position& position) noexcept {
  return elements_of(c, position).in * size_of(c.type);
}

std::vector<RegisteredMemory> lasting_memory(const Collective& c, const Position& position) {
  std::vector<RegisteredMemory> memory;
  if (!c.pieces.empty()) return memory;  // not one range of memory
  const auto add = [&](const void* data, std::uint64_t elements, bool may_receive) {
    const std::uint64_t bytes = elements * size_of(c.type);
    if (bytes < limits::registered_bytes_min) return;
    memory.push_back({static_cast<const std::byte*>(data), bytes, may_receive});
  };
  const Elements elements = elements_of(c, position);
  if (c.out != nullptr) add(c.out, elements.out, true);
  if (c.in != nullptr && (c.in != c.out || elements.in > elements.out)) {
    add(c.in, elements.in, false);
  }
  return memory;
}

Status check(const Collective& c, const Position& position) {
  if (!is_known(c.kind)) return wrong("unknown kind");
  if (size_of(c.type) == 0) return wrong("unknown data type");
  if (c.root < 0 || static_cast<std::uint32_t>(c.root) >= position.size) {
    return wrong(fmt::format("root {} is none of {} ranks", c.root, position.size));
  }
  if (Status status = check(c.options); !status.ok()) return status;
  if (Status status = check_counts(c, position); !status.ok()) return status;
  return c.pieces.empty() ? check_memory(c, position) : check_pieces(c);
}

Status check(const OperationOptions& options) {
  if (options.queue != nullptr && options.on_end != nullptr) {
    return wrong("the options have both on_end and a queue").with_hint("give one of them");
  }
  if (options.timeout && options.timeout->count() < 0)
    return below_zero("timeout", *options.timeout);
  if (options.memory < MemoryKind::detect || options.memory > MemoryKind::managed) {
    return wrong(fmt::format("unknown kind of memory: {}", static_cast<int>(options.memory)));
  }
  return {};
}

Status check_ranks(std::span<const int> ranks, const Position& position) {
  std::vector<bool> is_named(position.size);
  for (const int each : ranks) {
    const auto rank = static_cast<std::uint32_t>(each);
    if (rank >= position.size) {
      return wrong(fmt::format("rank {} is none of {} ranks", each, position.size));
    }
    if (is_named[rank]) return wrong(fmt::format("rank {} is named twice", each));
    is_named[rank] = true;
  }
  return {};
}

Status check(const JoinOptions& options) {
  if (options.timeout && options.timeout->count() < 0)
    return below_zero("timeout", *options.timeout);
  if (options.operation_timeout.count() < 0) {
    return below_zero("operation_timeout", options.operation_timeout);
  }
  if (options.store != nullptr && !options.url.empty()) {
    return wrong("the options have both a store and a URL")
        .with_hint("give one of them: both say where the ranks meet");
  }
  if ((options.rank < 0) != (options.size < 0)) {
    return wrong("rank and size must be given together");
  }
  if (options.rank >= 0 && options.rank >= options.size) {
    return wrong(fmt::format("rank {} does not exist in a world of {}", options.rank, options.size))
        .with_hint("the highest rank is one below the size");
  }
  if (options.size > limits::world_size_max) {
    return wrong(fmt::format("a world can't have {} ranks", options.size))
        .with_hint(fmt::format("at most {}", limits::world_size_max));
  }
  return {};
}

void write_signature(const Collective& c, Signature& to) {
  to.operation = operation_of(c.kind);
  to.root = plan::has_root(to.operation) ? static_cast<std::uint32_t>(c.root) : 0;
  to.element_bytes = to.operation == plan::Operation::barrier ? 1 : size_of(c.type);
  to.count = to.operation == plan::Operation::barrier ? 1 : c.count;
  to.counts.assign(c.counts.begin(), c.counts.end());
  to.counts.insert(to.counts.end(), c.counts_from.begin(), c.counts_from.end());
  if (!to.counts.empty()) to.count = 0;
  to.is_of_device = c.options.memory == MemoryKind::device;
  to.keeps_order = plan::reduces(to.operation) && c.reduction.keeps_order;
}

std::uint64_t vector_bytes(const Signature& signature, std::uint32_t size) noexcept {
  const std::uint32_t chunks =
      plan::shape_of({.operation = signature.operation, .size = size}, 1).chunks;
  if (signature.counts.empty()) return signature.count * chunks * signature.element_bytes;
  const auto end = signature.counts.begin() + size;
  return std::accumulate(signature.counts.begin(), end, std::uint64_t{}) * signature.element_bytes;
}

Result<reduce::Reduction> make_reduction(const Collective& c, std::uint32_t size) {
  if (plan::is_prefix(operation_of(c.kind)) && c.reduction.op == ReduceOp::average) {
    return Status(StatusCode::unsupported, "average is of the values of all ranks")
        .with_hint("take sum, and divide it by how many values it is of");
  }
  return reduce::Reduction::make({.type = c.type,
                                  .op = c.reduction.op,
                                  .contributions = static_cast<int>(size),
                                  .factor = c.reduction.factor,
                                  .custom = {c.reduction.custom, c.reduction.context}},
                                 allowed_instruction_set());
}

}  // namespace hocket::comm
