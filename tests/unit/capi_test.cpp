// The C ABI as a C program sees it, and the part of the C++ API that it is made of.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "hocket/hocket.h"
#include "hocket/hocket.hpp"

#include "base/log.hpp"
#include "support/catch.hpp"

namespace {

using Ints = std::array<std::int32_t, 4>;

/// A reduction that works, so that each test changes one thing.
struct Call {
  Ints a = {1, 2, 3, 4};
  Ints b = {10, 20, 30, 40};
  Ints out = {-1, -1, -1, -1};
  hocket_dtype dtype = HOCKET_I32;
  hocket_op op = HOCKET_OP_SUM;
  std::size_t count = 4;

  hocket_status run() {
    return hocket_reduce_local(out.data(), a.data(), b.data(), count, dtype, op);
  }
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("the version is that of the C++ API") {
  REQUIRE(hocket_version() == hocket::version());
  int number = 0;
  REQUIRE(std::sscanf(hocket_version(), "%d.%d.%d", &number, &number, &number) == 3);
  REQUIRE(hocket_abi_version() == 1);
}

TEST_CASE("statuses, data types and operations have names, unknown ones too") {
  REQUIRE(hocket_status_name(HOCKET_OK) == std::string("ok"));
  REQUIRE(hocket_status_name(HOCKET_PEER_LOST) == std::string("peer lost"));
  REQUIRE(hocket_dtype_name(HOCKET_BF16) == std::string("bf16"));
  REQUIRE(hocket_op_name(HOCKET_OP_PREMUL_SUM) == std::string("premul_sum"));
  for (const int value : {-1, 1000, INT32_MIN, INT32_MAX}) {
    REQUIRE(hocket_status_name(value) == std::string("unknown"));
    REQUIRE(hocket_dtype_name(value) == std::string("unknown"));
    REQUIRE(hocket_op_name(value) == std::string("unknown"));
    REQUIRE(hocket_dtype_size(value) == 0);
  }
  REQUIRE(hocket_dtype_size(HOCKET_F8E4M3) == 1);
  REQUIRE(hocket_dtype_size(HOCKET_C128) == 16);
}

TEST_CASE("reduce_local reduces") {
  Call call;
  REQUIRE(call.run() == HOCKET_OK);
  REQUIRE(call.out == Ints{11, 22, 33, 44});
  call.op = HOCKET_OP_MAX;
  call.count = 2;
  REQUIRE(call.run() == HOCKET_OK);
  REQUIRE(call.out == Ints{10, 20, 33, 44});
}

TEST_CASE("out may be an operand or both") {
  Call call;
  Ints& a = call.a;
  REQUIRE(hocket_reduce_local(a.data(), a.data(), call.b.data(), 4, HOCKET_I32, HOCKET_OP_SUM) ==
          0);
  REQUIRE(a == Ints{11, 22, 33, 44});
  REQUIRE(hocket_reduce_local(a.data(), call.b.data(), a.data(), 4, HOCKET_I32, HOCKET_OP_SUM) ==
          0);
  REQUIRE(a == Ints{21, 42, 63, 84});
  REQUIRE(hocket_reduce_local(a.data(), a.data(), a.data(), 4, HOCKET_I32, HOCKET_OP_SUM) == 0);
  REQUIRE(a == Ints{42, 84, 126, 168});
}

TEST_CASE("any other overlap is refused") {
  std::array<std::uint8_t, 64> memory{};
  std::array<std::uint8_t, 64> other{};
  const auto reduce = [&](std::size_t out, const std::uint8_t* a, const std::uint8_t* b) {
    return hocket_reduce_local(memory.data() + out, a, b, 4, HOCKET_I32, HOCKET_OP_SUM);
  };
  for (const std::size_t offset : {16u + 1u, 16u + 15u, 16u - 1u, 16u - 15u}) {
    CAPTURE(offset);
    REQUIRE(reduce(16, memory.data() + offset, other.data()) == HOCKET_INVALID_ARGUMENT);
    REQUIRE(contains(hocket_last_error(), "reduce_local: out overlaps an operand"));
    REQUIRE(contains(hocket_last_error(), "\n  hint: "));
    REQUIRE(reduce(16, other.data(), memory.data() + offset) == HOCKET_INVALID_ARGUMENT);
  }
  REQUIRE(memory == decltype(memory){});
  REQUIRE(reduce(16, memory.data(), memory.data() + 32) == HOCKET_OK);  // side by side
}

TEST_CASE("nothing may be reduced, from nowhere to nowhere") {
  REQUIRE(hocket_reduce_local(nullptr, nullptr, nullptr, 0, HOCKET_F32, HOCKET_OP_SUM) ==
          HOCKET_OK);
  Call call;
  call.count = 0;
  REQUIRE(call.run() == HOCKET_OK);
  REQUIRE(call.out == Ints{-1, -1, -1, -1});
}

TEST_CASE("what can't be reduced is refused and said") {
  struct Row {
    hocket_dtype dtype;
    hocket_op op;
    std::size_t count;
    hocket_status status;
    std::string_view told;
  };
  constexpr Row rows[] = {
      {HOCKET_I32, HOCKET_OP_AVERAGE, 4, HOCKET_UNSUPPORTED,
       "unsupported: reduce_local: average needs"},
      {HOCKET_I32, HOCKET_OP_PREMUL_SUM, 4, HOCKET_UNSUPPORTED, "reduce_local: premul_sum needs"},
      {HOCKET_I32, HOCKET_OP_CUSTOM, 4, HOCKET_UNSUPPORTED, "reduce_local: custom needs"},
      {HOCKET_F32, HOCKET_OP_BIT_AND, 1, HOCKET_UNSUPPORTED, "bit_and is not defined for f32"},
      {HOCKET_C64, HOCKET_OP_MIN, 1, HOCKET_UNSUPPORTED, "min is not defined for c64"},
      {-1, HOCKET_OP_SUM, 1, HOCKET_INVALID_ARGUMENT, "no such data type or op: -1, 0"},
      {1000, HOCKET_OP_SUM, 1, HOCKET_INVALID_ARGUMENT, "no such data type or op: 1000, 0"},
      {HOCKET_I32, 1000, 1, HOCKET_INVALID_ARGUMENT, "no such data type or op: 4, 1000"},
      {HOCKET_I32, HOCKET_OP_SUM, SIZE_MAX / 4 + 1, HOCKET_INVALID_ARGUMENT,
       "do not fit in memory"},
      {HOCKET_I32, HOCKET_OP_SUM, SIZE_MAX, HOCKET_INVALID_ARGUMENT, "do not fit in memory"},
  };
  for (const Row& row : rows) {
    Call call;
    call.dtype = row.dtype;
    call.op = row.op;
    call.count = row.count;
    CAPTURE(row.told);
    REQUIRE(call.run() == row.status);
    REQUIRE(contains(hocket_last_error(), row.told));
    REQUIRE(std::string_view(hocket_last_error()).starts_with(hocket_status_name(row.status)));
    REQUIRE(call.out == Ints{-1, -1, -1, -1});
  }
}

TEST_CASE("null pointers to something are refused") {
  Ints ints{};
  int* const some = ints.data();
  for (const auto& [out, a, b] : {std::tuple<int*, int*, int*>{nullptr, some, some},
                                  {some, nullptr, some},
                                  {some, some, nullptr}}) {
    REQUIRE(hocket_reduce_local(out, a, b, 4, HOCKET_I32, HOCKET_OP_SUM) ==
            HOCKET_INVALID_ARGUMENT);
    REQUIRE(contains(hocket_last_error(), "reduce_local: a null pointer for 4 elements"));
  }
}

TEST_CASE("the last error stays until the next and belongs to its thread") {
  Call failing;
  failing.op = HOCKET_OP_AVERAGE;
  REQUIRE(failing.run() == HOCKET_UNSUPPORTED);
  const std::string error = hocket_last_error();
  REQUIRE(Call().run() == HOCKET_OK);
  REQUIRE(hocket_last_error() == error);

  std::string before;
  std::string after;
  std::thread([&] {
    before = hocket_last_error();
    Call other;
    other.op = HOCKET_OP_CUSTOM;
    other.run();
    after = hocket_last_error();
  }).join();
  REQUIRE(before == "");
  REQUIRE(contains(after, "custom"));
  REQUIRE(hocket_last_error() == error);
}

TEST_CASE("the log goes to the sink of a C program") {
  using Lines = std::vector<std::pair<hocket_log_level, std::string>>;
  Lines lines;
  hocket_set_log_sink(
      [](void* context, hocket_log_level level, const char* message) {
        static_cast<Lines*>(context)->emplace_back(level, message);
      },
      &lines);
  hocket::log::write(hocket::log::Level::error, "one");
  hocket_set_log_sink(nullptr, nullptr);
  REQUIRE(lines == Lines{{HOCKET_LOG_ERROR, "one"}});
}

TEST_CASE("the C++ API reduces spans and throws") {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {4, 5, 6};
  std::vector<float> out(3);
  hocket::reduce_local(out, a, b, hocket::ReduceOp::product);
  REQUIRE(out == std::vector<float>{4, 10, 18});

  using hocket::ReduceOp;
  const std::span<const float> shorter = std::span(b).first(2);
  REQUIRE_THROWS_AS(hocket::reduce_local(out, a, shorter, ReduceOp::sum), hocket::InvalidArgument);
  REQUIRE_THROWS_AS(hocket::reduce_local(out, shorter, b, ReduceOp::sum), hocket::InvalidArgument);
  REQUIRE_THROWS_AS(hocket::reduce_local(out, a, b, ReduceOp::bit_or), hocket::Unsupported);
  REQUIRE(out == std::vector<float>{4, 10, 18});
}
