// A node among several whose launchers were started by a scheduler: the ranks of this host, in step
// with those of the others.
#pragma once

#include <string_view>

#include "hocket/status.hpp"

#include "run/crew.hpp"
#include "run/loop.hpp"
#include "run/mail.hpp"
#include "run/meeting.hpp"
#include "run/node.hpp"

namespace hocket::run {

class Peers final : public Node, private NodeListener, private MailListener {
 public:
  /// `crew`: of this host's ranks.
  Peers(Loop& loop, NodeListener& listener, const Meeting& meeting, int node, CrewOptions crew);

  void start(const Orders& orders) override;
  void signal(int signal) override;
  void kill_after(Duration grace) override;
  void tell_why(int status, std::string_view text) override;

 private:
  // The ranks of this host.
  [[nodiscard]] bool wants(int node, Stream stream) const override;
  void on_output(int node, int rank, Stream stream, std::string_view bytes) override;
  void on_rank_end(int node, const RankEnd& end) override;
  void on_attempt_end(int node) override;
  void on_lost(int node, std::string_view why) override;

  // The other nodes.
  void on_end_of_all(const Reason& reason) override;
  void on_over() override;
  void on_cut_off(const Status& why) override;

  NodeListener& listener_;
  int node_;
  Crew crew_;
  Mail mail_;
  bool is_told_ = false;     // the listener knows of a failure in this attempt
  bool is_cut_off_ = false;  // from the other nodes
  bool is_over_ = true;      // for all nodes
};

}  // namespace hocket::run
