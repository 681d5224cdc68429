// Tells the ranks that still wait for another one in the job's store that its process has ended. A
// program need not join any world: then nobody waits, and nobody is told.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/tcp_store.hpp"

namespace hocket::run {

class Absences {
 public:
  /// `store`: the ranks', where there is a connection to it already; it can't be another job's that
  /// came to the same place later. Else one is made when it is needed.
  explicit Absences(std::shared_ptr<store::TcpStore> store) : store_(std::move(store)) {}
  Absences(const Absences&) = delete;
  Absences& operator=(const Absences&) = delete;
  /// Gives up what has not been told yet.
  ~Absences();

  /// Where and as whom the ranks of an attempt meet: the environment of one of them.
  void set_meeting_point(std::vector<std::string> environment);

  /// Rank `rank` has ended, of which `text` says how. Returns at once: a thread of its own, begun
  /// by the first call, does what may have to wait for the network.
  void report(int rank, std::string text);

 private:
  struct Report {
    std::vector<std::string> environment = {};
    int rank = 0;
    std::string text = {};
  };

  void work();
  void tell(const Report& report);

  std::vector<std::string> environment_;
  std::thread thread_;

  std::mutex mutex_;  // of what follows
  std::condition_variable woken_;
  std::deque<Report> reports_;
  bool is_over_ = false;

  // Of the thread.
  std::shared_ptr<store::TcpStore> store_;
};

}  // namespace hocket::run
