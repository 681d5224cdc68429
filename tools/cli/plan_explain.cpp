#include "plan_explain.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "choose/cost.hpp"
#include "choose/selector.hpp"
#include "comm/tuning.hpp"
#include "failure.hpp"
#include "page.hpp"
#include "plan/lookup.hpp"
#include "program/json.hpp"
#include "sim_network.hpp"
#include "sim_sweep.hpp"

namespace hocket::cli {
namespace {

using program::Json;

constexpr double worth_saying = 1.05;  // times as fast as what is chosen

struct ExplainOptions {
  std::string operation;
  std::string bytes = "1M";
  std::uint32_t ranks = 8;
  std::uint32_t root = 0;
  NetworkOptions network = {.preset = std::string(choose::usual_network)};
  bool has_network = false;  // on the command line
  bool shares_memory = false;
  std::uint32_t processors = 0;
  std::string tuning_file;
  std::uint64_t steps_max = Sweep{}.steps_max;
  bool uneven = false;
  bool keeps_order = false;
  bool json = false;
};

struct Question {
  plan::Problem problem = {};
  std::uint64_t bytes = 0;
  choose::Tuning tuning = {};
  std::string network = {};                     // what it is called
  std::vector<choose::Measured> measured = {};  // of the tuning, what answers it
};

struct Candidate {
  choose::Choice choice = {};
  bool is_chosen = false;
  std::optional<double> simulated_seconds = {};
  std::optional<double> measured_seconds = {};
  std::uint64_t rounds = 0;
  std::uint64_t bytes_sent = 0;  // by one rank
};

struct Answer {
  std::vector<Candidate> candidates = {};  // by the estimate, the cheapest first

  [[nodiscard]] const Candidate& chosen() const {
    return *std::ranges::find_if(candidates, &Candidate::is_chosen);
  }
};

bool has_chunks(plan::Operation operation) noexcept {
  return plan::shape_of({.operation = operation, .size = 2}, 1).chunks > 1;
}

/// The operation by so many ranks on a network, of which the hosts are not known yet.
Result<plan::Problem> read_problem(const ExplainOptions& options) {
  const auto operation = plan::look_up_operation(options.operation);
  if (!operation.ok()) return operation.status();
  if (options.ranks == 0 || options.ranks > limits::world_size_max) {
    return refuse(
        fmt::format("-n {}: there must be 1 to {} ranks", options.ranks, limits::world_size_max));
  }
  if (options.root >= options.ranks || (options.root > 0 && !has_root(*operation))) {
    return refuse(fmt::format("--root {} is no root of {} by {} ranks", options.root,
                              name(*operation), options.ranks));
  }
  if (options.uneven && !has_chunks(*operation)) {
    return refuse(
        fmt::format("--uneven: {} has no chunks that could differ in size", name(*operation)));
  }
  if (options.keeps_order && !reduces(*operation)) {
    return refuse(fmt::format("--keeps-order: {} reduces nothing", name(*operation)));
  }
  return plan::Problem{.operation = *operation, .size = options.ranks, .root = options.root};
}

Result<choose::Tuning> read_all_tuning(const ExplainOptions& options) {
  const auto preset = choose::find_preset(options.network.preset);
  if (!preset.ok()) return preset.status();
  auto tuning = read_tuning(process_config(), *preset, options.tuning_file);
  if (!tuning.ok()) return tuning;
  const bool is_measured = tuning->network != *preset;
  choose::Network base = options.has_network ? *preset : tuning->network;
  // Without measurements, as comm/context.cpp has it.
  if (options.shares_memory && !is_measured) base = choose::sharing_memory(base);
  const auto network = read_network(options.network, options.ranks, base);
  if (!network.ok()) return network.status();
  tuning->network = *network;
  if (options.processors > 0 && !is_measured) {
    const std::uint32_t ranks = std::min(options.ranks, network->ranks_per_host);
    const std::uint32_t sharing = (ranks - 1) / options.processors + 1;
    tuning->network = choose::crowded(*network, sharing);
  }
  return tuning;
}

std::string tuning_file(const ExplainOptions& options) {
  return options.tuning_file.empty() ? process_config().get(variables::tuning_file)
                                     : options.tuning_file;
}

Result<Question> read_question(const ExplainOptions& options) {
  auto problem = read_problem(options);
  if (!problem.ok()) return problem.status();
  const auto bytes = parse_size(options.bytes);
  if (!bytes) return refuse(fmt::format("{} is no size such as 8, 64K or 1G", options.bytes));
  auto tuning = read_all_tuning(options);
  if (!tuning.ok()) return tuning.status();
  problem->ranks_per_host = std::min(tuning->network.ranks_per_host, options.ranks);
  const std::string file = tuning_file(options);
  return Question{.problem = *problem,
                  .bytes = problem->operation == plan::Operation::barrier ? 0 : *bytes,
                  .tuning = std::move(*tuning),
                  .network = file.empty() || options.has_network ? options.network.preset : file};
}

bool is_of(const Question& question, const choose::Measured& measured) noexcept {
  return measured.algorithm->operation == question.problem.operation &&
         measured.bytes == question.bytes && measured.ranks == question.problem.size;
}

bool is_of(const choose::Choice& choice, const choose::Measured& measured) noexcept {
  return measured.algorithm == choice.algorithm && measured.pieces == choice.pieces;
}

/// How many it had where the file does not say, or of what is no pipeline.
std::uint32_t pieces_of(const Question& question, const choose::Measured& measured) {
  if (measured.pieces > 0 && choose::is_pipeline(*measured.algorithm)) return measured.pieces;
  return choose::best_pieces(*measured.algorithm, question.problem,
                             static_cast<double>(question.bytes), question.tuning.network);
}

void find_measured(Question& question) {
  for (choose::Measured each : question.tuning.measured) {
    if (!is_of(question, each)) continue;
    each.pieces = pieces_of(question, each);
    question.measured.push_back(each);
  }
}

/// What the tuning file says that it once took.
std::optional<double> measured(const Question& question, const choose::Choice& choice) {
  for (const choose::Measured& each : question.measured) {
    if (is_of(choice, each)) return each.seconds;
  }
  return {};
}

Result<Candidate> examine(const Question& question, const choose::Choice& choice,
                          std::uint64_t steps_max) {
  plan::Problem problem = question.problem;
  problem.pieces = choice.pieces;
  const plan::Algorithm& algorithm = *choice.algorithm;
  const plan::Bound bound = bound_of(algorithm, problem);
  const plan::Shape shape = plan::shape_of(problem, algorithm.blocks_per_chunk(problem));
  const auto outcomes = run({.problem = problem,
                             .network = question.tuning.network,
                             .sizes = {question.bytes},
                             .algorithms = {&algorithm},
                             .steps_max = steps_max});
  if (!outcomes.ok()) return outcomes.status();
  const Outcome& outcome = outcomes->front().front();
  return Candidate{
      .choice = choice,
      .simulated_seconds = outcome.is_simulated ? std::optional(outcome.seconds) : std::nullopt,
      .measured_seconds = measured(question, choice),
      .rounds = bound.rounds,
      .bytes_sent =
          static_cast<std::uint64_t>(static_cast<double>(bound.blocks_sent) *
                                     static_cast<double>(question.bytes) / shape.vector_blocks())};
}

Result<Answer> answer(const Question& question, const choose::Selector& selector,
                      const ExplainOptions& options) {
  const choose::Needs needs = {.is_uneven = options.uneven, .keeps_order = options.keeps_order};
  const choose::Choice chosen = selector.choose(question.problem, question.bytes, needs);
  std::vector<choose::Choice> choices =
      selector.candidates(question.problem, question.bytes, needs);
  for (choose::Choice& each : choices) {
    if (each.algorithm == chosen.algorithm) each = chosen;  // in the pieces that a rule may want
  }
  for (const choose::Measured& each : question.measured) {  // in other pieces
    const auto is_it = [&](const choose::Choice& choice) { return is_of(choice, each); };
    const auto same = std::ranges::count(choices, each.algorithm, &choose::Choice::algorithm);
    if (same == 0 || std::ranges::any_of(choices, is_it)) continue;
    choices.push_back(
        selector.priced(*each.algorithm, question.problem, question.bytes, each.pieces));
  }
  std::ranges::stable_sort(choices, {}, &choose::Choice::seconds);
  Answer found;
  for (const choose::Choice& each : choices) {
    auto candidate = examine(question, each, options.steps_max);
    if (!candidate.ok()) return candidate.status();
    candidate->is_chosen = each.algorithm == chosen.algorithm && each.pieces == chosen.pieces;
    found.candidates.push_back(*candidate);
  }
  return found;
}

/// Of what was simulated; null if nothing was.
const Candidate* fastest(const Answer& answer) {
  const Candidate* best = nullptr;
  for (const Candidate& each : answer.candidates) {
    if (!each.simulated_seconds) continue;
    if (best == nullptr || *each.simulated_seconds < *best->simulated_seconds) best = &each;
  }
  return best;
}

std::string title(const choose::Choice& choice) {
  if (choice.pieces == 1) return std::string(choice.algorithm->name);
  return fmt::format("{} in {} pieces", choice.algorithm->name, choice.pieces);
}

std::string reason(const Question& question, const Answer& answer) {
  const Candidate& chosen = answer.chosen();
  const std::string algorithm = title(chosen.choice);
  if (const choose::Rule* const rule = chosen.choice.rule) {
    return fmt::format("{} is chosen by the rule {} of {}.", algorithm, quote(rule->text),
                       rule->source);
  }
  const std::size_t rules = question.tuning.rules.size();
  return fmt::format("{} is chosen because it should take the least time{}.", algorithm,
                     rules == 0 ? "; there are no rules" : "; no rule fits");
}

/// In three digits: "1.75M"
std::string short_size(std::uint64_t bytes) {
  constexpr char units[] = {'K', 'M', 'G', 'T'};
  auto size = static_cast<double>(bytes);
  if (size < 1024) return std::to_string(bytes);
  std::size_t unit = 0;
  for (size /= 1024; size >= 1024 && unit + 1 < std::size(units); ++unit) size /= 1024;
  return fmt::format("{:.3g}{}", size, units[unit]);
}

std::string show(const std::optional<double>& seconds) {
  return seconds ? format_time(*seconds) : "-";
}

std::vector<std::string> row(const Candidate& candidate, bool shows_measured) {
  const choose::Choice& choice = candidate.choice;
  std::vector<std::string> row = {candidate.is_chosen ? "*" : "",
                                  std::string(choice.algorithm->name), format_time(choice.seconds),
                                  show(candidate.simulated_seconds)};
  if (shows_measured) row.push_back(show(candidate.measured_seconds));
  row.insert(row.end(), {std::to_string(choice.pieces), std::to_string(candidate.rounds),
                         short_size(candidate.bytes_sent) + "B"});
  return row;
}

std::vector<std::vector<std::string>> table(const std::vector<Candidate>& candidates) {
  const bool shows_measured = std::ranges::any_of(
      candidates, [](const Candidate& each) { return each.measured_seconds.has_value(); });
  std::vector<std::string> head = {" ", "algorithm", "estimated", "simulated"};
  if (shows_measured) head.emplace_back("measured");
  head.insert(head.end(), {"pieces", "rounds", "sent by a rank"});
  std::vector<std::vector<std::string>> rows = {head};
  for (const Candidate& each : candidates) rows.push_back(row(each, shows_measured));
  return rows;
}

void print_answer(const Question& question, const Answer& answer, const ExplainOptions& options) {
  Page page;
  page.heading(fmt::format("{} of {}B{}: {}", name(question.problem.operation),
                           format_size(question.bytes),
                           options.uneven        ? " in uneven chunks"
                           : options.keeps_order ? " in the order of the ranks"
                                                 : "",
                           place(question.problem, question.network)));
  page.table(table(answer.candidates));
  fmt::print("\n{}\n", reason(question, answer));
  const Candidate& chosen = answer.chosen();
  const Candidate* const best = fastest(answer);
  if (best == nullptr) {
    fmt::print("There are too many steps to simulate (--steps-max).\n");
  } else if (chosen.simulated_seconds &&
             *chosen.simulated_seconds > worth_saying * *best->simulated_seconds) {
    fmt::print("In the simulation {} is {:.2f} times as fast.\n", title(best->choice),
               *chosen.simulated_seconds / *best->simulated_seconds);
  }
  if (options.uneven) fmt::print("The times are those of chunks of one size.\n");
}

Json to_json(const Candidate& candidate) {
  const choose::Choice& choice = candidate.choice;
  return {
      {"algorithm", choice.algorithm->name},
      {"chosen", candidate.is_chosen},
      {"pieces", choice.pieces},
      {"estimated_seconds", choice.seconds},
      {"simulated_seconds",
       candidate.simulated_seconds ? Json(*candidate.simulated_seconds) : Json()},
      {"measured_seconds", candidate.measured_seconds ? Json(*candidate.measured_seconds) : Json()},
      {"rounds", candidate.rounds},
      {"bytes_sent", candidate.bytes_sent}};
}

void print_answer_json(const Question& question, const Answer& answer,
                       const ExplainOptions& options) {
  Json network = {{"name", question.network}};
  for (const auto& each : describe(question.tuning.network)) network[each.front()] = each.back();
  Json candidates = Json::array();
  for (const Candidate& each : answer.candidates) candidates.push_back(to_json(each));
  const choose::Choice& chosen = answer.chosen().choice;
  Json why = {{"by", chosen.rule == nullptr ? "estimate" : "rule"}};
  if (chosen.rule != nullptr) {
    why["rule"] = chosen.rule->text;
    why["source"] = chosen.rule->source;
  }
  const Json document = {{"operation", name(question.problem.operation)},
                         {"bytes", question.bytes},
                         {"ranks", question.problem.size},
                         {"root", question.problem.root},
                         {"uneven", options.uneven},
                         {"keeps_order", options.keeps_order},
                         {"network", network},
                         {"chosen", chosen.algorithm->name},
                         {"why", why},
                         {"candidates", candidates}};
  fmt::print("{}\n", document.dump(2));
}

int explain(const ExplainOptions& options) {
  auto question = read_question(options);
  if (!question.ok()) return fail("hocket plan explain", question.status());
  find_measured(*question);
  const choose::Selector selector(question->tuning.network, question->tuning.rules);
  const auto found = answer(*question, selector, options);
  if (!found.ok()) return fail("hocket plan explain", found.status());
  (options.json ? print_answer_json : print_answer)(*question, *found, options);
  return program::exit_success;
}

}  // namespace

void add_explain_command(program::Parser& plan) {
  const auto options = std::make_shared<ExplainOptions>();
  program::Parser& parser =
      plan.add_command("explain", "Say which algorithm an operation gets, and why");
  parser.set_footer(
      "Rules come from HOCKET_ALGORITHM and the tuning file; --network takes the place of the "
      "file's numbers.");
  parser.add_option("operation", &options->operation, "all_reduce, broadcast, …").required();
  parser.add_option("-b,--bytes", &options->bytes, "Of the whole vector").with_default();
  parser.add_option("-n,--ranks", &options->ranks, "Ranks").with_default();
  parser.add_option("--root", &options->root, "Of operations that have one").with_default();
  parser.add_flag("-v,--uneven", &options->uneven, "Chunks differ in size, as in an all_gather_v");
  parser.add_flag("--keeps-order", &options->keeps_order,
                  "With an op that is not commutative, such as a product of matrices");
  const program::Option& network = add_network_options(parser, options->network);
  parser.add_flag("--shares-memory", &options->shares_memory,
                  "Assume that the ranks of each host do (transport shm)");
  parser.add_option("--processors", &options->processors,
                    "Of a host, if its ranks have to share them");
  parser.add_option("--tuning-file", &options->tuning_file,
                    "Instead of the one that HOCKET_TUNING_FILE names");
  parser
      .add_option("--steps-max", &options->steps_max,
                  "Steps of all ranks of an algorithm, beyond which it is not simulated")
      .with_default();
  parser.add_flag("--json", &options->json, "Write one JSON document");
  parser.on_run([options, &network] {
    options->has_network = network.is_given();
    return explain(*options);
  });
}

}  // namespace hocket::cli
