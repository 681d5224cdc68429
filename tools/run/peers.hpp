// A node among several whose launchers were started by a scheduler: the ranks of this host, in step
// with those of the others. The launchers meet in the job's store, under "launch/":
//
//   node/N         what node N is: {"host", "ranks"}; node 0 adds "master_port"
//   taken/N        how many launchers have come as node N
//   alive/N        counts up as long as N's launcher lives; node 0 looks at it
//   A/failed       what failed first in attempt A
//   A/ended        how many nodes have nothing left of attempt A; A/ended/N whether N has not
//   A/news/N       queue of what node N must hear: {"failed": …}, and last "over"
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "net/endpoint.hpp"
#include "run/crew.hpp"
#include "run/loop.hpp"
#include "run/node.hpp"
#include "store/store.hpp"
#include "wire/credentials.hpp"
#include "wire/tls.hpp"

namespace hocket::run {

/// Where the launchers meet, and all that they know of each other then.
struct Meeting {
  std::unique_ptr<store::Store> store;
  std::vector<std::string> hosts = {};  // of each node
  std::uint16_t master_port = 0;
};

struct MeetingOptions {
  net::Endpoint server = {};
  wire::Credentials credentials = {};
  wire::TlsOptions tls = {};
  int node = 0;
  int nodes = 1;
  int ranks = 1;  // of this node
  std::string host = {};
  std::uint16_t master_port = 0;  // on node 0: one that is free
  Duration timeout = std::chrono::minutes(5);
};

/// Waits for the launchers of all nodes, as long as `goes_on`, which is asked every second or so.
/// Fails with the nodes that are missing, that are there twice or that want another number of
/// ranks.
[[nodiscard]] Result<Meeting> meet(const MeetingOptions& options,
                                   const std::function<bool()>& goes_on);

class Peers final : public Node, private NodeListener, private Watcher {
 public:
  /// `crew`: of this host's ranks.
  Peers(Loop& loop, NodeListener& listener, Meeting& meeting, int node, CrewOptions crew);
  /// Waits a moment for the other launchers to have heard how it ended.
  ~Peers() override;

  void start(const Orders& orders) override;
  void signal(int signal) override;
  void kill_after(Duration grace) override;

 private:
  using Json = nlohmann::json;

  // The ranks of this host.
  [[nodiscard]] bool wants(int node, Stream stream) const override;
  void on_output(int node, int rank, Stream stream, std::string_view bytes) override;
  void on_rank_end(int node, const RankEnd& end) override;
  void on_attempt_end(int node) override;
  void on_lost(int node, std::string_view why) override;

  // News, on their way from the listening thread to the loop.
  [[nodiscard]] pollfd wanted() const override { return {bell_.get(), POLLIN, 0}; }
  void ready() override;
  void listen(int attempt);
  void look_for_the_dead();
  void hand_over(std::string news);

  void count_end(int node);
  void tell_all(const std::string& news);
  void publish(const Json& failure);
  void tell(const Json& failure);
  void lose_store(const Status& why);
  [[nodiscard]] std::string key(std::string_view name) const;

  Loop& loop_;
  NodeListener& listener_;
  Meeting& meeting_;
  int node_;
  Crew crew_;
  int attempt_ = -1;
  bool is_told_ = false;   // the listener knows of a failure in this attempt
  bool has_store_ = true;  // as long as node 0 lives
  bool is_over_ = true;    // for all nodes
  Fd bell_;                // rung for news
  std::mutex mutex_;       // of news_
  std::deque<std::string> news_;
  std::atomic<bool> is_stopping_ = false;
  std::vector<std::pair<std::string, Instant>> alive_;  // of each node: the count, and since when
  std::thread thread_;
};

}  // namespace hocket::run
