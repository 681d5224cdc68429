#include "reduce/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "hocket/hocket.hpp"

#include "support/catch.hpp"
#include "support/reference.hpp"

namespace hocket::reduce {
namespace {

using testing::Bytes;

constexpr std::byte guard{0xa5};
constexpr std::size_t guard_bytes = 128;

/// Memory at a chosen distance from a 128-byte boundary, with guards on both sides.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment)
      : memory_(bytes + misalignment + 3 * guard_bytes, guard), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = 2 * guard_bytes - address % guard_bytes + misalignment;
  }
  Buffer(const std::byte* from, std::size_t bytes, std::size_t misalignment)
      : Buffer(bytes, misalignment) {
    std::copy_n(from, bytes, data());
  }
  std::byte* data() { return memory_.data() + begin_; }
  bool guards_hold() const {
    const auto is_guard = [](std::byte byte) { return byte == guard; };
    const auto end = memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + bytes_);
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(begin_),
                       is_guard) &&
           std::all_of(end, memory_.end(), is_guard);
  }

 private:
  Bytes memory_;
  std::size_t begin_ = 0;
  std::size_t bytes_;
};

enum class Alias { none, a, b };

struct Case {
  DataType type;
  ReduceOp op;
  const InstructionSet* set;
  std::size_t count;
  std::size_t misalignment;
  Alias alias;
};

std::string describe(const Case& test) {
  return std::string(name(test.type)) + " " + std::string(name(test.op)) + " " +
         std::string(test.set->name) + " count " + std::to_string(test.count) + " misaligned by " +
         std::to_string(test.misalignment) + " alias " +
         std::to_string(static_cast<int>(test.alias));
}

/// Runs one case on the first elements of a and b; "" when the result has the expected bits,
/// nothing beside it changed, and the operands are as before.
std::string run(const Case& test, const Reduction& reduction, const Bytes& a, const Bytes& b,
                const Bytes& expected) {
  const std::size_t bytes = test.count * size_of(test.type);
  Buffer in_a(a.data(), bytes, test.misalignment);
  Buffer in_b(b.data(), bytes, (test.misalignment * 3) % guard_bytes);
  Buffer apart(bytes, (test.misalignment * 5) % guard_bytes);
  Buffer& out = test.alias == Alias::a ? in_a : test.alias == Alias::b ? in_b : apart;
  reduction.combine(out.data(), in_a.data(), in_b.data(), test.count);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (out.data()[i] == expected[i]) continue;
    return describe(test) + ": element " + std::to_string(i / size_of(test.type)) + " is wrong";
  }
  if (!in_a.guards_hold() || !in_b.guards_hold() || !apart.guards_hold()) {
    return describe(test) + ": wrote beside the result";
  }
  if (test.alias != Alias::a && !std::equal(in_a.data(), in_a.data() + bytes, a.data())) {
    return describe(test) + ": changed an operand";
  }
  if (test.alias != Alias::b && !std::equal(in_b.data(), in_b.data() + bytes, b.data())) {
    return describe(test) + ": changed an operand";
  }
  return "";
}

Reduction make(DataType type, ReduceOp op, const InstructionSet& set) {
  return *Reduction::make({.type = type, .op = op}, set);
}

/// Calls function(type, op) for every pair that is defined for two elements.
template <class Function>
void for_each_defined(const Function& function) {
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      if (testing::is_defined(type, op)) function(type, op);
    }
  }
}

TEST_CASE("every type, op and instruction set gives the reference's bits") {
  constexpr std::size_t elements = 3000;
  for_each_defined([&](DataType type, ReduceOp op) {
    std::mt19937_64 random(1);
    const Bytes a = testing::interesting_elements(type, elements, random);
    const Bytes b = testing::interesting_elements(type, elements, random);
    const Bytes expected = testing::reference_combine(type, op, a, b);
    for (const InstructionSet& set : instruction_sets()) {
      const Case test{type, op, &set, elements, 0, Alias::none};
      CHECK(run(test, make(type, op, set), a, b, expected) == "");
    }
  });
}

TEST_CASE("any count, alignment and aliasing") {
  std::vector<std::size_t> counts = {255, 256, 257, 511, 513, 600};
  for (std::size_t count = 0; count <= 140; ++count) counts.push_back(count);
  for_each_defined([&](DataType type, ReduceOp op) {
    std::mt19937_64 random(2);
    const Bytes a = testing::interesting_elements(type, counts[5], random);
    const Bytes b = testing::interesting_elements(type, counts[5], random);
    const Bytes expected = testing::reference_combine(type, op, a, b);
    std::string wrong;
    for (const InstructionSet& set : instruction_sets()) {
      const Reduction reduction = make(type, op, set);
      for (const std::size_t count : counts) {
        for (const Alias alias : {Alias::none, Alias::a, Alias::b}) {
          const std::size_t misalignment = random() % 64;
          wrong += run({type, op, &set, count, misalignment, alias}, reduction, a, b, expected);
        }
      }
    }
    CHECK(wrong == "");
  });
}

TEST_CASE("the order of the operands does not change a bit") {
  for_each_defined([&](DataType type, ReduceOp op) {
    std::mt19937_64 random(3);
    const Bytes a = testing::interesting_elements(type, 2000, random);
    const Bytes b = testing::interesting_elements(type, 2000, random);
    for (const InstructionSet& set : instruction_sets()) {
      Bytes ab(a.size());
      Bytes ba(a.size());
      make(type, op, set).combine(ab.data(), a.data(), b.data(), 2000);
      make(type, op, set).combine(ba.data(), b.data(), a.data(), 2000);
      INFO(name(type) << " " << name(op) << " " << set.name);
      CHECK(ab == ba);
    }
  });
}

TEST_CASE("all pairs of 8-bit elements") {
  Bytes a;
  Bytes b;
  for (int i = 0; i < 0x10000; ++i) {
    a.push_back(static_cast<std::byte>(i >> 8));
    b.push_back(static_cast<std::byte>(i));
  }
  for_each_defined([&](DataType type, ReduceOp op) {
    if (size_of(type) != 1) return;
    const Bytes expected = testing::reference_combine(type, op, a, b);
    for (const InstructionSet& set : instruction_sets()) {
      CHECK(run({type, op, &set, a.size(), 0, Alias::none}, make(type, op, set), a, b, expected) ==
            "");
    }
  });
}

TEST_CASE("all f16 and bf16 values against some of each sort") {
  std::mt19937_64 random(4);
  for (const DataType type : {DataType::f16, DataType::bf16}) {
    Bytes a(std::size_t{2} * 0x10000 * 4);
    for (std::size_t i = 0; i < a.size() / 2; ++i) {
      const auto code = static_cast<std::uint16_t>(i);
      std::memcpy(a.data() + 2 * i, &code, 2);
    }
    const Bytes b = testing::interesting_elements(type, a.size() / 2, random);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
      const Bytes expected = testing::reference_combine(type, op, a, b);
      for (const InstructionSet& set : instruction_sets()) {
        const Case test{type, op, &set, a.size() / 2, 0, Alias::none};
        CHECK(run(test, make(type, op, set), a, b, expected) == "");
      }
    }
  }
}

TEST_CASE("large results bypass the cache and are still right") {
  struct Large {
    DataType type;
    ReduceOp op;
  };
  for (const auto& [type, op] :
       {Large{DataType::f32, ReduceOp::sum}, Large{DataType::u8, ReduceOp::max},
        Large{DataType::bf16, ReduceOp::sum}, Large{DataType::f8e4m3, ReduceOp::min},
        Large{DataType::u64, ReduceOp::bit_xor}, Large{DataType::c64, ReduceOp::product},
        Large{DataType::c128, ReduceOp::product}}) {
    constexpr std::size_t pattern_bytes = std::size_t{64} * 1024;
    std::mt19937_64 random(5);
    const std::size_t pattern = pattern_bytes / size_of(type);
    const Bytes a_once = testing::interesting_elements(type, pattern, random);
    const Bytes b_once = testing::interesting_elements(type, pattern, random);
    const Bytes expected_once = testing::reference_combine(type, op, a_once, b_once);
    const std::size_t repeats = 130;  // a little over 8 MiB
    Bytes a;
    Bytes b;
    Bytes expected;
    for (std::size_t i = 0; i < repeats; ++i) {
      a.insert(a.end(), a_once.begin(), a_once.end());
      b.insert(b.end(), b_once.begin(), b_once.end());
      expected.insert(expected.end(), expected_once.begin(), expected_once.end());
    }
    const std::size_t count = a.size() / size_of(type) - 3;
    for (const InstructionSet& set : instruction_sets()) {
      for (const std::size_t misalignment :
           {std::size_t{0}, size_of(type), size_of(type) / 2, std::size_t{1}}) {
        CHECK(run({type, op, &set, count, misalignment, Alias::none}, make(type, op, set), a, b,
                  expected) == "");
      }
    }
  }
}

TEST_CASE("premul_sum multiplies every contribution") {
  for (const DataType type : all_data_types()) {
    for (const InstructionSet& set : instruction_sets()) {
      for (const double factor : {3.0, -1.0, 0.25}) {
        const auto reduction =
            Reduction::make({.type = type, .op = ReduceOp::premul_sum, .factor = factor}, set);
        INFO(name(type) << " times " << factor << " " << set.name);
        if (type == DataType::boolean || (type <= DataType::u64 && factor == 0.25)) {
          CHECK(!reduction.ok());
          continue;
        }
        REQUIRE(reduction.ok());
        CHECK(reduction->prepares());
        CHECK(!reduction->finishes());
        std::mt19937_64 random(6);
        const Bytes in = testing::interesting_elements(type, 1001, random);
        Bytes out(in.size());
        reduction->prepare(out.data(), in.data(), 1001);
        CHECK(out == testing::reference_multiply(type, in, factor));
        Bytes in_place = in;
        reduction->prepare(in_place.data(), in_place.data(), 1001);
        CHECK(in_place == out);
      }
    }
  }
}

TEST_CASE("average divides, before the sum where the sum would overflow") {
  const int ranks = GENERATE(1, 2, 7, 1000);
  for (const DataType type : all_data_types()) {
    if (type == DataType::boolean) continue;
    for (const InstructionSet& set : instruction_sets()) {
      const auto reduction =
          Reduction::make({.type = type, .op = ReduceOp::average, .contributions = ranks}, set);
      INFO(name(type) << " of " << ranks << " " << set.name);
      REQUIRE(reduction.ok());
      const bool before =
          type == DataType::f16 || type == DataType::f8e4m3 || type == DataType::f8e5m2;
      CHECK(reduction->prepares() == before);
      CHECK(reduction->finishes() != before);
      std::mt19937_64 random(7);
      const Bytes in = testing::interesting_elements(type, 1001, random);
      Bytes out(in.size());
      before ? reduction->prepare(out.data(), in.data(), 1001)
             : reduction->finish(out.data(), in.data(), 1001);
      CHECK(out == testing::reference_divide(type, in, ranks));
    }
  }
}

TEST_CASE("scaling at any count, alignment and in place") {
  for (const DataType type : all_data_types()) {
    if (type == DataType::boolean) continue;
    std::mt19937_64 random(9);
    const Bytes in = testing::interesting_elements(type, 140, random);
    const Bytes expected = testing::reference_multiply(type, in, 3);
    for (const InstructionSet& set : instruction_sets()) {
      const auto reduction =
          Reduction::make({.type = type, .op = ReduceOp::premul_sum, .factor = 3}, set);
      REQUIRE(reduction.ok());
      bool is_right = true;
      for (std::size_t count = 0; count <= 140; ++count) {
        const std::size_t bytes = count * size_of(type);
        Buffer from(in.data(), bytes, random() % 64);
        Buffer to(bytes, random() % 64);
        reduction->prepare(to.data(), from.data(), count);
        reduction->prepare(from.data(), from.data(), count);
        is_right = is_right && std::equal(to.data(), to.data() + bytes, expected.data()) &&
                   std::equal(from.data(), from.data() + bytes, expected.data()) &&
                   to.guards_hold() && from.guards_hold();
      }
      INFO(name(type) << " " << set.name);
      CHECK(is_right);
    }
  }
}

TEST_CASE("the average of equal values is that value") {
  const auto reduction =
      Reduction::make({.type = DataType::f32, .op = ReduceOp::average, .contributions = 49});
  const float value = 1.25f;
  float sum = value;
  for (int i = 1; i < 49; ++i) reduction->combine(&sum, &sum, &value, 1);
  reduction->finish(&sum, &sum, 1);
  CHECK(sum == value);
}

TEST_CASE("a limit on instructions takes the widest set within it") {
  const InstructionSet sets[] = {{.name = "avx2"}, {.name = "sse4"}, {.name = "none"}};
  CHECK(widest_within("best", sets).name == "avx2");
  CHECK(widest_within("avx512", sets).name == "avx2");
  CHECK(widest_within("sse4", sets).name == "sse4");
  CHECK(widest_within("neon", sets).name == "none");
  CHECK(widest_within("none", sets).name == "none");
  const InstructionSet newer[] = {{.name = "AVX1024"}, {.name = "avx512"}};
  CHECK(widest_within("best", newer).name == "AVX1024");
  CHECK(widest_within("avx512", newer).name == "avx512");
  CHECK(widest_within("none", newer).name == "avx512");
}

#ifdef __SSE2__
TEST_CASE("f16 and 8-bit results are right also where subnormal f32 count as zero") {
  constexpr unsigned flush_to_zero_and_denormals_are_zero = 0x8040;
  std::mt19937_64 random(8);
  for (const DataType type : {DataType::f16, DataType::f8e4m3, DataType::f8e5m2}) {
    const Bytes a = testing::interesting_elements(type, 3000, random);
    const Bytes b = testing::interesting_elements(type, 3000, random);
    const Bytes expected = testing::reference_combine(type, ReduceOp::sum, a, b);
    for (const InstructionSet& set : instruction_sets()) {
      Bytes out(a.size());
      const unsigned before = __builtin_ia32_stmxcsr();
      __builtin_ia32_ldmxcsr(before | flush_to_zero_and_denormals_are_zero);
      make(type, ReduceOp::sum, set).combine(out.data(), a.data(), b.data(), 3000);
      __builtin_ia32_ldmxcsr(before);
      INFO(name(type) << " " << set.name);
      CHECK(out == expected);
    }
  }
}
#endif

TEST_CASE("a custom op is the caller's function") {
  const auto subtract = [](void* context, void* out, const void* a, const void* b,
                           std::size_t count, DataType type) {
    CHECK(type == DataType::i32);
    ++*static_cast<int*>(context);
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<int*>(out)[i] = static_cast<const int*>(a)[i] - static_cast<const int*>(b)[i];
    }
  };
  int calls = 0;
  const auto reduction = Reduction::make({.type = DataType::i32,
                                          .op = ReduceOp::custom,
                                          .custom = {.function = subtract, .context = &calls}});
  int a[] = {5, 7};
  const int b[] = {1, 2};
  reduction->combine(a, a, b, 2);
  CHECK(calls == 1);
  CHECK(a[0] == 4);
  CHECK(a[1] == 5);
}

TEST_CASE("what is not defined is refused with its reason") {
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      if (op == ReduceOp::average || op == ReduceOp::premul_sum || op == ReduceOp::custom) continue;
      const auto reduction = Reduction::make({.type = type, .op = op});
      INFO(name(type) << " " << name(op));
      CHECK(reduction.ok() == testing::is_defined(type, op));
      if (reduction.ok()) continue;
      CHECK(reduction.status().code() == StatusCode::unsupported);
      CHECK(std::string(reduction.status().what()).find(name(type)) != std::string::npos);
    }
  }
  const auto code = [](const ReductionSpec& spec) { return Reduction::make(spec).status().code(); };
  CHECK(code({.op = ReduceOp::custom}) == StatusCode::invalid_argument);
  CHECK(code({.op = ReduceOp::average, .contributions = 0}) == StatusCode::invalid_argument);
  CHECK(code({.type = static_cast<DataType>(99)}) == StatusCode::invalid_argument);
  CHECK(code({.op = static_cast<ReduceOp>(-1)}) == StatusCode::invalid_argument);
  CHECK(code({.op = ReduceOp::premul_sum, .factor = 1e300}) == StatusCode::invalid_argument);
  CHECK(code({.op = ReduceOp::premul_sum, .factor = NAN}) == StatusCode::invalid_argument);
  CHECK(code({.type = DataType::f64, .op = ReduceOp::premul_sum, .factor = 1e300}) ==
        StatusCode::ok);
  CHECK(code({.type = DataType::i64, .op = ReduceOp::premul_sum, .factor = 0x1p60}) ==
        StatusCode::invalid_argument);
  CHECK(code({.type = DataType::boolean, .op = ReduceOp::average}) == StatusCode::unsupported);
}

TEST_CASE("reduce_local is typed and checks its arguments") {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {10, 20, 30};
  std::vector<float> out(3);
  reduce_local(out, a, b, ReduceOp::sum);
  CHECK(out == std::vector<float>{11, 22, 33});
  reduce_local(out, out, b, ReduceOp::max);
  CHECK(out == std::vector<float>{11, 22, 33});

  CHECK_THROWS_AS(reduce_local(out, a, std::span(b).first(2), ReduceOp::sum), InvalidArgument);
  CHECK_THROWS_AS(reduce_local(out, a, b, ReduceOp::bit_and), Unsupported);
  CHECK_THROWS_AS(reduce_local(out, a, b, ReduceOp::average), Unsupported);
  float overlapping[4] = {};
  CHECK_THROWS_AS(
      reduce_local(overlapping + 1, overlapping, overlapping, 3, DataType::f32, ReduceOp::sum),
      InvalidArgument);
  CHECK_THROWS_AS(reduce_local(nullptr, a.data(), b.data(), 3, DataType::f32, ReduceOp::sum),
                  InvalidArgument);
  CHECK_NOTHROW(reduce_local(nullptr, nullptr, nullptr, 0, DataType::f32, ReduceOp::sum));
  CHECK_THROWS_AS(reduce_local(nullptr, nullptr, nullptr, SIZE_MAX, DataType::f32, ReduceOp::sum),
                  InvalidArgument);
}

}  // namespace
}  // namespace hocket::reduce
