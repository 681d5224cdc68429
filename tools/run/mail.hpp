// What the launchers of all nodes tell each other while ranks run, through the store in which they
// met. All calls of the store are made by threads of their own, for each may take long; the loop
// posts and is told, and never waits for them. The keys, of attempt A:
//
//   launch/A/failed    what failed first, on any node
//   launch/A/ended/N   whether node N has nothing left of the attempt
//   launch/A/news/N    queue of what node N must hear: {"node", …} of what failed, and last "over"
//   launch/A/heard/N   whether it has heard that
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "run/loop.hpp"
#include "run/node.hpp"
#include "store/tcp_store.hpp"

namespace hocket::run {

/// Why an attempt is ended: a rank's end or, with rank and pid -1, that of a launcher.
struct Reason {
  int node = 0;
  RankEnd end = {};
};

class MailListener {
 public:
  MailListener() = default;
  MailListener(const MailListener&) = delete;
  MailListener& operator=(const MailListener&) = delete;
  virtual ~MailListener() = default;

  /// All nodes are to end this attempt, for what failed first on any. Perhaps more than once.
  virtual void on_end_of_all(const Reason& reason) = 0;
  /// Nothing is left of this attempt on any node. On node 0: and the others have heard it.
  virtual void on_over() = 0;
  /// No more is heard of the others, nor do they hear anything.
  virtual void on_cut_off(const Status& why) = 0;
};

class Mail final : private Watcher {
 public:
  Mail(Loop& loop, MailListener& listener, std::shared_ptr<store::TcpStore> store, int node,
       int nodes);
  /// What was posted has a moment yet to go out.
  ~Mail() override;

  /// The next attempt begins, after the last is over.
  void start();
  /// Something has failed here.
  void post(Reason reason);
  /// Nothing is left of the attempt here.
  void post_end();

 private:
  struct Post {
    int attempt = 0;
    int node = 0;
    std::optional<Reason> reason = {};  // none: the end of the node's part
  };
  struct Event {
    int attempt = 0;
    std::optional<Reason> reason = {};
    Status cut_off = {};
    // Neither: it is over.
  };
  struct Pulse {
    std::string count = {};
    Instant since = {};
  };

  [[nodiscard]] pollfd wanted() const override { return {bell_.get(), POLLIN, 0}; }
  void ready() override;
  void hand_in(Post post);
  void hand_over(Event event);

  // The thread that sends.
  void send_posts();
  Status send(const Post& post);
  Status send_reason(int attempt, const Reason& reason);
  Status send_end(int attempt, int node);
  Status tell_all(int attempt, const std::string& news);

  // The thread that listens, of each attempt.
  void listen(int attempt);
  void spread_that_it_is_over(int attempt);
  void look_for_the_dead(int attempt, std::vector<Pulse>& pulses);

  Loop& loop_;
  MailListener& listener_;
  const std::shared_ptr<store::TcpStore> store_;
  const int node_;
  const int nodes_;
  int attempt_ = -1;
  const Fd bell_;  // rung for events

  std::mutex mutex_;  // of what follows
  std::deque<Post> posts_;
  std::deque<Event> events_;
  bool is_closing_ = false;
  std::condition_variable changed_;  // posts_ or is_closing_

  std::thread sender_;
  std::thread ear_;
};

}  // namespace hocket::run
