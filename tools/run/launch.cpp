#include "run/launch.hpp"

#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "run/conductor.hpp"
#include "run/crew.hpp"
#include "run/fleet.hpp"
#include "run/guardian.hpp"
#include "run/job.hpp"
#include "run/plan.hpp"

namespace hocket::run {
namespace {

int refuse(const Status& why) {
  fmt::print(stderr, "hocket run: {}\n", why.to_string());
  return 1;
}

World make_world(const Options& options, const Plan& plan, const wire::Credentials& credentials) {
  return {.job = credentials.job,
          .secret = credentials.secret,
          .nodes = plan.nodes,
          .ranks_per_node = plan.ranks_per_node,
          .restarts_max = options.restarts_max};
}

Status run_here(const Options& options, const Plan& plan, Fd lifeline, int& exit_status) {
  Loop loop(monotonic_clock());
  const wire::Credentials credentials = make_credentials(options.job);
  const auto store = JobStore::serve(plan.listen, credentials);
  if (!store.ok()) return store.status();
  const auto master_port = free_port();
  if (!master_port.ok()) return master_port.status();
  const auto output = Output::open(loop, {.world_size = plan.ranks_per_node,
                                          .tags = options.tags,
                                          .folder = options.output_folder});
  if (!output.ok()) return output.status();
  const Dispositions dispositions = ignore_nuisances();
  Conductor conductor(loop, **output,
                      {.world = make_world(options, plan, credentials),
                       .command = options.command,
                       .hosts = {plan.hosts.front().name},
                       .grace = options.grace},
                      std::move(lifeline));
  const store::Endpoint at = {.host = plan.store.host, .port = store->port()};
  conductor.set_meeting_point(at.to_string(), plan.store.host, *master_port);
  Crew crew(loop, conductor,
            {.environment = merge(own_environment(), exported_variables(options)),
             .dispositions = dispositions,
             .input = STDIN_FILENO});
  conductor.add(crew);
  exit_status = conductor.run();
  return {};
}

Status run_on_hosts(const Options& options, const Plan& plan, Fd lifeline, int& exit_status) {
  Loop loop(monotonic_clock());
  const wire::Credentials credentials = make_credentials(options.job);
  const auto output = Output::open(loop, {.world_size = plan.nodes * plan.ranks_per_node,
                                          .tags = options.tags,
                                          .folder = options.output_folder});
  if (!output.ok()) return output.status();
  const Dispositions dispositions = ignore_nuisances();
  ConductorOptions conducted = {.world = make_world(options, plan, credentials),
                                .command = options.command,
                                .grace = options.grace};
  for (const Host& host : plan.hosts) conducted.hosts.push_back(host.name);
  Conductor conductor(loop, **output, std::move(conducted), std::move(lifeline));
  Fleet fleet(loop, conductor, **output, {options, plan, credentials, dispositions});
  if (Status status = fleet.gather(); !status.ok()) {
    exit_status = conductor.exit_status();
    return exit_status == 0 ? status : Status();  // the user's signal is no failure to speak of
  }
  exit_status = conductor.run();
  return {};
}

}  // namespace

int launch(const Options& options) {
  const auto plan = make_plan(options);
  if (!plan.ok()) return refuse(plan.status());
  if (options.is_dry) {
    show(options, *plan);
    return 0;
  }
  return guarded([&](Fd lifeline) {
    int exit_status = 1;
    const Status status = plan->has_agents
                              ? run_on_hosts(options, *plan, std::move(lifeline), exit_status)
                              : run_here(options, *plan, std::move(lifeline), exit_status);
    return status.ok() ? exit_status : refuse(status);
  });
}

}  // namespace hocket::run
