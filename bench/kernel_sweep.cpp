#include "kernel_sweep.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/small_float.hpp"
#include "plain_loops.hpp"
#include "reduce/reduction.hpp"

namespace hocket::bench {

int scaling = 1;

namespace {

/// Three operands on pages of their own, offset so that they don't compete for the same cache sets.
class Operands {
 public:
  explicit Operands(std::size_t bytes) : stride_(bytes + 4096 + 256), memory_(3 * stride_ + 4096) {}

  void* out() { return at(0); }
  void* a() { return at(1); }
  void* b() { return at(2); }

  /// Every element the number 1: sums grow slowly and products not at all, so that long runs of
  /// `a = a op b` meet no subnormal numbers.
  void fill(DataType type, std::size_t bytes) {
    std::byte one[16] = {};
    switch (type) {
      case DataType::f16:
      case DataType::bf16:
        store(one, static_cast<std::uint16_t>(small_float::encode(format_of(type), 1.0f)));
        break;
      case DataType::f8e4m3:
      case DataType::f8e5m2:
        store(one, static_cast<std::uint8_t>(small_float::encode(format_of(type), 1.0f)));
        break;
      case DataType::f32:
      case DataType::c64:
        store(one, 1.0f);
        break;
      case DataType::f64:
      case DataType::c128:
        store(one, 1.0);
        break;
      default:
        one[0] = std::byte{1};  // little-endian integers and bool
    }
    for (void* operand : {out(), a(), b()}) {
      for (std::size_t i = 0; i < bytes; i += size_of(type)) {
        std::memcpy(static_cast<std::byte*>(operand) + i, one, size_of(type));
      }
    }
  }

 private:
  template <class T>
  static void store(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }
  void* at(std::size_t index) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (4096 - address % 4096) % 4096 + index * stride_;
  }

  std::size_t stride_;
  std::vector<std::byte> memory_;
};

/// Makes the compiler believe that the value matters.
void keep(std::size_t value) {
  volatile std::size_t kept = value;
  static_cast<void>(kept);
}

double measure_memcpy(const Level& level, Operands& operands, const MeasureOptions& measuring) {
  const auto copy = [&] { std::memcpy(operands.out(), operands.a(), level.bytes); };
  return measure({copy}, measuring)[0].median;
}

KernelTimes measure_kernel(const reduce::Reduction& reduction, DataType type, ReduceOp op,
                           const Level& level, Operands& operands,
                           const MeasureOptions& measuring) {
  const std::size_t count = level.bytes / size_of(type);
  const PlainLoop plain = plain::find_loop(type, op);
  const PlainLoop native = native::find_loop(type, op);
  operands.fill(type, level.bytes);
  void* const out = operands.out();
  void* const a = operands.a();
  void* const b = operands.b();
  std::size_t sink = 0;
  const auto ours = [&](void* to) {
    if (reduction.prepares()) return reduction.prepare(to, a, count);
    if (reduction.finishes()) return reduction.finish(to, a, count);
    reduction.combine(to, a, b, count);
  };
  const std::vector<Measured> seconds = measure(
      {[&] { ours(out); }, [&] { ours(a); }, [&] { plain(out, a, b, count); },
       [&] { native(out, a, b, count); }, [&] { sink ^= native::read_both(a, b, level.bytes); }},
      measuring);
  keep(sink);
  return {.type = type,
          .op = op,
          .apart = seconds[0].median,
          .in_place = seconds[1].median,
          .plain = seconds[2].median,
          .native = seconds[3].median,
          .read_both = seconds[4].median};
}

}  // namespace

KernelResults run(const KernelSweep& sweep,
                  const std::function<void(const std::string&)>& progress) {
  const auto bytes_max = std::ranges::max(sweep.levels, {}, &Level::bytes).bytes;
  Operands operands(bytes_max);
  KernelResults results;
  operands.fill(DataType::u8, bytes_max);
  for (const Level& level : sweep.levels) {
    progress(fmt::format("memcpy at {}", level.name));
    results.memcpy.push_back(measure_memcpy(level, operands, sweep.measuring));
  }
  for (const DataType type : sweep.types) {
    for (const ReduceOp op : sweep.ops) {
      const auto reduction = reduce::Reduction::make({.type = type, .op = op}, sweep.set);
      if (!reduction.ok() || plain::find_loop(type, op) == nullptr) continue;  // not defined
      progress(fmt::format("{} {}", name(type), name(op)));
      for (std::size_t level = 0; level < sweep.levels.size(); ++level) {
        results.kernels.push_back(
            measure_kernel(*reduction, type, op, sweep.levels[level], operands, sweep.measuring));
        results.kernels.back().level = level;
      }
    }
  }
  return results;
}

}  // namespace hocket::bench
