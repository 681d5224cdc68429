// Callbacks that throw. A custom op that throws ends its operation with the text of the exception
// on its own rank; the communicator fails on all ranks, soon, and others go on. What on_end throws
// is logged, and changes nothing. All ranks of a world run it; it prints what is wrong, and fails
// then.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"
#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::StatusCode;
using hocket::Work;
using hocket::testing::failure_of;
using hocket::testing::Report;
using hocket::testing::Stopwatch;

constexpr std::string_view text = "the disk is full";
constexpr auto timeout = 100s;
constexpr auto soon = 30s;                      // far less than the time-out
constexpr std::size_t sizes[] = {16, 300'000};  // the second is several segments

/// A custom op that throws, and whether it has on this rank.
struct Thrower {
  bool is_unknown = false;
  std::atomic<bool> has_thrown = false;

  static void combine(void* context, void* /*out*/, const void* /*a*/, const void* /*b*/,
                      std::size_t /*count*/, hocket::DataType /*type*/) {
    auto& self = *static_cast<Thrower*>(context);
    self.has_thrown = true;
    if (self.is_unknown) throw 42;
    throw std::runtime_error(std::string(text));
  }
  [[nodiscard]] hocket::Reduction op() {
    hocket::Reduction reduction(hocket::ReduceOp::custom);
    reduction.custom = combine;
    reduction.context = this;
    return reduction;
  }
  [[nodiscard]] std::string_view expected() const {
    return is_unknown ? "an exception of an unknown type" : text;
  }
};

/// Until the thread in the background has ended it: this one does not move it on.
void leave_to_background(const std::atomic<bool>& has_ended) {
  const Stopwatch watch;
  while (!has_ended && watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
}

struct Way {
  std::string_view name;
  void (*run)(Communicator& group, Collective operation);
};

constexpr Way ways[] = {
    {"run", [](Communicator& group, Collective operation) { group.run(operation); }},
    {"start", [](Communicator& group, Collective operation) { group.start(operation).wait(); }},
    {"background",
     [](Communicator& group, Collective operation) {
       std::atomic<bool> has_ended = false;
       operation.options.on_end_context = &has_ended;
       operation.options.on_end = [](void* context, StatusCode) {
         *static_cast<std::atomic<bool>*>(context) = true;
       };
       Work work = group.start(operation);
       leave_to_background(has_ended);
       work.wait();
     }},
    {"prepared run",
     [](Communicator& group, Collective operation) { group.prepare(operation).run(); }},
    {"prepared start",
     [](Communicator& group, Collective operation) {
       hocket::Prepared prepared = group.prepare(operation);
       prepared.start().wait();
     }},
};

void check_op(Communicator& world, Report& report, const Way& way, std::size_t count,
              bool is_unknown) {
  const std::string what = fmt::format("{} of {}{}", way.name, count, is_unknown ? ", int" : "");
  Communicator group = world.dup();
  Thrower thrower{.is_unknown = is_unknown};
  std::vector<float> values(count, 1.0F);
  const Stopwatch watch;
  const Collective operation =
      Collective::all_reduce(values, values, thrower.op(), {.timeout = timeout});
  const hocket::Status failure = failure_of([&] { way.run(group, operation); });
  if (thrower.has_thrown) {
    report.expect(failure.code() == StatusCode::aborted,
                  fmt::format("{}: code {}", what, name(failure.code())));
    report.expect(failure.to_string().find(thrower.expected()) != std::string::npos,
                  fmt::format("{}: not the text: {}", what, failure.to_string()));
  }
  const hocket::Status later =
      failure_of([&] { group.all_reduce(values, {}, {.timeout = timeout}); });
  report.expect(!later.ok(), what + ": the communicator goes on");
  report.expect(watch.elapsed() < soon, what + ": it takes as long as the time-out");
  float throwers = thrower.has_thrown ? 1.0F : 0.0F;
  world.all_reduce(std::span(&throwers, 1));
  report.expect(throwers > 0, what + ": no op was called");
}

/// A function that a C++ compiler made, called through the C ABI.
int run_c() {
  Report report;
  hocket_comm* world = nullptr;
  report.expect(hocket_join(nullptr, &world) == HOCKET_OK, "join");
  bool has_thrown = false;
  std::vector<float> values(sizes[0], 1.0F);
  hocket_collective operation = {};
  operation.struct_size = sizeof operation;
  operation.kind = HOCKET_KIND_ALL_REDUCE;
  operation.in = operation.out = values.data();
  operation.count = values.size();
  operation.dtype = HOCKET_F32;
  operation.op = HOCKET_OP_CUSTOM;
  operation.custom_context = &has_thrown;
  operation.custom = [](void* context, void*, const void*, const void*, size_t, hocket_dtype) {
    *static_cast<bool*>(context) = true;
    throw std::runtime_error(std::string(text));
  };
  hocket_work* work = nullptr;
  report.expect(hocket_start(world, &operation, &work) == HOCKET_OK, "start");
  const hocket_status status = hocket_work_wait(work, 0);
  if (has_thrown) {
    report.expect(status == HOCKET_ABORTED, fmt::format("status {}", status));
    report.expect(std::string_view(hocket_last_error()).find(text) != std::string_view::npos,
                  hocket_last_error());
  }
  report.expect(hocket_barrier(world) != HOCKET_OK, "the communicator goes on");
  hocket_work_free(work);
  hocket_comm_free(world);
  return report.status();
}

std::atomic<int> lines = 0;  // of the log, that tell of on_end

void check_on_end(Communicator& world, Report& report) {
  hocket::set_log_sink(
      [](void*, hocket_log_level, const char* line) {
        if (std::string_view(line).find(text) != std::string_view::npos) ++lines;
      },
      nullptr);
  const auto throw_at_end = [](void*, StatusCode) { throw std::runtime_error(std::string(text)); };
  const hocket::OperationOptions options = {.timeout = timeout, .on_end = throw_at_end};
  std::vector<float> values(sizes[0], 1.0F);
  const Collective operation = Collective::all_reduce(values, values, {}, options);
  int ends = 0;
  for (const Way& way : ways) {
    if (way.name == "background") continue;  // has an on_end of its own
    const hocket::Status failure = failure_of([&] { way.run(world, operation); });
    report.expect(failure.ok(), fmt::format("{}: {}", way.name, failure.to_string()));
    ++ends;
  }
  Work work = world.start(operation);
  const Stopwatch watch;
  while (lines <= ends && watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
  work.wait();
  report.expect(lines == ends + 1, fmt::format("{} lines of {}", lines.load(), ends + 1));
  hocket::set_log_sink(nullptr, nullptr);
}

}  // namespace

int main(int argc, char** /*argv*/) {
  if (argc > 1) return run_c();
  Report report;
  Communicator world = hocket::join();
  for (const Way& way : ways) {
    for (const std::size_t count : sizes) {
      for (const bool is_unknown : {false, true}) check_op(world, report, way, count, is_unknown);
    }
  }
  check_on_end(world, report);
  return report.status();
}
