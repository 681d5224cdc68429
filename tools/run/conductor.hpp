// Conducts a job on all its nodes: starts the ranks, ends all when one fails or the user says so,
// and starts all anew if it may.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "run/environment.hpp"
#include "run/failures.hpp"
#include "run/loop.hpp"
#include "run/node.hpp"
#include "run/output.hpp"
#include "run/record_folder.hpp"
#include "run/user.hpp"

namespace hocket::run {

struct ConductorOptions {
  World world = {};
  std::vector<std::string> command = {};
  std::vector<std::string> hosts = {};  // the name of each node
  int first_node = 0;  // of those that are added; the others have launchers of their own
  Duration grace = std::chrono::seconds(5);
  RecordFolder* records = nullptr;  // of all ranks; null where they are on several hosts
};

class Conductor final : public NodeListener, private UserListener {
 public:
  Conductor(Loop& loop, Output& output, ConductorOptions options, Fd lifeline);

  /// Nodes are named by their number, beginning with first_node. To lose one before run() is no
  /// failure of the job: who gathers them knows.
  void add(Node& node);

  /// Which the nodes are, where that is known only after they came together.
  void set_hosts(std::vector<std::string> hosts) { options_.hosts = std::move(hosts); }
  /// Where the ranks meet, where that is known only after the nodes were asked.
  void set_meeting_point(std::string store, std::string master_host, std::uint16_t master_port);
  /// Waits until `is_met`, `deadline` has passed or the user wants an end. Returns whether it is
  /// met.
  template <class Condition>
  bool wait_for(Condition is_met, Deadline deadline);

  /// Until the job has ended, and all its output is written. Returns the status to exit with.
  int run();

  /// The status to exit with: what failed first, the user's signal, or 0.
  [[nodiscard]] int exit_status() const;

  [[nodiscard]] bool wants(int node, Stream stream) const override;
  void on_output(int node, int rank, Stream stream, std::string_view bytes) override;
  void on_rank_end(int node, const RankEnd& end) override;
  void on_attempt_end(int node) override;
  void on_lost(int node, std::string_view why) override;

 private:
  struct Site {
    Node* node = nullptr;
    bool is_busy = false;
  };

  /// Wakes the loop when a time has come.
  class Alarm final : public Watcher {
   public:
    Alarm(Loop& loop, Deadline deadline) : loop_(loop), deadline_(deadline) { loop_.add(*this); }
    ~Alarm() override { loop_.remove(*this); }
    [[nodiscard]] Deadline deadline() const override { return deadline_; }

   private:
    Loop& loop_;
    Deadline deadline_;
  };

  [[nodiscard]] Site& site(int node);
  void start_attempt();
  void run_attempt();
  void turn();
  void on_signal(int signal) override;
  void on_guardian_death() override;
  void end_all(int signal);
  void fail(int status, bool may_restart);
  void fail_here(int status, std::string_view why);
  void look_at_output();
  void look_at_failures();
  [[nodiscard]] const std::string& host(int node) const;
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] bool has_escaped() const;
  [[nodiscard]] bool may_restart() const;

  Loop& loop_;
  Output& output_;
  ConductorOptions options_;
  User user_;
  std::vector<Site> sites_;
  Failures failures_;               // that were seen together, while others may yet be
  std::optional<Alarm> decision_;   // on what failed first
  std::optional<int> failure_;      // of this attempt: the status of what failed first
  bool failure_is_final_ = false;   // to start anew would not help
  std::optional<int> user_signal_;  // that ended the job
  Instant user_signal_at_ = {};
  bool is_ending_ = false;
  bool is_abandoned_ = false;    // nobody waits for its output any more
  std::optional<Alarm> escape_;  // from nodes that don't answer any more
};

template <class Condition>
bool Conductor::wait_for(Condition is_met, Deadline deadline) {
  const Alarm alarm(loop_, deadline);
  while (!is_met()) {
    if (user_signal_ || deadline.passed(loop_.clock().now())) return false;
    turn();
  }
  return true;
}

}  // namespace hocket::run
