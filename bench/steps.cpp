#include "steps.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
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
    {plan::Operation::all_gather, "ring", 64},
    {plan::Operation::all_gather, "direct", 64},
    {plan::Operation::all_reduce, "ring", 64},
    {plan::Operation::all_reduce, "circulant", 1000},
    {plan::Operation::all_to_all, "pairwise", 128},
    {plan::Operation::barrier, "dissemination", 1000},
};

/// The plan of rank 0, with an element in each chunk, ready to be run again and again.
class Case {
 public:
  explicit Case(const Subject& subject)
      : program_(plan_of(subject)),
        binding_(program_, plan::even_sizes(program_.plan().problem, subject.size), sizeof(float),
                 std::vector<ChannelId>(program_.ports().size())),
        executor_(transport_),
        in_(binding_.in_bytes()),
        out_(binding_.out_bytes()) {
    task_ = {.binding = &binding_,
             .in = in_.data(),
             .out = out_.data(),
             .reduction = *reduce::Reduction::make({.type = DataType::f32, .op = ReduceOp::sum}),
             .group = &group_,
             .work = &work_};
  }

  void run() {
    executor_.start(task_);
    while (!work_.is_over()) executor_.progress();
  }
  [[nodiscard]] std::size_t steps() const { return program_.places().size(); }
  [[nodiscard]] std::size_t messages() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(binding_.code(), &engine::Instruction::communicates));
  }

 private:
  static plan::Plan plan_of(const Subject& subject) {
    return plan::build(*plan::find_algorithm(subject.operation, subject.algorithm),
                       {.operation = subject.operation, .size = subject.size}, 0);
  }

  engine::Program program_;
  engine::Binding binding_;
  NullTransport transport_;
  engine::Executor executor_;
  std::vector<std::byte> in_, out_;
  engine::Group group_;
  engine::Work work_;
  engine::Task task_;
};

constexpr std::size_t ops_at_once = 64;

/// What the transport itself takes for so many ops.
void post_and_poll(NullTransport& transport) {
  static const std::array<TransportOp, ops_at_once> ops = {};
  static std::array<TransportCompletion, ops_at_once> completions = {};
  (void)transport.post(ops);
  (void)transport.poll(completions);
}

/// Of a plan, or of its steps.
struct Cost {
  double median = 0;
  double best = 0;
  double engine = 0;  // the best one without what the transport takes
};

Cost cost_of_step(const Case& subject, const Measured& plan, double op_seconds) {
  const auto steps = static_cast<double>(subject.steps());
  const double transport = op_seconds * static_cast<double>(subject.messages());
  return {plan.median / steps, plan.best / steps, (plan.best - transport) / steps};
}

void print_head(const Options& options, double op_seconds) {
  fmt::print(
      "The engine on a transport that moves nothing: plans of rank 0, an element in each chunk.\n"
      "{} rounds that take turns. The transport itself takes {:.1f} ns for an op.\n\n"
      "                                   us a plan     ns a step    without\n"
      "operation   algorithm      ranks  steps   best   best median  transport\n",
      options.rounds, op_seconds * 1e9);
}

void run(const Options& options) {
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<std::function<void()>> works;
  for (const Subject& subject : subjects) {
    works.emplace_back(
        [it = cases.emplace_back(std::make_unique<Case>(subject)).get()] { it->run(); });
  }
  NullTransport transport;
  works.emplace_back([&] { post_and_poll(transport); });
  const std::vector<Measured> measured =
      measure(works, {.rounds = options.rounds, .batch = std::chrono::milliseconds(1)});
  const double op_seconds = measured.back().best / ops_at_once;

  nlohmann::ordered_json document = {{"benchmark", "steps"},
                                     {"version", version()},
                                     {"rounds", options.rounds},
                                     {"transport_ns_per_op", op_seconds * 1e9},
                                     {"rows", nlohmann::ordered_json::array()}};
  if (!options.json) print_head(options, op_seconds);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [operation, algorithm, size] = subjects[i];
    const std::size_t steps = cases[i]->steps();
    const auto [median, best, engine] = cost_of_step(*cases[i], measured[i], op_seconds);
    document["rows"].push_back({{"operation", plan::name(operation)},
                                {"algorithm", algorithm},
                                {"ranks", size},
                                {"steps", steps},
                                {"seconds", measured[i].best},
                                {"ns_per_step", best * 1e9},
                                {"ns_per_step_median", median * 1e9},
                                {"ns_per_step_without_transport", engine * 1e9}});
    if (options.json) continue;
    fmt::print("{:<11} {:<14} {:>5} {:>6} {:>6.2f} {:>6.1f} {:>6.1f} {:>10.1f}\n",
               plan::name(operation), algorithm, size, steps, measured[i].best * 1e6, best * 1e9,
               median * 1e9, engine * 1e9);
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
