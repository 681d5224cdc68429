// Runs a hot path so often, for a tool that counts instructions
// (tests/integration/instructions_test.py).
//
// usage: hot_paths            lists the paths
//        hot_paths PATH RUNS
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "choose/network.hpp"
#include "choose/selector.hpp"
#include "engine/transports.hpp"
#include "plan_case.hpp"
#include "record/recorder.hpp"
#include "reduce/reduction.hpp"

namespace hocket::bench {
namespace {

using Run = std::function<void()>;

Run plan_run(const PlanSubject& subject) {
  return [it = std::make_shared<PlanCase>(subject)] { it->run(); };
}

/// A call and its end, at times that are known anyway.
Run record_operation() {
  auto opened = record::Recorder::open({});
  if (!opened.ok()) std::abort();
  return [recorder = std::shared_ptr<record::Recorder>(std::move(*opened)), number = 0U]() mutable {
    const Instant now(std::chrono::seconds(1));
    const std::uint64_t sequence =
        recorder->begin({.number = ++number, .tag = 7, .bytes = 1024, .begun = now});
    recorder->end(sequence, now, true);
  };
}

Run plan_build(const PlanSubject& subject) {
  return [subject] {
    const auto* algorithm = plan::find_algorithm(subject.operation, subject.algorithm);
    (void)plan::build(*algorithm, {.operation = subject.operation, .size = subject.size}, 1);
  };
}

Run choice() {
  const auto network = choose::find_preset(choose::usual_network).value();
  return [it = std::make_shared<choose::Selector>(network, std::vector<choose::Rule>())] {
    (void)it->choose({.size = 16}, 1 << 20);
  };
}

Run sum(std::size_t elements) {
  const auto memory = std::make_shared<std::vector<float>>(2 * elements, 1.0F);
  const auto reduction = *reduce::Reduction::make({.type = DataType::f32, .op = ReduceOp::sum});
  return [=] {
    auto* const one = reinterpret_cast<std::byte*>(memory->data());
    reduction.combine(one, one, one + elements * sizeof(float), elements);
  };
}

/// Two ends of a connection in one thread, so that what is sent is there when it is looked for.
class TcpPair {
 public:
  explicit TcpPair(std::size_t bytes) : memory_{Memory(bytes), Memory(bytes)} {
    const TransportKind& tcp = *engine::built_in_transports().back();  // the last resort
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      ends_[rank] = tcp.make({.rank = rank, .size = 2, .secret = "of both"}).value();
    }
    const std::array<std::string, 2> addresses = {ends_[0]->address(), ends_[1]->address()};
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      if (!ends_[rank]->connect(addresses).ok()) std::abort();
      channels_[rank] = ends_[rank]->open(1 - rank, 0).value();
    }
  }

  void message(std::size_t from) {
    post(1 - from, TransportOp::Kind::recv);
    post(from, TransportOp::Kind::send);
    for (int left = 2; left > 0;) left -= poll(0) + poll(1);
  }

 private:
  using Memory = std::vector<std::byte>;

  void post(std::size_t end, TransportOp::Kind kind) {
    const TransportOp op = {.kind = kind,
                            .channel = channels_[end],
                            .first = {memory_[end].data(), memory_[end].size()}};
    if (ends_[end]->post({&op, 1}) != 1) std::abort();
  }
  int poll(std::size_t end) {
    std::array<TransportCompletion, 8> over;
    const std::size_t count = ends_[end]->poll(over);
    for (std::size_t i = 0; i < count; ++i) {
      if (!over[i].status.ok()) std::abort();
    }
    return static_cast<int>(count);
  }

  std::array<Memory, 2> memory_;
  std::array<std::unique_ptr<Transport>, 2> ends_;
  std::array<ChannelId, 2> channels_ = {};
};

Run tcp_trip(std::size_t bytes) {
  const auto pair = std::make_shared<TcpPair>(bytes);
  pair->message(0);  // connects them
  return [pair] {
    pair->message(0);
    pair->message(1);
  };
}

struct Path {
  std::string_view name;
  Run (*prepare)();
};

using plan::Operation;

constexpr Path paths[] = {
    {"run all_gather ring of 2",
     [] {
       return plan_run({Operation::all_gather, "ring", 2});
     }},
    {"run all_reduce ring of 64",
     [] {
       return plan_run({Operation::all_reduce, "ring", 64});
     }},
    {"run all_reduce circulant of 1000",
     [] {
       return plan_run({Operation::all_reduce, "circulant", 1000});
     }},
    {"run barrier of 1000",
     [] {
       return plan_run({Operation::barrier, "dissemination", 1000});
     }},
    {"build all_reduce ring of 64",
     [] {
       return plan_build({Operation::all_reduce, "ring", 64});
     }},
    {"build all_reduce ring of 1024",
     [] {
       return plan_build({Operation::all_reduce, "ring", 1024});
     }},
    {"build all_reduce circulant of 64",
     [] {
       return plan_build({Operation::all_reduce, "circulant", 64});
     }},
    {"choose for 1M of 16 ranks", [] { return choice(); }},
    {"record an operation", [] { return record_operation(); }},
    {"sum of 1000 f32", [] { return sum(1000); }},
    {"tcp trip of 8 B", [] { return tcp_trip(8); }},
    {"tcp trip of 16 KiB", [] { return tcp_trip(16 << 10); }},
};

/// Only what happens in here is counted.
[[gnu::noinline]] void repeat(const Run& work, long runs) {
  for (long i = 0; i < runs; ++i) work();
}

int run(std::string_view name, long runs) {
  for (const Path& path : paths) {
    if (path.name != name) continue;
    const Run work = path.prepare();
    for (int i = 0; i < 3; ++i) work();
    repeat(work, runs);
    return 0;
  }
  std::fprintf(stderr, "hot_paths: no path is called so\n");
  return 2;
}

}  // namespace
}  // namespace hocket::bench

int main(int count, char** words) {
  using namespace hocket::bench;
  if (count == 3) return run(words[1], std::strtol(words[2], nullptr, 10));
  for (const Path& path : paths) std::puts(path.name.data());
}
