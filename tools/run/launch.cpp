#include "run/launch.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "net/interfaces.hpp"
#include "run/conductor.hpp"
#include "run/crew.hpp"
#include "run/fleet.hpp"
#include "run/guardian.hpp"
#include "run/job.hpp"
#include "run/peers.hpp"
#include "run/plan.hpp"

namespace hocket::run {
namespace {

/// The exit status of a job that was not started.
int refuse(const Status& why) {
  complain(fmt::format("hocket run: {}", why.to_string()));
  return 1;
}

World make_world(const Options& options, const Plan& plan, const wire::Credentials& credentials) {
  return {.job = credentials.job,
          .secret = credentials.secret,
          .nodes = plan.nodes,
          .ranks_per_node = plan.ranks_per_node,
          .restarts_max = options.restarts_max};
}

/// What ranks on this host have, beside what makes each of them a rank.
std::vector<std::string> environment_here(const Options& options) {
  return merge(own_environment(), exported_variables(options));
}

Status run_here(const Options& options, const Plan& plan, Fd lifeline,
                const Dispositions& dispositions, int& exit_status) {
  Loop loop(monotonic_clock());
  const auto credentials = make_credentials(options.job);
  if (!credentials.ok()) return credentials.status();
  const auto store = JobStore::serve(plan.listen, *credentials, environment_here(options));
  if (!store.ok()) return store.status();
  const auto master_port = free_port();
  if (!master_port.ok()) return master_port.status();
  const auto output = Output::open(
      loop, {.ranks = plan.ranks_per_node, .tags = options.tags, .folder = options.output_folder});
  if (!output.ok()) return output.status();
  Conductor conductor(loop, **output,
                      {.world = make_world(options, plan, *credentials),
                       .command = options.command,
                       .hosts = {plan.hosts.front().name},
                       .grace = options.grace},
                      std::move(lifeline));
  const net::Endpoint at = {.host = plan.store.host, .port = store->port()};
  conductor.set_meeting_point(at.to_string(), plan.store.host, *master_port);
  Crew crew(loop, conductor,
            {.environment = environment_here(options),
             .dispositions = dispositions,
             .input = STDIN_FILENO});
  conductor.add(crew);
  exit_status = conductor.run();
  return {};
}

Status run_on_hosts(const Options& options, const Plan& plan, Fd lifeline,
                    const Dispositions& dispositions, int& exit_status) {
  Loop loop(monotonic_clock());
  const auto credentials = make_credentials(options.job);
  if (!credentials.ok()) return credentials.status();
  const auto output = Output::open(loop, {.ranks = plan.nodes * plan.ranks_per_node,
                                          .tags = options.tags,
                                          .folder = options.output_folder});
  if (!output.ok()) return output.status();
  ConductorOptions conducted = {.world = make_world(options, plan, *credentials),
                                .command = options.command,
                                .grace = options.grace};
  for (const Host& host : plan.hosts) conducted.hosts.push_back(host.name);
  Conductor conductor(loop, **output, std::move(conducted), std::move(lifeline));
  Fleet fleet(loop, conductor, **output, {options, plan, *credentials, dispositions});
  if (Status status = fleet.gather(); !status.ok()) {
    exit_status = conductor.exit_status();
    return exit_status == 0 ? status : Status();  // the user's signal is no failure to speak of
  }
  exit_status = conductor.run();
  return {};
}

/// What the launchers of all nodes agree on without a word: the secret comes from outside.
Result<wire::Credentials> shared_credentials(const Options& options, const Plan& plan) {
  auto credentials = given_credentials(options.job);
  if (!credentials.ok()) return credentials.status();
  if (credentials->job.empty()) credentials->job = options.master;
  if (credentials->secret.empty() && !net::is_loopback(plan.store.host)) {
    return Status(StatusCode::permission_denied, "HOCKET_SECRET is not set")
        .with_hint("with --nnodes every node's launcher needs the same secret in its environment");
  }
  return credentials;
}

/// Waits for the launchers of the other nodes; nothing when the user wanted an end meanwhile.
Result<Meeting> meet_others(const Options& options, const Plan& plan,
                            const wire::Credentials& credentials, std::uint16_t master_port,
                            Conductor& conductor) {
  auto tls = tls_settings(environment_here(options));
  if (!tls.ok()) return tls.status();
  const auto goes_on = [&] {
    constexpr std::chrono::milliseconds a_moment{1};
    conductor.wait_for([] { return false; }, Deadline::after(monotonic_clock(), a_moment));
    return conductor.exit_status() == 0;
  };
  return meet({.server = plan.store,
               .credentials = credentials,
               .tls = std::move(*tls),
               .node = options.node,
               .nodes = plan.nodes,
               .ranks = plan.ranks_per_node,
               .host = own_host_name(),
               .master_port = master_port,
               .timeout = options.timeout},
              goes_on);
}

Status run_with_others(const Options& options, const Plan& plan, Fd lifeline,
                       const Dispositions& dispositions, int& exit_status) {
  const auto credentials = shared_credentials(options, plan);
  if (!credentials.ok()) return credentials.status();
  Loop loop(monotonic_clock());
  std::optional<JobStore> store;
  if (options.node == 0) {
    auto served = JobStore::serve(plan.listen, *credentials, environment_here(options));
    if (!served.ok()) return served.status();
    store.emplace(std::move(*served));
  }
  const auto master_port = free_port();
  if (!master_port.ok()) return master_port.status();
  const auto output = Output::open(loop, {.first_rank = options.node * plan.ranks_per_node,
                                          .ranks = plan.ranks_per_node,
                                          .tags = options.tags,
                                          .folder = options.output_folder});
  if (!output.ok()) return output.status();
  Conductor conductor(loop, **output,
                      {.world = make_world(options, plan, *credentials),
                       .command = options.command,
                       .first_node = options.node,
                       .grace = options.grace},
                      std::move(lifeline));
  auto meeting = meet_others(options, plan, *credentials, *master_port, conductor);
  exit_status = conductor.exit_status();
  if (!meeting.ok()) return exit_status == 0 ? meeting.status() : Status();
  conductor.set_hosts(meeting->hosts);
  conductor.set_meeting_point(plan.store.to_string(), plan.store.host, meeting->master_port);
  Peers peers(loop, conductor, *meeting, options.node,
              {.node = options.node,
               .environment = environment_here(options),
               .dispositions = dispositions,
               .input = STDIN_FILENO});
  conductor.add(peers);
  exit_status = conductor.run();
  return {};
}

/// Fails where nothing could be started.
Status run_plan(const Options& options, const Plan& plan, Fd lifeline,
                const Dispositions& dispositions, int& exit_status) {
  if (plan.has_agents)
    return run_on_hosts(options, plan, std::move(lifeline), dispositions, exit_status);
  if (plan.nodes > 1)
    return run_with_others(options, plan, std::move(lifeline), dispositions, exit_status);
  return run_here(options, plan, std::move(lifeline), dispositions, exit_status);
}

}  // namespace

int launch(const Options& options) {
  const auto plan = make_plan(options);
  if (!plan.ok()) {
    refuse(plan.status());
    return 2;  // the command line is wrong
  }
  if (options.is_dry) {
    show(options, *plan);
    return 0;
  }
  return guarded([&](Fd lifeline, const Dispositions& dispositions) {
    int exit_status = 1;
    const Status status = run_plan(options, *plan, std::move(lifeline), dispositions, exit_status);
    return status.ok() ? exit_status : refuse(status);
  });
}

}  // namespace hocket::run
