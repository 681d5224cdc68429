// The ranks that run on this host, as children of this process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "run/absences.hpp"
#include "run/loop.hpp"
#include "run/node.hpp"
#include "run/process.hpp"
#include "run/signals.hpp"

namespace hocket::run {

struct CrewOptions {
  int node = 0;                                 // the name under which it reports
  std::vector<std::string> environment;         // "NAME=value" of every rank
  Dispositions dispositions = {};               // of signals, for the ranks
  int input = -1;                               // stdin of rank 0; -1 for /dev/null
  std::shared_ptr<store::TcpStore> store = {};  // of the job, where there is a connection already
};

class Crew final : public Node, private Watcher {
 public:
  Crew(Loop& loop, NodeListener& listener, CrewOptions options);
  ~Crew() override;

  void start(const Orders& orders) override;
  void signal(int signal) override;
  void kill_after(Duration grace) override;

  [[nodiscard]] bool is_busy() const noexcept { return is_busy_; }

 private:
  class Pipe;
  struct Member;

  [[nodiscard]] pollfd wanted() const override { return {deaths_.descriptor(), POLLIN, 0}; }
  void ready() override;
  [[nodiscard]] Deadline deadline() const override;
  void due() override;

  void start_rank(const Orders& orders, const RankOrder& order);
  void end_rank(Member& member, int wait_status);
  void tell_those_who_wait(const RankEnd& end);
  void reap();
  [[nodiscard]] bool is_read() const;
  void finish_attempt();
  void signal_groups(int signal);

  Loop& loop_;
  NodeListener& listener_;
  CrewOptions options_;
  SignalQueue deaths_{SIGCHLD};
  Absences absences_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<RankEnd> unborn_;  // ranks that could not be started, not yet reported
  std::size_t living_ = 0;
  bool is_busy_ = false;
  bool is_draining_ = false;  // all are dead, and what they wrote is being read
  Deadline kill_at_;
};

}  // namespace hocket::run
