#include "plan_case.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "plan/layout.hpp"

namespace hocket::bench {
namespace {

plan::Plan plan_of(const PlanSubject& subject) {
  return plan::build(*plan::find_algorithm(subject.operation, subject.algorithm),
                     {.operation = subject.operation, .size = subject.size}, 0);
}

/// One in each chunk.
std::uint64_t elements(const PlanSubject& subject) {
  return subject.operation == plan::Operation::barrier ? 1 : subject.size;
}

}  // namespace

/// Remembers what it was asked.
class PlanCase::ObservedTransport final : public NullTransport {
 public:
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    calls.push_back({.is_post = true, .ops = ops.size()});
    return NullTransport::post(ops);
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    calls.push_back({});
    return NullTransport::poll(completions);
  }

  std::vector<Call> calls;
};

PlanCase::PlanCase(const PlanSubject& subject)
    : program_(plan_of(subject)),
      binding_(program_, plan::even_sizes(program_.plan().problem, elements(subject)),
               sizeof(float), std::vector<ChannelId>(program_.ports().size())),
      executor_(transport_),
      in_(binding_.in_bytes()),
      out_(binding_.out_bytes()),
      reduction_(*reduce::Reduction::make({.type = DataType::f32, .op = ReduceOp::sum})) {
  task_ = {.binding = &binding_,
           .in = in_.data(),
           .out = out_.data(),
           .reduction = reduction_,
           .group = &group_,
           .work = &work_};
  ObservedTransport observed;
  engine::Executor executor(observed);
  run_by(executor);
  calls_ = std::move(observed.calls);
  for (const Call& call : calls_) ops_.resize(std::max(ops_.size(), call.ops));
  for (const engine::Instruction& it : binding_.code()) {
    const bool is_sum = it.kind == plan::StepKind::recv_reduce || it.kind == plan::StepKind::reduce;
    if (it.bytes >= sizeof(float) && (is_sum || !it.communicates())) {
      rows_.push_back({.is_sum = is_sum, .bytes = it.bytes});
    }
  }
}

void PlanCase::call_transport() {
  for (const Call& call : calls_) {
    if (call.is_post) {
      (void)transport_.post({ops_.data(), call.ops});
    } else {
      (void)transport_.poll(completions_);
    }
  }
}

void PlanCase::reduce_and_copy() {
  for (const Row& row : rows_) {
    if (row.is_sum) {
      reduction_.combine(out_.data(), out_.data(), in_.data(), row.bytes / sizeof(float));
    } else {
      std::memcpy(out_.data(), in_.data(), row.bytes);
    }
  }
}

void PlanCase::run_by(engine::Executor& executor) {
  executor.start(task_);
  while (!work_.is_over()) executor.progress();
}

}  // namespace hocket::bench
