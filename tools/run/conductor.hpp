// Conducts a job on all its nodes: starts the ranks, ends all when one fails or the user says so,
// and starts all anew if it may.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "run/environment.hpp"
#include "run/loop.hpp"
#include "run/node.hpp"
#include "run/output.hpp"
#include "run/signals.hpp"

namespace hocket::run {

struct ConductorOptions {
  World world;
  std::vector<std::string> command;
  std::vector<std::string> hosts;  // the name of each node
  Duration grace = std::chrono::seconds(5);
};

class Conductor final : public NodeListener {
 public:
  /// `lifeline` comes to its end when the job is to end because its guardian died.
  Conductor(Loop& loop, Output& output, ConductorOptions options, SignalQueue signals, Fd lifeline);
  ~Conductor() override;

  /// Nodes are named by their number, in this order.
  void add(Node& node);

  /// Until the job has ended, and all its output is written. Returns the status to exit with.
  int run();

  [[nodiscard]] bool wants(int node, Stream stream) const override;
  void on_output(int node, int rank, Stream stream, std::string_view bytes) override;
  void on_rank_end(int node, const RankEnd& end) override;
  void on_attempt_end(int node) override;
  void on_lost(int node, std::string_view why) override;

 private:
  class User;
  class Lifeline;
  struct Site {
    Node* node = nullptr;
    bool is_busy = false;
    bool is_lost = false;
  };

  void start_attempt();
  void run_attempt();
  void turn();
  void on_user_signal(int signal);
  void abandon();
  void end_all(int signal);
  void fail(int status, bool may_restart);
  void look_at_output();
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] bool may_restart() const;
  [[nodiscard]] int exit_status() const;

  Loop& loop_;
  Output& output_;
  ConductorOptions options_;
  std::unique_ptr<User> user_;
  std::unique_ptr<Lifeline> lifeline_;
  std::vector<Site> sites_;
  std::optional<int> failure_;      // of this attempt: the status of what failed first
  bool failure_is_final_ = false;   // to start anew would not help
  std::optional<int> user_signal_;  // that ended the job
  bool is_ending_ = false;
  bool is_abandoned_ = false;  // nobody waits for its output any more
};

}  // namespace hocket::run
