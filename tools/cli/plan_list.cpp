#include "plan_list.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "choose/cost.hpp"
#include "page.hpp"
#include "program/json.hpp"

namespace hocket::cli {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Problem;
using program::Json;
using Rows = std::vector<std::vector<std::string>>;

/// What an algorithm is held to in one world.
struct Cost {
  plan::Bound bound;
  std::uint32_t blocks;  // of the vector

  Cost(const Algorithm& algorithm, Problem problem) {
    problem.operation = algorithm.operation;
    bound = bound_of(algorithm, problem);
    blocks = shape_of(problem, algorithm.blocks_per_chunk(problem)).vector_blocks();
    if (bound.hops == 0) bound.hops = bound.rounds;
  }
};

Json to_json(const Algorithm& algorithm, const std::optional<Problem>& problem) {
  Json row = {{"operation", name(algorithm.operation)},
              {"algorithm", algorithm.name},
              {"summary", algorithm.summary},
              {"allows_uneven", algorithm.allows_uneven},
              {"is_canonical", algorithm.is_canonical},
              {"keeps_order", algorithm.keeps_order},
              {"knows_hosts", algorithm.knows_hosts},
              {"only_moves", algorithm.only_moves},
              {"takes_pieces", choose::is_pipeline(algorithm)}};
  if (!problem) return row;
  const Cost cost(algorithm, *problem);
  row["bound"] = {{"rounds", cost.bound.rounds},
                  {"hops", cost.bound.hops},
                  {"blocks_sent", cost.bound.blocks_sent},
                  {"blocks", cost.blocks},
                  {"rounds_are_exact", cost.bound.rounds_are_exact}};
  return row;
}

/// "1.67 m": times the whole vector. A barrier's messages are empty.
std::string sent(const Algorithm& algorithm, const Cost& cost) {
  if (algorithm.operation == Operation::barrier) return "0";
  return fmt::format("{:.2f} m", static_cast<double>(cost.bound.blocks_sent) / cost.blocks);
}

std::vector<std::string> to_row(const Algorithm& algorithm, const std::optional<Problem>& problem) {
  std::vector<std::string> row = {std::string(algorithm.name)};
  if (problem) {
    const Cost cost(algorithm, *problem);
    row.push_back(fmt::format("{}{}", cost.bound.rounds_are_exact ? "" : "<= ", cost.bound.rounds));
    row.push_back(std::to_string(cost.bound.hops));
    row.push_back(sent(algorithm, cost));
  }
  row.emplace_back(algorithm.summary);
  return row;
}

}  // namespace

void print_algorithms(const std::vector<const Algorithm*>& algorithms,
                      std::optional<Problem> problem, bool as_json) {
  if (as_json) {
    Json rows = Json::array();
    for (const Algorithm* each : algorithms) rows.push_back(to_json(*each, problem));
    fmt::print("{}\n", rows.dump(2));
    return;
  }
  Page page(22);
  for (const Operation operation : plan::all_operations()) {
    Rows rows;
    for (const Algorithm* each : algorithms) {
      if (each->operation == operation) rows.push_back(to_row(*each, problem));
    }
    if (rows.empty()) continue;
    if (problem) rows.insert(rows.begin(), {"", "rounds", "hops", "sends", ""});
    page.heading(name(operation));
    page.table(rows);
  }
  if (!problem) return;
  fmt::print(
      "\nrounds: messages one after the other, where a rank sends one and receives one at a time;\n"
      "hops: where it does many things at once; sends: the busiest rank, of a vector of m bytes\n");
}

}  // namespace hocket::cli
