// Who has come to each world that is being formed, and who is known not to come: so that those who
// wait for a rank learn at once that it is lost, was refused or has ended. A state machine without
// clock, thread or socket; the server of a store drives it.
//
// Each client leaves a will: keys, and the value that each gets if the client's connection ends
// before the key is there. The ranks of one world name the same key first, for which all of them
// wait; once it is set, by whomever, nothing here can change what they have been told.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "store/message.hpp"

namespace hocket::store {

/// By which the server knows a client.
using ClientId = std::uint64_t;

/// A rank that is known not to come.
struct Absence {
  std::string prefix = {};  // of the keys of the worlds in question
  int rank = -1;            // -1: one of those that are missing
  std::string value = {};   // for the key
};

/// A key to set unless it is there.
struct Announcement {
  std::string key = {};
  std::string value = {};
};

struct Will {
  std::vector<Announcement> says = {};
  Member member = {};  // size 0: only the end of this client's connection matters

  [[nodiscard]] bool is_of_member() const noexcept { return member.size > 0 && !says.empty(); }
};

class Attendance {
 public:
  /// A rank that was refused may yet come: somebody else may have used its name, or it is started
  /// anew. So long after the last refusal, and after a first rank has come, the others are told.
  static constexpr Duration refusal_grace = std::chrono::milliseconds(1500);
  /// Then a refusal is forgotten.
  static constexpr Duration refusal_memory = std::chrono::seconds(10);
  static constexpr std::size_t refusals_max = 64;
  static constexpr std::size_t reports_max = 16 << 10;

  /// Replaces an earlier will of this client.
  void add(ClientId client, Will will, Instant now);
  /// The client has gone. Gives all that its going announces.
  std::vector<Announcement> remove(ClientId client);

  /// A client that nobody has to believe, as it was refused, said that it was this rank.
  void refuse(Absence absence, Instant now);
  /// A member of the job says so. False when there are too many of them.
  [[nodiscard]] bool report(Absence absence, Instant now);

  /// What is to be announced by now; each key once. `is_set` tells of a key whether it is there, so
  /// that nobody waits for it any more.
  template <class IsSet>
  [[nodiscard]] std::vector<Announcement> take_due(Instant now, const IsSet& is_set) {
    if (!next_.passed(now)) return {};
    for (auto& [key, world] : worlds_) world.is_decided = world.is_decided || is_set(key);
    return take_due(now);
  }
  /// When that may be more.
  [[nodiscard]] Deadline next() const noexcept { return next_; }

 private:
  struct World {
    int size = 0;
    Instant since = {};               // its first rank came
    std::map<int, int> present = {};  // wills of each rank
    bool is_decided = false;
  };
  struct Known {
    Absence absence;
    Instant since;
    Duration grace;
    Instant until;  // and then it is forgotten
  };

  [[nodiscard]] std::vector<Announcement> take_due(Instant now);
  [[nodiscard]] static bool concerns(const Known& known, const std::string& key,
                                     const World& world);
  [[nodiscard]] static Instant due(const Known& known, const World& world);
  void look_ahead();
  void look_ahead(const Known& known);

  std::map<ClientId, Will> wills_;
  std::map<std::string, World> worlds_;  // by their keys
  std::vector<Known> refusals_;
  std::vector<Known> reports_;
  Deadline next_;
};

}  // namespace hocket::store
