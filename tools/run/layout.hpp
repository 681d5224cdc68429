// What a job will be, found out before anything is started.
#pragma once

#include <optional>
#include <vector>

#include "hocket/status.hpp"

#include "net/endpoint.hpp"
#include "run/hosts.hpp"
#include "run/options.hpp"

namespace hocket::run {

struct Layout {
  /// Those that ranks are started on, in order of rank. With --nnodes only this one.
  std::vector<Host> hosts = {};
  bool has_agents = false;  // the hosts were named: an agent on each runs its ranks
  int nodes = 1;
  int ranks_per_node = 1;
  net::Endpoint store = {};   // of the job: where clients find it, port 0 until it is known
  net::Endpoint listen = {};  // where node 0 serves it
};

[[nodiscard]] Result<Layout> make_layout(const Options& options);

/// The words that start the agent on a host.
[[nodiscard]] std::vector<std::string> agent_command(const Options& options, const Host& host);

/// Variables of this environment that go to every host: those for communication, and what -x names.
[[nodiscard]] std::vector<std::string> exported_variables(const Options& options);

/// Shows what would be started, for people.
void show(const Options& options, const Layout& layout);

}  // namespace hocket::run
