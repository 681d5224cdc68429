#include "run/agent.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "run/channel.hpp"
#include "run/crew.hpp"
#include "run/environment.hpp"
#include "run/guardian.hpp"
#include "run/hosts.hpp"
#include "run/job.hpp"
#include "run/user.hpp"

namespace hocket::run {
namespace {

/// What is typed at the head, on its way to rank 0.
class Input final : public Watcher {
 public:
  Input(Loop& loop, Channel& channel) : loop_(loop), channel_(channel) {
    PipeEnds pipe = make_pipe();
    read_end_ = std::move(pipe.reader);
    write_end_ = std::move(pipe.writer);
    fcntl(write_end_.get(), F_SETFL, O_NONBLOCK);
    loop_.add(*this);
  }
  ~Input() override { loop_.remove(*this); }

  [[nodiscard]] int descriptor() const noexcept { return read_end_.get(); }

  void take(std::string_view data) {
    if (data.empty()) write_end_.reset();
    bytes_.append(data);
  }

  [[nodiscard]] pollfd wanted() const override {
    return {bytes_.empty() ? -1 : write_end_.get(), POLLOUT, 0};
  }
  void ready() override {
    const ssize_t put = ::write(write_end_.get(), bytes_.data(), bytes_.size());
    if (put > 0) bytes_.erase(0, static_cast<std::size_t>(put));
    if (put < 0 && errno != EAGAIN && errno != EINTR) bytes_.clear();
    if (bytes_.empty()) channel_.send({{"is", "taken"}});
  }

 private:
  Loop& loop_;
  Channel& channel_;
  Fd read_end_;
  Fd write_end_;
  std::string bytes_;
};

class Agent final : public ChannelListener, public NodeListener, public UserListener {
 public:
  Agent(Loop& loop, const Dispositions& dispositions, Fd lifeline)
      : loop_(loop),
        dispositions_(dispositions),
        user_(loop, *this, std::move(lifeline)),
        channel_(loop, *this, Fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)),
                 Fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)), true),
        input_(loop, channel_) {}

  int run() {
    while (!is_ending_ || (crew_ && crew_->is_busy())) loop_.turn();
    return 0;
  }

  // The head.
  void on_message(const Json& message, std::string_view data) override;
  void on_closed(std::string_view) override { end(SIGTERM); }

  // The ranks.
  [[nodiscard]] bool wants(int, Stream stream) const override {
    return !channel_.is_open() || untaken_[static_cast<std::size_t>(stream)] < window_bytes;
  }
  void on_output(int node, int rank, Stream stream, std::string_view bytes) override;
  void on_rank_end(int node, const RankEnd& end) override;
  void on_attempt_end(int) override { channel_.send({{"is", "attempt_end"}}); }
  void on_lost(int, std::string_view) override {}

  // Whoever else may end it.
  void on_signal(int signal) override {
    if (!ends_the_job(signal)) return;
    channel_.send({{"is", "lost"}, {"why", "it was told to end by " + signal_name(signal)}});
    end(signal);
  }
  void on_guardian_death() override {
    channel_.send({{"is", "lost"}, {"why", "its launcher there was killed"}});
    end(SIGTERM);
  }

 private:
  void end(int signal);
  [[nodiscard]] Status join(const Json& message);
  void start(const Json& message);

  Loop& loop_;
  Dispositions dispositions_;
  User user_;
  Channel channel_;
  Input input_;
  std::optional<JobStore> store_;
  std::unique_ptr<Crew> crew_;
  Duration grace_ = std::chrono::seconds(5);
  std::array<std::size_t, 2> untaken_{};  // of each stream: bytes sent and not yet taken
  bool is_ending_ = false;
};

void Agent::on_message(const Json& message, std::string_view data) {
  const std::string wanted = message.value("do", std::string());
  if (wanted == "join") {
    const Status status = join(message);
    if (!status.ok()) channel_.send({{"is", "refused"}, {"why", to_text(status.to_string())}});
  } else if (wanted == "taken") {
    untaken_.at(message.at("stream").get<std::size_t>()) -= message.at("count").get<std::size_t>();
  } else if (wanted == "input") {
    input_.take(data);
  } else if (!crew_) {
    return;
  } else if (wanted == "start") {
    start(message);
  } else if (wanted == "signal") {
    crew_->signal(message.at("signal").get<int>());
  } else if (wanted == "kill_after") {
    crew_->kill_after(Duration(message.at("grace_ns").get<Duration::rep>()));
  }
}

Status Agent::join(const Json& message) {
  grace_ = Duration(message.at("grace_ns").get<Duration::rep>());
  const std::string folder = to_bytes(message.at("directory").get<std::string>());
  if (chdir(folder.c_str()) != 0) {
    return Status(StatusCode::system_error, fmt::format("{} can't be entered", folder))
        .with_system_error(errno)
        .with_hint("ranks start in the folder where the launcher was started");
  }
  const auto master_port = free_port();
  if (!master_port.ok()) return master_port.status();
  auto environment = merge(own_environment(), to_words(message.at("environment")));
  Json ready = {{"is", "ready"}, {"store_port", 0}, {"master_port", *master_port}};
  if (const Json& serve = message.at("serve"); !serve.is_null()) {
    auto store = JobStore::serve({.host = serve.at("host").get<std::string>(),
                                  .port = serve.at("port").get<std::uint16_t>()},
                                 {.job = to_bytes(message.at("job").get<std::string>()),
                                  .secret = to_bytes(message.at("secret").get<std::string>())},
                                 environment);
    if (!store.ok()) return store.status();
    store_.emplace(std::move(*store));
    ready["store_port"] = store_->port();
  }
  crew_ = std::make_unique<Crew>(loop_, *this,
                                 CrewOptions{.environment = std::move(environment),
                                             .dispositions = dispositions_,
                                             .input = input_.descriptor()});
  channel_.send(ready);
  return {};
}

void Agent::start(const Json& message) {
  Orders orders = {.command = to_words(message.at("command"))};
  for (const Json& each : message.at("ranks").items()) {
    orders.ranks.push_back(
        {.rank = each.at("rank").get<int>(), .environment = to_words(each.at("environment"))});
  }
  crew_->start(orders);
}

void Agent::on_output(int, int rank, Stream stream, std::string_view bytes) {
  if (!channel_.is_open()) return;
  const auto number = static_cast<std::size_t>(stream);
  untaken_[number] += bytes.size();
  channel_.send({{"is", "output"}, {"rank", rank}, {"stream", number}, {"bytes", bytes.size()}},
                bytes);
}

void Agent::on_rank_end(int, const RankEnd& end) {
  channel_.send({{"is", "rank_end"},
                 {"rank", end.rank},
                 {"pid", end.pid},
                 {"status", end.status},
                 {"text", to_text(end.text)},
                 {"lasted_ns", end.lasted.count()}});
}

void Agent::end(int signal) {
  is_ending_ = true;
  if (!crew_ || !crew_->is_busy()) return;
  crew_->signal(signal);
  crew_->kill_after(grace_);
}

}  // namespace

int serve_as_agent() {
  return guarded([](Fd lifeline, const Dispositions& dispositions) {
    Loop loop(monotonic_clock());
    Agent agent(loop, dispositions, std::move(lifeline));
    return agent.run();
  });
}

}  // namespace hocket::run
