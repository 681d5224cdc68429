#include "transports/nccl/calls.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace hocket::nccl {
namespace {

bool reduces(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce;
}

/// What an element of ours is in NCCL's terms.
struct Elements {
  Type type = uint8;
  std::size_t each = 1;  // of NCCL's for one of ours
};

/// For arithmetic. Not of 8-bit floats, which NCCL reduces from 2.24 and sm_90 on: to know that,
/// all ranks would have to know of all devices.
std::optional<Elements> numbers(DataType type) noexcept {
  switch (type) {
    case DataType::i8:
      return Elements{int8};
    case DataType::u8:
      return Elements{uint8};
    case DataType::i32:
      return Elements{int32};
    case DataType::u32:
      return Elements{uint32};
    case DataType::i64:
      return Elements{int64};
    case DataType::u64:
      return Elements{uint64};
    case DataType::f16:
      return Elements{float16};
    case DataType::bf16:
      return Elements{bfloat16};
    case DataType::f32:
      return Elements{float32};
    case DataType::f64:
      return Elements{float64};
    case DataType::c64:
      return Elements{float32, 2};
    case DataType::c128:
      return Elements{float64, 2};
    default:
      return std::nullopt;
  }
}

bool is_integer(DataType type) noexcept { return type <= DataType::u64; }

std::optional<Op> plain_op(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::premul_sum:
      return sum;
    case ReduceOp::product:
      return prod;
    case ReduceOp::min:
      return min;
    case ReduceOp::max:
      return max;
    case ReduceOp::average:
      return avg;
    default:
      return std::nullopt;
  }
}

/// A factor in the type that NCCL multiplies.
std::array<std::byte, 8> scalar(double factor, Type type) noexcept {
  std::array<std::byte, 8> bytes = {};
  const auto put = [&](auto value) { std::memcpy(bytes.data(), &value, sizeof value); };
  switch (type) {
    case float64:
      put(factor);
      break;
    case float16:
      put(hocket::float16(static_cast<float>(factor)));
      break;
    case bfloat16:
      put(hocket::bfloat16(static_cast<float>(factor)));
      break;
    default:
      put(static_cast<float>(factor));
      break;
  }
  return bytes;
}

/// One collective on its way into a stream.
class Caller {
 public:
  Caller(const Functions& functions, const Collective& collective, const Position& position,
         Handle comm, StreamHandle stream)
      : f_(functions), c_(collective), position_(position), comm_(comm), stream_(stream) {}

  [[nodiscard]] Outcome call(void* token) {
    switch (c_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
      case CollectiveKind::reduce_scatter:
        return reduce();
      case CollectiveKind::all_gather:
        return c_.counts.empty()
                   ? f_.ncclAllGather(c_.in, c_.out, bytes(c_.count), uint8, comm_, stream_)
                   : gather_all();
      case CollectiveKind::broadcast:
        return c_.pieces.empty() ? broadcast(c_.in, c_.out, c_.count) : broadcast_pieces();
      case CollectiveKind::gather:
        return c_.counts.empty() && f_.ncclGather != nullptr
                   ? f_.ncclGather(c_.in, c_.out, bytes(c_.count), uint8, c_.root, comm_, stream_)
                   : gather();
      case CollectiveKind::scatter:
        return c_.counts.empty() && f_.ncclScatter != nullptr
                   ? f_.ncclScatter(c_.in, c_.out, bytes(c_.count), uint8, c_.root, comm_, stream_)
                   : scatter();
      case CollectiveKind::all_to_all:
        return c_.counts.empty() && f_.ncclAlltoAll != nullptr
                   ? f_.ncclAlltoAll(c_.in, c_.out, bytes(c_.count), uint8, comm_, stream_)
                   : exchange();
      default:
        return f_.ncclAllReduce(token, token, 1, uint8, sum, comm_, stream_);
    }
  }

 private:
  [[nodiscard]] std::size_t bytes(std::size_t count) const noexcept {
    return count * size_of(c_.type);
  }
  [[nodiscard]] std::size_t part(std::uint32_t rank) const noexcept {
    return c_.counts.empty() ? c_.count : c_.counts[rank];
  }
  [[nodiscard]] bool is_root() const noexcept {
    return position_.rank == static_cast<std::uint32_t>(c_.root);
  }

  // Several calls as one.
  void note(Outcome outcome) noexcept {
    if (outcome_ == success || outcome_ == in_progress) outcome_ = outcome;
  }
  template <class Calls>
  Outcome together(Calls&& calls) {
    note(f_.ncclGroupStart());
    calls();
    const Outcome before = outcome_;
    note(f_.ncclGroupEnd());
    return before == success || before == in_progress ? outcome_ : before;
  }
  /// For each rank where its part begins, and its elements.
  template <class Visit>
  void each_part(const void* memory, std::span<const std::size_t> counts, Visit&& visit) {
    auto* at = static_cast<std::byte*>(const_cast<void*>(memory));
    for (std::uint32_t rank = 0; rank < position_.size; ++rank) {
      const std::size_t count = counts.empty() ? c_.count : counts[rank];
      if (count > 0) visit(static_cast<int>(rank), at, count);
      at += bytes(count);
    }
  }

  [[nodiscard]] Outcome reduce() {
    const Elements elements = *numbers(c_.type);
    Op op = *plain_op(c_.reduction.op);
    const bool is_scaled = c_.reduction.op == ReduceOp::premul_sum;
    if (is_scaled) {
      auto factor = scalar(c_.reduction.factor, elements.type);
      const Outcome outcome =
          f_.ncclRedOpCreatePreMulSum(&op, factor.data(), elements.type, scalar_on_host, comm_);
      if (outcome != success) return outcome;
    }
    const Outcome outcome = reduce_by(op, elements);
    if (is_scaled) (void)f_.ncclRedOpDestroy(op, comm_);
    return outcome;
  }

  [[nodiscard]] Outcome reduce_by(Op op, const Elements& elements) {
    const std::size_t count = c_.count * elements.each;
    if (c_.kind == CollectiveKind::reduce) {
      return f_.ncclReduce(c_.in, c_.out, count, elements.type, op, c_.root, comm_, stream_);
    }
    if (c_.kind == CollectiveKind::all_reduce && c_.pieces.empty()) {
      return f_.ncclAllReduce(c_.in, c_.out, count, elements.type, op, comm_, stream_);
    }
    if (c_.kind == CollectiveKind::all_reduce) {
      return together([&] {
        for (const Piece& each : c_.pieces) {
          if (each.count == 0) continue;
          note(f_.ncclAllReduce(each.data, each.data, each.count * elements.each, elements.type, op,
                                comm_, stream_));
        }
      });
    }
    if (c_.counts.empty()) {
      return f_.ncclReduceScatter(c_.in, c_.out, count, elements.type, op, comm_, stream_);
    }
    return together([&] {
      each_part(c_.in, c_.counts, [&](int rank, std::byte* at, std::size_t part) {
        note(f_.ncclReduce(at, c_.out, part * elements.each, elements.type, op, rank, comm_,
                           stream_));
      });
    });
  }

  Outcome broadcast(const void* in, void* out, std::size_t count) {
    return f_.ncclBroadcast(is_root() ? in : out, out, bytes(count), uint8, c_.root, comm_,
                            stream_);
  }
  Outcome broadcast_pieces() {
    return together([&] {
      for (const Piece& each : c_.pieces) {
        if (each.count > 0) note(broadcast(each.data, each.data, each.count));
      }
    });
  }

  Outcome gather_all() {
    return together([&] {
      each_part(c_.out, c_.counts, [&](int rank, std::byte* at, std::size_t count) {
        const bool is_own = static_cast<std::uint32_t>(rank) == position_.rank;
        note(f_.ncclBroadcast(is_own ? c_.in : at, at, bytes(count), uint8, rank, comm_, stream_));
      });
    });
  }

  void send(const void* from, std::size_t count, int peer) {
    if (count > 0) note(f_.ncclSend(from, bytes(count), uint8, peer, comm_, stream_));
  }
  void receive(void* to, std::size_t count, int peer) {
    if (count > 0) note(f_.ncclRecv(to, bytes(count), uint8, peer, comm_, stream_));
  }
  [[nodiscard]] bool is_there(int rank, const void* larger, const void* smaller) const noexcept {
    return static_cast<std::uint32_t>(rank) == position_.rank && larger == smaller;
  }

  /// The root does for_each for each part of all; then every rank does for_own. The root does
  /// neither for its own part where that is in place.
  template <class ForEach, class ForOwn>
  Outcome by_root(const void* all, const void* own, ForEach for_each, ForOwn for_own) {
    return together([&] {
      bool is_in_place = false;
      if (is_root()) {
        each_part(all, c_.counts, [&](int rank, std::byte* at, std::size_t count) {
          if (is_there(rank, at, own)) {
            is_in_place = true;
          } else {
            for_each(at, count, rank);
          }
        });
      }
      if (!is_in_place) for_own();
    });
  }

  Outcome gather() {
    return by_root(
        c_.out, c_.in,
        [&](std::byte* at, std::size_t count, int rank) { receive(at, count, rank); },
        [&] { send(c_.in, part(position_.rank), c_.root); });
  }

  Outcome scatter() {
    return by_root(
        c_.in, c_.out, [&](std::byte* at, std::size_t count, int rank) { send(at, count, rank); },
        [&] { receive(c_.out, part(position_.rank), c_.root); });
  }

  Outcome exchange() {
    return together([&] {
      each_part(c_.in, c_.counts,
                [&](int rank, std::byte* at, std::size_t count) { send(at, count, rank); });
      each_part(c_.out, c_.counts_from,
                [&](int rank, std::byte* at, std::size_t count) { receive(at, count, rank); });
    });
  }

  const Functions& f_;
  const Collective& c_;
  const Position position_;
  Handle comm_;
  StreamHandle stream_;
  Outcome outcome_ = success;
};

}  // namespace

bool can(const Collective& collective) noexcept {
  if (collective.kind == CollectiveKind::scan || collective.kind == CollectiveKind::exscan) {
    return false;
  }
  if (!reduces(collective.kind)) return true;
  const ReduceOp op = collective.reduction.op;
  const bool is_complex = collective.type == DataType::c64 || collective.type == DataType::c128;
  if (!numbers(collective.type) || !plain_op(op)) return false;
  if (is_complex && (op == ReduceOp::product || op == ReduceOp::min || op == ReduceOp::max)) {
    return false;
  }
  const bool is_divided = op == ReduceOp::average || op == ReduceOp::premul_sum;
  return !is_divided || !is_integer(collective.type);
}

Outcome call(const Functions& functions, const Collective& collective, const Position& position,
             Handle comm, StreamHandle stream, void* token) {
  return Caller(functions, collective, position, comm, stream).call(token);
}

}  // namespace hocket::nccl
