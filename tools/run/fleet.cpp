#include "run/fleet.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace hocket::run {

Status Fleet::gather() {
  if (Status status = start_agents(); !status.ok()) return status;
  const auto is_decided = [this] {
    return std::ranges::all_of(
        nodes_, [](const auto& node) { return node->is_ready() || node->failure(); });
  };
  const Deadline deadline = Deadline::after(loop_.clock(), needs_.options.timeout);
  if (!conductor_.wait_for(is_decided, deadline) || has_failed()) return missing();
  const RemoteNode& first = *nodes_.front();
  const std::string& host = needs_.layout.store.host;
  const net::Endpoint store = {.host = host, .port = first.store_port()};
  conductor_.set_meeting_point(store.to_string(), host, first.master_port());
  return {};
}

Status Fleet::start_agents() {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) {
    return Status(StatusCode::system_error, "the working folder has no name")
        .with_system_error(error.value())
        .with_hint("ranks start in it on every host; is it still there?");
  }
  for (std::size_t i = 0; i < needs_.layout.hosts.size(); ++i) {
    const Host& host = needs_.layout.hosts[i];
    auto node = RemoteNode::start(loop_, conductor_, output_,
                                  {.node = static_cast<int>(i),
                                   .host = host.name,
                                   .command = agent_command(needs_.options, host),
                                   .dispositions = needs_.dispositions,
                                   .input = i == 0 ? STDIN_FILENO : -1});
    if (!node.ok()) return node.status();
    nodes_.push_back(std::move(*node));
    conductor_.add(*nodes_.back());
    Joining joining = {.grace = needs_.options.grace,
                       .folder = folder,
                       .environment = exported_variables(needs_.options),
                       .credentials = needs_.credentials};
    if (i == 0) joining.serve = needs_.layout.listen;
    nodes_.back()->join(joining);
  }
  return {};
}

bool Fleet::has_failed() const {
  return std::ranges::any_of(nodes_, [](const auto& node) { return node->failure().has_value(); });
}

Status Fleet::missing() const {
  std::string text = "nothing was started:";
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::string& host = needs_.layout.hosts[i].name;
    if (const auto& why = nodes_[i]->failure()) {
      text += fmt::format("\n  {}: {}", host, *why);
    } else if (!nodes_[i]->is_ready()) {
      text += fmt::format("\n  {}: no answer within the time that --timeout gives", host);
    }
  }
  return Status(StatusCode::peer_lost, std::move(text))
      .with_hint(
          fmt::format("does `{} {} true` work, without a question?", needs_.options.rsh, "HOST"));
}

}  // namespace hocket::run
