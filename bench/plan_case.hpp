// The plan of rank 0, with an element in each chunk, on a transport that moves nothing: ready to be
// run again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/executor.hpp"
#include "null_transport.hpp"
#include "plan/catalog.hpp"

namespace hocket::bench {

struct PlanSubject {
  plan::Operation operation;
  std::string_view algorithm;
  std::uint32_t size;
};

class PlanCase {
 public:
  explicit PlanCase(const PlanSubject& subject);

  void run() { run_by(executor_); }
  /// What the run asks of its transport, as often and with as many ops at once.
  void call_transport();
  /// The sums and copies of the run.
  void reduce_and_copy();

  [[nodiscard]] std::size_t steps() const { return program_.places().size(); }

 private:
  /// A call of the engine to its transport.
  struct Call {
    bool is_post = false;
    std::size_t ops = 0;
  };
  /// Elements that are summed, or copied, at once.
  struct Row {
    bool is_sum = false;
    std::uint64_t bytes = 0;
  };
  class ObservedTransport;

  void run_by(engine::Executor& executor);

  engine::Program program_;
  engine::Binding binding_;
  NullTransport transport_;
  engine::Executor executor_;
  std::vector<std::byte> in_, out_;
  reduce::Reduction reduction_;
  engine::Group group_;
  engine::Work work_;
  engine::Task task_;
  std::vector<Row> rows_;                                 // of one run
  std::vector<Call> calls_;                               // likewise
  std::vector<TransportOp> ops_;                          // for those
  std::array<TransportCompletion, 64> completions_ = {};  // likewise; as many as the engine takes
};

}  // namespace hocket::bench
