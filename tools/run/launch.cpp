#include "run/launch.hpp"

#include <utility>

#include <unistd.h>

#include <climits>
#include <fmt/format.h>

#include "run/conductor.hpp"
#include "run/crew.hpp"
#include "run/guardian.hpp"
#include "run/job.hpp"

namespace hocket::run {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

int refuse(const Status& why) {
  fmt::print(stderr, "hocket run: {}\n", why.to_string());
  return 1;
}

int run_here(const Options& options, Fd lifeline) {
  Loop loop(monotonic_clock());
  const wire::Credentials credentials = make_credentials(options.job);
  const int ranks = options.ranks > 0 ? options.ranks : 1;
  World world = {.job = credentials.job,
                 .secret = credentials.secret,
                 .master_host = "127.0.0.1",
                 .ranks_per_node = ranks,
                 .restarts_max = options.restarts_max};
  const auto master_port = free_port();
  if (!master_port.ok()) return refuse(master_port.status());
  world.master_port = *master_port;
  const auto store = JobStore::serve({.host = "127.0.0.1", .port = 0}, credentials);
  if (!store.ok()) return refuse(store.status());
  world.store = fmt::format("127.0.0.1:{}", store->port());
  auto output = Output::open(
      loop, {.world_size = ranks, .tags = options.tags, .folder = options.output_folder});
  if (!output.ok()) return refuse(output.status());
  const Dispositions dispositions = ignore_nuisances();
  Conductor conductor(
      loop, **output,
      {.world = world, .command = options.command, .hosts = {host_name()}, .grace = options.grace},
      SignalQueue::of_the_user(), std::move(lifeline));
  Crew crew(
      loop, conductor,
      {.environment = own_environment(), .dispositions = dispositions, .input = STDIN_FILENO});
  conductor.add(crew);
  return conductor.run();
}

}  // namespace

int launch(const Options& options) {
  return guarded([&](Fd lifeline) { return run_here(options, std::move(lifeline)); });
}

}  // namespace hocket::run
