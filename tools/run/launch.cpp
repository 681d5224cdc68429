#include "run/launch.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
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
#include "run/layout.hpp"
#include "run/peers.hpp"
#include "run/record_folder.hpp"

namespace hocket::run {
namespace {

/// The exit status of a job that was not started.
int refuse(const Status& why) {
  complain(fmt::format("hocket run: {}", why.to_string()));
  return 1;
}

/// What the launchers of all nodes agree on without a word: the secret comes from outside.
Result<wire::Credentials> shared_credentials(const Options& options, const Layout& layout) {
  auto credentials = given_credentials(options.job);
  if (!credentials.ok()) return credentials.status();
  if (credentials->job.empty()) credentials->job = options.master;
  if (credentials->secret.empty() && !net::is_loopback(layout.store.host)) {
    return Status(StatusCode::permission_denied, "HOCKET_SECRET is not set")
        .with_hint("with --nnodes every node's launcher needs the same secret in its environment");
  }
  return credentials;
}

/// A job that is launched here, whichever way its ranks are started.
class Launcher {
 public:
  Launcher(const Options& options, const Layout& layout, RecordFolder* records, Fd lifeline,
           const Dispositions& dispositions)
      : options_(options),
        layout_(layout),
        records_(records),
        lifeline_(std::move(lifeline)),
        dispositions_(dispositions) {}

  /// The status to exit with. Fails where nothing could be started.
  Result<int> run();

 private:
  Result<int> run_here();
  Result<int> run_on_hosts();
  Result<int> run_with_others();

  /// Makes what every job has. `ranks`: those whose output comes here, from `first` on.
  Status prepare(Result<wire::Credentials> credentials, int first, int ranks);
  [[nodiscard]] Result<JobStore> serve() const {
    return JobStore::serve(layout_.listen, credentials_, environment_);
  }
  [[nodiscard]] Result<Meeting> meet_others(std::uint16_t master_port);
  [[nodiscard]] CrewOptions crew() const;
  /// After a failure before any rank: the user's signal is none to speak of.
  [[nodiscard]] Result<int> give_up(Status why) const;

  const Options& options_;
  const Layout& layout_;
  RecordFolder* const records_;
  Fd lifeline_;
  const Dispositions& dispositions_;  // for the ranks
  /// What ranks on this host have, beside what makes each of them a rank.
  const std::vector<std::string> environment_ =
      merge(merge(own_environment(), exported_variables(options_)),
            records_ == nullptr ? std::vector<std::string>() : records_->variables());
  wire::Credentials credentials_;
  Loop loop_{monotonic_clock()};
  std::unique_ptr<Output> output_;
  std::optional<Conductor> conductor_;
};

Result<int> Launcher::run() {
  if (layout_.has_agents) return run_on_hosts();
  return layout_.nodes > 1 ? run_with_others() : run_here();
}

Status Launcher::prepare(Result<wire::Credentials> credentials, int first, int ranks) {
  if (!credentials.ok()) return credentials.status();
  credentials_ = std::move(*credentials);
  auto output = Output::open(loop_, {.first_rank = first,
                                     .ranks = ranks,
                                     .tags = options_.tags,
                                     .folder = options_.output_folder});
  if (!output.ok()) return output.status();
  output_ = std::move(*output);
  ConductorOptions conducted = {.world = {.job = credentials_.job,
                                          .secret = credentials_.secret,
                                          .nodes = layout_.nodes,
                                          .ranks_per_node = layout_.ranks_per_node,
                                          .restarts_max = options_.restarts_max},
                                .command = options_.command,
                                .first_node = options_.node,
                                .grace = options_.grace,
                                .records = records_};
  for (const Host& host : layout_.hosts) conducted.hosts.push_back(host.name);
  conductor_.emplace(loop_, *output_, std::move(conducted), std::move(lifeline_));
  return {};
}

CrewOptions Launcher::crew() const {
  return {.node = options_.node,
          .environment = environment_,
          .dispositions = dispositions_,
          .input = STDIN_FILENO};
}

Result<int> Launcher::give_up(Status why) const {
  const int status = conductor_->exit_status();
  return status == 0 ? Result<int>(std::move(why)) : status;
}

Result<int> Launcher::run_here() {
  Status status = prepare(make_credentials(options_.job), 0, layout_.ranks_per_node);
  if (!status.ok()) return status;
  const auto store = serve();
  if (!store.ok()) return store.status();
  const auto master_port = free_port();
  if (!master_port.ok()) return master_port.status();
  const net::Endpoint at = {.host = layout_.store.host, .port = store->port()};
  conductor_->set_meeting_point(at.to_string(), at.host, *master_port);
  Crew ranks(loop_, *conductor_, crew());
  conductor_->add(ranks);
  return conductor_->run();
}

Result<int> Launcher::run_on_hosts() {
  Status status =
      prepare(make_credentials(options_.job), 0, layout_.nodes * layout_.ranks_per_node);
  if (!status.ok()) return status;
  Fleet fleet(loop_, *conductor_, *output_, {options_, layout_, credentials_, dispositions_});
  status = fleet.gather();
  if (!status.ok()) return give_up(std::move(status));
  return conductor_->run();
}

Result<int> Launcher::run_with_others() {
  Status status = prepare(shared_credentials(options_, layout_),
                          options_.node * layout_.ranks_per_node, layout_.ranks_per_node);
  if (!status.ok()) return status;
  std::optional<JobStore> store;
  if (options_.node == 0) {
    auto served = serve();
    if (!served.ok()) return served.status();
    store.emplace(std::move(*served));
  }
  const auto master_port = free_port();
  if (!master_port.ok()) return master_port.status();
  auto meeting = meet_others(*master_port);
  if (!meeting.ok()) return give_up(meeting.status());
  conductor_->set_hosts(meeting->hosts);
  conductor_->set_meeting_point(layout_.store.to_string(), layout_.store.host,
                                meeting->master_port);
  CrewOptions ours = crew();
  ours.store = meeting->store;
  Peers peers(loop_, *conductor_, *meeting, options_.node, std::move(ours));
  conductor_->add(peers);
  return conductor_->run();
}

/// Waits for the launchers of the other nodes, as long as the user does.
Result<Meeting> Launcher::meet_others(std::uint16_t master_port) {
  auto tls = tls_settings(environment_);
  if (!tls.ok()) return tls.status();
  const auto goes_on = [this] {
    constexpr std::chrono::milliseconds a_moment{1};
    conductor_->wait_for([] { return false; }, Deadline::after(monotonic_clock(), a_moment));
    return conductor_->exit_status() == 0;
  };
  return meet({.server = layout_.store,
               .credentials = credentials_,
               .tls = std::move(*tls),
               .node = options_.node,
               .nodes = layout_.nodes,
               .ranks = layout_.ranks_per_node,
               .restarts_max = options_.restarts_max,
               .host = own_host_name(),
               .master_port = master_port,
               .timeout = options_.timeout},
              goes_on);
}

}  // namespace

int launch(const Options& options) {
  const auto layout = make_layout(options);
  if (!layout.ok()) {
    refuse(layout.status());
    return 2;  // the command line is wrong
  }
  if (options.is_dry) {
    show(options, *layout);
    return 0;
  }
  // Made here, so that the guardian removes it if the worker can't.
  std::optional<RecordFolder> records;
  const bool is_one_host = layout->nodes == 1 && !layout->has_agents;
  if (is_one_host)
    records.emplace(merge(own_environment(), exported_variables(options)), layout->ranks_per_node);
  return guarded([&](Fd lifeline, const Dispositions& dispositions) {
    const auto status =
        Launcher(options, *layout, records ? &*records : nullptr, std::move(lifeline), dispositions)
            .run();
    return status.ok() ? *status : refuse(status.status());
  });
}

}  // namespace hocket::run
