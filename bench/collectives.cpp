#include "collectives.hpp"

#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/config.hpp"
#include "ranks.hpp"
#include "sweep.hpp"
#include "sweep_options.hpp"
#include "sweep_report.hpp"

namespace hocket::bench {
namespace {

constexpr std::array kinds = {
    CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
    CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::gather,
    CollectiveKind::scatter,    CollectiveKind::all_to_all,     CollectiveKind::barrier,
    CollectiveKind::scan,       CollectiveKind::exscan,
};

Conditions conditions_of(Communicator& world, CollectiveKind kind, const Sweep& sweep,
                         const SweepOptions& options) {
  return {.kind = kind,
          .transport = std::string(world.transport()),
          .algorithm = process_config().get(variables::algorithm),
          .ranks = world.size(),
          .hosts = count_hosts(world),
          .machines = count_machines(world),
          .processors = std::thread::hardware_concurrency(),
          .in_place = options.in_place,
          .is_started = options.is_started,
          .is_prepared = options.is_prepared,
          .memory = options.memory,
          .iterations = sweep.iterations,
          .warmups = sweep.warmups};
}

/// Whether nothing was wrong.
bool run_as_rank(Communicator world, CollectiveKind kind, Sweep sweep,
                 const SweepOptions& options) {
  Conditions conditions = conditions_of(world, kind, sweep, options);
  // Processes of several hosts have no clock in common by which a barrier could be checked.
  if (kind == CollectiveKind::barrier && conditions.hosts > 1) sweep.checks = false;
  conditions.checks = sweep.checks;
  const Progress progress(options.progress);
  std::optional<SweepReport> report;
  if (world.rank() == 0) report.emplace(conditions, format_of(options));
  bool is_right = true;
  run(
      world, sweep,
      [&](const Row& row) {
        is_right = is_right && row.wrong == 0;
        if (!report) return;
        progress.clear();
        report->add(row);
      },
      [&](const std::string& what) {
        if (report) progress.show(what);
      });
  if (report) report->finish();
  return is_right;
}

int run_command(CollectiveKind kind, const SweepOptions& options,
                const std::vector<std::string>& words) {
  const Sweep sweep = read_sweep(kind, options);
  Communicator world = join_world(options.world, words);
  const bool is_right = run_as_rank(std::move(world), kind, sweep, options);
  return is_right ? program::exit_success : program::exit_failure;
}

}  // namespace

void add_collective_commands(program::Parser& program, const std::vector<std::string>& words) {
  for (const CollectiveKind kind : kinds) {
    // The program owns its sub-commands, and with this one the options.
    const auto options = std::make_shared<SweepOptions>();
    program::Parser& parser =
        program.add_command(std::string(name(kind)),
                            fmt::format("Time and check {} over a range of sizes", name(kind)));
    add_size_options(parser, *options);
    add_work_options(parser, *options);
    add_world_options(parser, options->world);
    add_output_options(parser, *options);
    parser.on_run([kind, options, words] { return run_command(kind, *options, words); });
  }
}

}  // namespace hocket::bench
