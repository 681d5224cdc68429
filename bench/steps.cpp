#include "steps.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hocket/hocket.hpp"

#include "engine/executor.hpp"
#include "measure.hpp"
#include "null_transport.hpp"
#include "plan/catalog.hpp"
#include "plan/layout.hpp"

namespace hocket::bench {
namespace {

struct Options {
  int rounds = 99;
  bool json = false;
};

struct Subject {
  plan::Operation operation;
  std::string_view algorithm;
  std::uint32_t size;
};

constexpr Subject subjects[] = {
    {plan::Operation::all_gather, "ring", 2},
    {plan::Operation::all_gather, "ring", 64},
    {plan::Operation::all_gather, "direct", 64},
    {plan::Operation::all_reduce, "ring", 64},
    {plan::Operation::all_reduce, "circulant", 1000},
    {plan::Operation::all_to_all, "pairwise", 128},
    {plan::Operation::barrier, "dissemination", 1000},
};

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

/// Remembers what it was asked.
class ObservedTransport final : public NullTransport {
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

/// The plan of rank 0, with an element in each chunk, ready to be run again and again.
class Case {
 public:
  explicit Case(const Subject& subject)
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
      const bool is_sum =
          it.kind == plan::StepKind::recv_reduce || it.kind == plan::StepKind::reduce;
      if (it.bytes >= sizeof(float) && (is_sum || !it.communicates())) {
        rows_.push_back({.is_sum = is_sum, .bytes = it.bytes});
      }
    }
  }

  void run() { run_by(executor_); }

  /// What the run asks of its transport, as often and with as many ops at once.
  void call_transport() {
    for (const Call& call : calls_) {
      if (call.is_post) {
        (void)transport_.post({ops_.data(), call.ops});
      } else {
        (void)transport_.poll(completions_);
      }
    }
  }

  /// The sums and copies of the run.
  void reduce_and_copy() {
    for (const Row& row : rows_) {
      if (row.is_sum) {
        reduction_.combine(out_.data(), out_.data(), in_.data(), row.bytes / sizeof(float));
      } else {
        std::memcpy(out_.data(), in_.data(), row.bytes);
      }
    }
  }

  [[nodiscard]] std::size_t steps() const { return program_.places().size(); }

 private:
  static plan::Plan plan_of(const Subject& subject) {
    return plan::build(*plan::find_algorithm(subject.operation, subject.algorithm),
                       {.operation = subject.operation, .size = subject.size}, 0);
  }

  /// One in each chunk.
  static std::uint64_t elements(const Subject& subject) {
    return subject.operation == plan::Operation::barrier ? 1 : subject.size;
  }

  void run_by(engine::Executor& executor) {
    executor.start(task_);
    while (!work_.is_over()) executor.progress();
  }

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

/// Of a step, in seconds.
struct Cost {
  double median = 0;
  double best = 0;
  double transport = 0;   // of the best one
  double arithmetic = 0;  // likewise
  [[nodiscard]] double engine() const noexcept { return best - transport - arithmetic; }
};

void print_head(const Options& options) {
  fmt::print(
      "The engine on a transport that moves nothing: plans of rank 0, an element in each chunk.\n"
      "{} rounds that take turns, the best of them. The transport's calls and the arithmetic are\n"
      "measured alone, and what is left is the engine's.\n\n"
      "                                    ns a step            of that by\n"
      "operation   algorithm      ranks  steps  best median  transport arithmetic  engine\n",
      options.rounds);
}

std::vector<Cost> measure_all(const std::vector<std::unique_ptr<Case>>& cases, int rounds) {
  std::vector<std::function<void()>> works;
  for (const auto& each : cases) {
    works.emplace_back([it = each.get()] { it->run(); });
    works.emplace_back([it = each.get()] { it->call_transport(); });
    works.emplace_back([it = each.get()] { it->reduce_and_copy(); });
  }
  const std::vector<Measured> measured =
      measure(works, {.rounds = rounds, .batch = std::chrono::milliseconds(1)});
  std::vector<Cost> costs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto steps = static_cast<double>(cases[i]->steps());
    const Measured& whole = measured[3 * i];
    costs.push_back({.median = whole.median / steps,
                     .best = whole.best / steps,
                     .transport = measured[3 * i + 1].best / steps,
                     .arithmetic = measured[3 * i + 2].best / steps});
  }
  return costs;
}

void run(const Options& options) {
  std::vector<std::unique_ptr<Case>> cases;
  for (const Subject& subject : subjects) cases.push_back(std::make_unique<Case>(subject));
  const std::vector<Cost> costs = measure_all(cases, options.rounds);

  nlohmann::ordered_json document = {{"benchmark", "steps"},
                                     {"version", version()},
                                     {"rounds", options.rounds},
                                     {"rows", nlohmann::ordered_json::array()}};
  if (!options.json) print_head(options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [operation, algorithm, size] = subjects[i];
    const Cost& cost = costs[i];
    document["rows"].push_back({{"operation", plan::name(operation)},
                                {"algorithm", algorithm},
                                {"ranks", size},
                                {"steps", cases[i]->steps()},
                                {"ns_per_step", cost.best * 1e9},
                                {"ns_per_step_median", cost.median * 1e9},
                                {"ns_per_step_of_transport", cost.transport * 1e9},
                                {"ns_per_step_of_arithmetic", cost.arithmetic * 1e9},
                                {"ns_per_step_of_engine", cost.engine() * 1e9}});
    if (options.json) continue;
    fmt::print("{:<11} {:<14} {:>5} {:>6} {:>5.1f} {:>6.1f} {:>10.1f} {:>10.1f} {:>7.1f}\n",
               plan::name(operation), algorithm, size, cases[i]->steps(), cost.best * 1e9,
               cost.median * 1e9, cost.transport * 1e9, cost.arithmetic * 1e9, cost.engine() * 1e9);
  }
  if (options.json) fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_steps_command(CLI::App& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* const parser =
      program.add_subcommand("steps", "What the engine takes for a step of a plan");
  parser->add_option("--rounds", options->rounds, "Each measures all plans")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  parser->add_flag("--json", options->json, "Write one JSON document");
  parser->callback([options] { run(*options); });
}

}  // namespace hocket::bench
