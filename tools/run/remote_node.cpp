#include "run/remote_node.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "run/environment.hpp"

namespace hocket::run {
namespace {

/// The wait status of a child that closed its stdout, and so should end in a moment.
std::optional<int> await_end(pid_t pid) {
  constexpr int looks = 50;
  constexpr int pause_ms = 10;
  int wait_status = 0;
  for (int i = 0; i < looks; ++i) {
    if (waitpid(pid, &wait_status, WNOHANG) == pid) return wait_status;
    poll(nullptr, 0, pause_ms);
  }
  return {};
}

}  // namespace

RemoteNode::Complaints::Complaints(RemoteNode& node, Fd fd) : node_(node), fd_(std::move(fd)) {
  node_.loop_.add(*this);
}

RemoteNode::Complaints::~Complaints() { node_.loop_.remove(*this); }

pollfd RemoteNode::Complaints::wanted() const {
  return {node_.output_.wants(Stream::error) ? fd_.get() : -1, POLLIN, 0};
}

void RemoteNode::Complaints::ready() {
  constexpr std::size_t kept_bytes_max = 4096;
  std::array<char, 4096> chunk;
  const ssize_t got = ::read(fd_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return fd_.reset();
  const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
  text_.append(text);
  if (text_.size() > kept_bytes_max) text_.erase(0, text_.size() - kept_bytes_max);
  if (!node_.is_ready_) return;
  const std::size_t end = text.find_last_not_of('\n');
  node_.output_.say(fmt::format("{}: {}", node_.options_.host, text.substr(0, end + 1)));
}

void RemoteNode::Complaints::read_rest() {
  if (fd_) ready();
}

std::string RemoteNode::Complaints::text() const {
  const std::size_t end = text_.find_last_not_of(" \r\n");
  return end == text_.npos ? "" : text_.substr(0, end + 1);
}

RemoteNode::Input::Input(RemoteNode& node, int descriptor) : node_(node), descriptor_(descriptor) {
  node_.loop_.add(*this);
}

RemoteNode::Input::~Input() { node_.loop_.remove(*this); }

pollfd RemoteNode::Input::wanted() const { return {is_wanted ? descriptor_ : -1, POLLIN, 0}; }

void RemoteNode::Input::ready() {
  std::array<char, 32 << 10> chunk;
  const ssize_t got = ::read(descriptor_, chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::string_view data(chunk.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  is_wanted = false;
  if (data.empty()) descriptor_ = -1;
  node_.channel_.send({{"do", "input"}, {"bytes", data.size()}}, data);
}

RemoteNode::Printed::Printed(RemoteNode& node) : node_(node) { node_.loop_.add(*this); }

RemoteNode::Printed::~Printed() { node_.loop_.remove(*this); }

Deadline RemoteNode::Printed::deadline() const {
  const bool is_due =
      (counts[0] > 0 && node_.listener_.wants(node_.options_.node, Stream::output)) ||
      (counts[1] > 0 && node_.listener_.wants(node_.options_.node, Stream::error));
  return is_due ? Deadline(Instant::min()) : Deadline::never();
}

void RemoteNode::Printed::due() {
  for (const Stream stream : {Stream::output, Stream::error}) {
    std::size_t& count = counts[static_cast<std::size_t>(stream)];
    if (count == 0 || !node_.listener_.wants(node_.options_.node, stream)) continue;
    node_.channel_.send({{"do", "taken"}, {"stream", static_cast<int>(stream)}, {"count", count}});
    count = 0;
  }
}

Result<std::unique_ptr<RemoteNode>> RemoteNode::start(Loop& loop, NodeListener& listener,
                                                      Output& output, RemoteNodeOptions options) {
  const std::vector<std::string> environment = own_environment();
  const FoundProgram program = find_program(options.command.front(), value_of(environment, "PATH"));
  if (program.failure) return Status(StatusCode::not_found, program.failure->text);
  PipeEnds input = make_pipe();
  auto process = start_process({.path = program.path,
                                .words = options.command,
                                .environment = environment,
                                .input = input.reader.get(),
                                .dispositions = options.dispositions});
  if (!process.ok()) return process.status();
  if (process->failure) return Status(StatusCode::not_found, process->failure->text);
  return std::unique_ptr<RemoteNode>(new RemoteNode(loop, listener, output, std::move(options),
                                                    std::move(*process), std::move(input.writer)));
}

RemoteNode::RemoteNode(Loop& loop, NodeListener& listener, Output& output,
                       RemoteNodeOptions options, Process process, Fd to)
    : loop_(loop),
      listener_(listener),
      output_(output),
      options_(std::move(options)),
      shell_(process.pid),
      channel_(loop, *this, std::move(process.output), std::move(to), false),
      complaints_(*this, std::move(process.error)),
      input_(*this, options_.input),
      printed_(*this) {}

RemoteNode::~RemoteNode() = default;

void RemoteNode::join(const Joining& joining) {
  Json serve;
  if (joining.serve) serve = {{"host", joining.serve->host}, {"port", joining.serve->port}};
  channel_.send({{"do", "join"},
                 {"grace_ns", joining.grace.count()},
                 {"directory", to_text(joining.folder)},
                 {"environment", to_texts(joining.environment)},
                 {"job", to_text(joining.credentials.job)},
                 {"secret", to_text(joining.credentials.secret)},
                 {"serve", serve}});
}

void RemoteNode::on_message(const Json& message, std::string_view data) {
  const std::string told = message.value("is", std::string());
  if (told == "ready") {
    is_ready_ = true;
    store_port_ = message.at("store_port").get<std::uint16_t>();
    master_port_ = message.at("master_port").get<std::uint16_t>();
    input_.is_wanted = true;
  } else if (told == "refused") {
    failure_ = to_bytes(message.at("why").get<std::string>());
  } else if (told == "lost") {
    lose(to_bytes(message.at("why").get<std::string>()));
  } else if (told == "output") {
    const auto stream = message.at("stream").get<int>() == 0 ? Stream::output : Stream::error;
    printed_.counts[static_cast<std::size_t>(stream)] += data.size();
    listener_.on_output(options_.node, message.at("rank").get<int>(), stream, data);
  } else if (told == "rank_end") {
    listener_.on_rank_end(options_.node,
                          {.rank = message.at("rank").get<int>(),
                           .pid = message.at("pid").get<pid_t>(),
                           .status = message.at("status").get<int>(),
                           .text = to_bytes(message.at("text").get<std::string>()),
                           .lasted = Duration(message.at("lasted_ns").get<Duration::rep>())});
  } else if (told == "attempt_end") {
    listener_.on_attempt_end(options_.node);
  } else if (told == "taken") {
    input_.is_wanted = true;
  }
}

void RemoteNode::on_closed(std::string_view why) {
  const auto wait_status = await_end(shell_);
  complaints_.read_rest();
  const std::string said = complaints_.text();
  std::string text(why);
  if (wait_status) {
    text += fmt::format("; {} has ended: {}", options_.command.front(), describe_end(*wait_status));
  }
  if (!said.empty()) text += fmt::format("; it said: {}", said);
  lose(text);
}

void RemoteNode::lose(const std::string& why) {
  if (!failure_) failure_ = why;
  if (std::exchange(is_ready_, false)) listener_.on_lost(options_.node, why);
}

void RemoteNode::start(const Orders& orders) {
  Json ranks = Json::array();
  for (const RankOrder& order : orders.ranks) {
    ranks.push_back({{"rank", order.rank}, {"environment", to_texts(order.environment)}});
  }
  channel_.send({{"do", "start"}, {"command", to_texts(orders.command)}, {"ranks", ranks}});
}

void RemoteNode::signal(int signal) { channel_.send({{"do", "signal"}, {"signal", signal}}); }

void RemoteNode::kill_after(Duration grace) {
  channel_.send({{"do", "kill_after"}, {"grace_ns", grace.count()}});
}

}  // namespace hocket::run
