// Keeps watch over a world: notices when a rank dies or falls silent, tells all ranks, and gives
// all of them the same story of what happened.
//
// Ranks whose numbers differ by a power of two have a line to each other, so that a word reaches
// everybody in a few steps, whoever has died. Neighbours tell each other several times within
// HOCKET_FAILURE_TIMEOUT that they live; so each rank is watched by two. A line that ends without a
// farewell means that the process at its other end has died.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "health/report.hpp"
#include "health/watched_groups.hpp"
#include "link/greeting.hpp"
#include "link/handler_memory.hpp"
#include "link/reactor.hpp"
#include "wire/credentials.hpp"
#include "wire/tls.hpp"

namespace hocket::health {

class Watch;

struct MonitorOptions {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint64_t epoch = 0;              // of the world
  std::vector<std::string> hosts = {};  // our addresses, by which others can reach us
  wire::Credentials credentials = {};
  wire::TlsOptions tls = {};
  bool allow_without_secret = false;
  /// After so long without a sign of life a rank counts as lost; zero: never.
  Duration failure_timeout = std::chrono::seconds(2);
};

/// Says good-bye to the others of all worlds of this process, and watches no more. exit() does it,
/// too.
void leave_all_worlds() noexcept;

/// Any thread.
class Monitor {
 public:
  /// What to know of another rank.
  struct Contact {
    std::string address = {};  // as address() gives it
    std::string process = {};  // for people: "pid 7 on node1"
  };

  [[nodiscard]] static Result<std::unique_ptr<Monitor>> open(MonitorOptions options);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  /// Says good-bye to the others.
  ~Monitor();

  /// By which others reach this one.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Of all ranks. Returns at once.
  [[nodiscard]] Status connect(const std::vector<Contact>& contacts);
  /// Says good-bye, and watches no more. Waits for that until the deadline.
  void leave(Deadline deadline) noexcept;

  /// A communicator to look after, until it is removed.
  void add(WatchedGroup& group) { groups_.add(group); }
  void remove(WatchedGroup& group) noexcept;
  /// What ended it is known here beyond doubt: nobody waits to find out more.
  void conclude(WatchedGroup& group, const Status& why) noexcept { groups_.conclude(group, why); }
  /// What has ended a communicator here. Never waits.
  void report(WatchedGroup& group, const Report& report) noexcept;
  /// Asks another rank whether it has called the same. Never waits.
  void ask(Question question) noexcept;
  /// Writes a warning to the log on the monitor's thread, because the log may be slow. Never waits.
  void warn(std::string text) noexcept;
  /// A message to or from that rank of the world failed, as if it had died. If it has, that
  /// operation belongs into the story. Never waits.
  void mention(std::uint32_t rank, std::string operation) noexcept;
  /// Why the communicator failed, as all its ranks are told. Waits a moment until that is found
  /// out, if it has failed or is expected to. Success if it is not known.
  [[nodiscard]] Status cause_of(WatchedGroup& group, bool expects_failure) noexcept;

 private:
  Monitor(MonitorOptions options, std::shared_ptr<link::Reactor> reactor, link::Terms terms,
          std::vector<Fd> listeners);

  const MonitorOptions options_;
  const std::shared_ptr<link::Reactor> reactor_;
  const link::Terms terms_;
  link::HandlerMemory question_memory_;
  std::string address_;
  WatchedGroups groups_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace hocket::health
