#include "run/crew.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "run/descendants.hpp"
#include "run/environment.hpp"
#include "run/hosts.hpp"

namespace hocket::run {

/// One stream of a rank.
class Crew::Pipe final : public Watcher {
 public:
  Pipe(Crew& crew, int rank, Stream stream, Fd fd)
      : crew_(crew), rank_(rank), stream_(stream), fd_(std::move(fd)) {
    crew_.loop_.add(*this);
  }
  ~Pipe() override { crew_.loop_.remove(*this); }

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }

  [[nodiscard]] pollfd wanted() const override { return {is_wanted() ? fd_.get() : -1, POLLIN, 0}; }
  void ready() override { read_some(); }

  /// When no rank lives any more, an empty pipe is at its end, even if somebody still holds it.
  [[nodiscard]] Deadline deadline() const override {
    return crew_.is_draining_ && is_wanted() ? Deadline(Instant::min()) : Deadline::never();
  }
  void due() override {
    if (!read_some()) fd_.reset();
  }

  /// What the rank wrote before it died: no more than a pipe holds.
  void read_rest() {
    for (int i = 0; i < reads_of_a_pipe_max && read_some(); ++i) continue;
  }

 private:
  static constexpr std::size_t read_bytes = 64 << 10;
  static constexpr int reads_of_a_pipe_max = 16;  // 1 MiB, the most that users can set

  [[nodiscard]] bool is_wanted() const {
    return fd_ && crew_.listener_.wants(crew_.options_.node, stream_);
  }

  /// Whether there was something.
  bool read_some() {
    if (!fd_) return false;
    std::array<char, read_bytes> bytes;
    const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
    if (got > 0) {
      const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
      crew_.listener_.on_output(crew_.options_.node, rank_, stream_, text);
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) fd_.reset();
    return false;
  }

  Crew& crew_;
  int rank_;
  Stream stream_;
  Fd fd_;
};

struct Crew::Member {
  Member(Crew& crew, int number, Process started, Instant now)
      : rank(number),
        pid(started.pid),
        born(now),
        output(crew, number, Stream::output, std::move(started.output)),
        error(crew, number, Stream::error, std::move(started.error)) {}

  int rank;
  pid_t pid;  // -1 once it was reaped
  Instant born;
  Pipe output;
  Pipe error;
};

Crew::Crew(Loop& loop, NodeListener& listener, CrewOptions options)
    : loop_(loop), listener_(listener), options_(std::move(options)), absences_(options_.store) {
  loop_.add(*this);
}

Crew::~Crew() { loop_.remove(*this); }

void Crew::start(const Orders& orders) {
  is_busy_ = true;
  is_draining_ = false;
  kill_at_ = Deadline::never();
  members_.clear();
  living_ = 0;
  if (!orders.ranks.empty()) {
    absences_.set_meeting_point(merge(options_.environment, orders.ranks.front().environment));
  }
  for (const RankOrder& order : orders.ranks) start_rank(orders, order);
}

void Crew::start_rank(const Orders& orders, const RankOrder& order) {
  const std::vector<std::string> environment = merge(options_.environment, order.environment);
  const std::string& name = orders.command.front();
  const FoundProgram program = find_program(name, value_of(environment, "PATH"));
  if (program.failure) {
    unborn_.push_back(
        {.rank = order.rank, .status = program.failure->status(), .text = program.failure->text});
    return;
  }
  auto process = start_process({.path = program.path,
                                .words = orders.command,
                                .environment = environment,
                                .input = order.rank == 0 ? options_.input : -1,
                                .dispositions = options_.dispositions});
  if (!process.ok()) {
    unborn_.push_back(
        {.rank = order.rank, .status = exit_not_executable, .text = process.status().to_string()});
    return;
  }
  if (const auto& failure = process->failure) {
    unborn_.push_back({.rank = order.rank, .status = failure->status(), .text = failure->text});
    return;
  }
  members_.push_back(
      std::make_unique<Member>(*this, order.rank, std::move(*process), loop_.clock().now()));
  ++living_;
}

void Crew::ready() {
  while (deaths_.take()) continue;  // several deaths may have made one signal
  reap();
}

Deadline Crew::deadline() const {
  if (!is_busy_) return Deadline::never();
  if (unborn_.empty() && living_ > 0) return kill_at_;
  return is_draining_ && !is_read() ? Deadline::never() : Deadline(Instant::min());
}

void Crew::due() {
  for (const RankEnd& end : std::exchange(unborn_, {})) {
    listener_.on_rank_end(options_.node, end);
  }
  if (kill_at_.passed(loop_.clock().now())) {
    signal_groups(SIGKILL);
    kill_at_ = Deadline::never();
  }
  if (living_ == 0) finish_attempt();
}

void Crew::reap() {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    const auto found =
        std::ranges::find_if(members_, [pid](const auto& member) { return member->pid == pid; });
    if (found != members_.end()) end_rank(**found, wait_status);
  }
}

void Crew::end_rank(Member& member, int wait_status) {
  member.output.read_rest();
  member.error.read_rest();
  const RankEnd end = {.rank = member.rank,
                       .pid = std::exchange(member.pid, -1),
                       .status = exit_status(wait_status),
                       .text = describe_end(wait_status),
                       .lasted = loop_.clock().now() - member.born};
  if (!sees_descendants()) kill(-end.pid, SIGKILL);
  --living_;
  if (end.status == 0) tell_those_who_wait(end);
  listener_.on_rank_end(options_.node, end);
}

/// Who fails ends the job. Who succeeds does not; but others may wait for this rank to join.
void Crew::tell_those_who_wait(const RankEnd& end) {
  absences_.report(end.rank, fmt::format("rank {} (pid {} on {}) exited with status 0 before it "
                                         "joined",
                                         end.rank, end.pid, own_host_name()));
}

bool Crew::is_read() const {
  return std::ranges::none_of(members_, [](const auto& member) {
    return member->output.is_open() || member->error.is_open();
  });
}

void Crew::finish_attempt() {
  if (!is_draining_) {
    kill_descendants(loop_.clock());
    is_draining_ = true;
  }
  if (!is_read()) return;
  is_busy_ = false;
  members_.clear();
  listener_.on_attempt_end(options_.node);
}

void Crew::signal(int signal) {
  signal_groups(signal);
  // A process that is stopped would not see it.
  if (ends_the_job(signal)) signal_groups(SIGCONT);
}

void Crew::signal_groups(int signal) {
  for (const auto& member : members_) {
    const pid_t pid = member->pid;
    if (pid <= 0) continue;
    kill(-pid, signal);
    if (getpgid(pid) != pid) kill(pid, signal);  // it went to another group
  }
}

void Crew::kill_after(Duration grace) {
  kill_at_ = kill_at_.or_sooner(Deadline::after(loop_.clock(), grace));
}

}  // namespace hocket::run
