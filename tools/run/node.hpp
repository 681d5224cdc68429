// The ranks of one host, as who conducts the job sees them: of this host (Crew) or of another
// (RemoteNode).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"
#include "run/output.hpp"

namespace hocket::run {

struct RankOrder {
  int rank = 0;
  std::vector<std::string> environment = {};  // "NAME=value", beside what the node has itself
};

/// All that one attempt takes on one node.
struct Orders {
  std::vector<std::string> command = {};
  std::vector<RankOrder> ranks = {};
};

/// How a rank ended.
struct RankEnd {
  int rank = 0;
  pid_t pid = -1;
  int status = 0;         // as a shell shows it
  std::string text = {};  // "killed by SIGSEGV (Segmentation fault)"
  Duration lasted = Duration::zero();
};

/// Hears of a node. Every call names it, so that one can hear of many.
class NodeListener {
 public:
  NodeListener() = default;
  NodeListener(const NodeListener&) = delete;
  NodeListener& operator=(const NodeListener&) = delete;
  virtual ~NodeListener() = default;

  /// Whether output of this stream is taken now. While it is not, the ranks are not read.
  [[nodiscard]] virtual bool wants(int node, Stream stream) const = 0;
  virtual void on_output(int node, int rank, Stream stream, std::string_view bytes) = 0;
  /// After what the rank had written until then.
  virtual void on_rank_end(int node, const RankEnd& end) = 0;
  /// Nothing of the attempt runs any more, and all its output has been handed over.
  virtual void on_attempt_end(int node) = 0;
  /// The node is lost, with all that ran there.
  virtual void on_lost(int node, std::string_view why) = 0;
};

class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  /// Starts an attempt, which always ends with on_attempt_end or on_lost: later, never within this
  /// call. A rank that can't be started has ended, with a text that says why.
  virtual void start(const Orders& orders) = 0;
  /// Sends a signal to every rank and its process group.
  virtual void signal(int signal) = 0;
  /// Kills what still runs of the attempt when `grace` has passed.
  virtual void kill_after(Duration grace) = 0;
  /// Why the attempt is about to be ended, where no rank is the reason: for those who conduct the
  /// other nodes, should there be any.
  virtual void tell_why(int status, std::string_view text) {
    static_cast<void>(status);
    static_cast<void>(text);
  }
};

}  // namespace hocket::run
