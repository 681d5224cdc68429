// Messages from rank to rank over the simulated fabric: of any size and tag, begun in any order.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rng.hpp"
#include "engine/executor.hpp"
#include "support/catch.hpp"
#include "support/seeds.hpp"
#include "transports/sim/world.hpp"

namespace hocket::testing {
namespace {

struct Letter {
  std::uint32_t from, to, tag;
  std::uint64_t bytes;
};

/// A send or a receive of one rank.
struct Act {
  bool sends = false;
  std::uint32_t letter = 0;  // of a receive, one with the rank and tag that it asks for
  bool takes_any = false;    // rank
  std::vector<std::byte> memory = {};
  engine::Received received = {};
  engine::Work work = {};
  bool has_begun = false;
};

struct Owner {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<engine::Executor> executor;
  std::unique_ptr<engine::Mailbox> mailbox;
  engine::Group group;
  std::vector<std::unique_ptr<Act>> acts;
};

class MailRun {
 public:
  MailRun(std::uint64_t seed, bool is_deadly)
      : is_deadly_(is_deadly),
        random_(seed),
        size_(static_cast<std::uint32_t>(random_.between(1, 5))),
        world_({.size = size_,
                .seed = seed,
                .profile = is_deadly ? deadly_profile(seed) : wild_profile(seed)}),
        ranks_(size_) {
    for (std::uint64_t i = random_.between(1, 300); i > 0; --i) {
      const auto rank = [&] { return static_cast<std::uint32_t>(random_.below(size_)); };
      letters_.push_back({rank(), rank(), static_cast<std::uint32_t>(random_.below(3)),
                          sizeof(std::uint32_t) + random_.below(most_bytes())});
    }
    set_up();
    make_acts();
  }

  /// What went wrong.
  std::string run() {
    bool has_more = true;
    do {
      has_more = false;
      for (std::uint32_t rank = 0; rank < size_; ++rank) {
        if (world_.is_alive(rank)) has_more |= begin_one(rank);
      }
      for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (std::uint32_t rank = 0; rank < size_; ++rank) {
          if (world_.is_alive(rank)) has_moved |= ranks_[rank].executor->progress();
        }
      }
    } while (!is_over() && (world_.step() || has_more));
    return check();
  }

 private:
  void set_up() {
    std::vector<std::string> addresses;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      ranks_[rank].transport = world_.transport(rank);
      addresses.push_back(ranks_[rank].transport->address());
    }
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      Owner& self = ranks_[rank];
      REQUIRE(self.transport->connect(addresses).ok());
      self.executor = std::make_unique<engine::Executor>(*self.transport);
      self.mailbox = std::make_unique<engine::Mailbox>(rank, size_);
      self.executor->attach(self.group, *self.mailbox);
      for (std::uint32_t peer = 0; peer < size_; ++peer) {
        if (peer == rank) continue;
        const ChannelId letters = self.transport->open(peer, 0).value();
        const ChannelId payloads = self.transport->open(peer, 1).value();
        self.group.channels.push_back(letters);
        self.group.channels.push_back(payloads);
        self.executor->open(self.group, peer, letters, payloads);
      }
    }
  }

  /// Small ones, that are pushed, and that are offered.
  std::uint64_t most_bytes() {
    const std::array<std::uint64_t, 3> most = {200, 9000, 90'000};
    return most.at(random_.chance(0.7) ? 0 : random_.between(1, 2));
  }

  void make_acts() {
    // Who takes from any rank does so always: a receive that names one could go without.
    std::vector<bool> takes_any(size_);
    for (std::uint32_t i = 0; i < size_; ++i) takes_any[i] = !is_deadly_ && random_.chance(0.3);
    for (std::uint32_t i = 0; i < letters_.size(); ++i) {
      const Letter& letter = letters_[i];
      auto send = std::make_unique<Act>();
      send->sends = true;
      send->letter = i;
      send->memory.resize(letter.bytes, static_cast<std::byte>(i));
      std::memcpy(send->memory.data(), &i, sizeof i);
      ranks_[letter.from].acts.push_back(std::move(send));
      auto receive = std::make_unique<Act>();
      receive->letter = i;
      receive->takes_any = takes_any[letter.to];
      receive->memory.resize(100'000);
      // Anywhere among what is begun there: order matters only within a sender and tag, which
      // check() knows by who got what.
      auto& acts = ranks_[letter.to].acts;
      const auto place = static_cast<std::ptrdiff_t>(random_.below(acts.size() + 1));
      acts.insert(acts.begin() + place, std::move(receive));
    }
  }

  /// Now or later. Whether there was one.
  bool begin_one(std::uint32_t rank) {
    auto& acts = ranks_[rank].acts;
    const auto next = std::ranges::find_if(acts, [](const auto& act) { return !act->has_begun; });
    if (next == acts.end()) return false;
    if (random_.chance(0.3)) begin(rank, **next);
    return true;
  }

  void begin(std::uint32_t rank, Act& act) {
    const Letter& letter = letters_[act.letter];
    act.has_begun = true;
    const std::uint32_t peer = act.sends ? letter.to : letter.from;
    ranks_[rank].executor->start(ranks_[rank].group,
                                 {.sends = act.sends,
                                  .peer = act.takes_any ? engine::any_rank : peer,
                                  .tag = letter.tag,
                                  .memory = act.memory.data(),
                                  .bytes = act.memory.size(),
                                  .work = &act.work,
                                  .received = &act.received});
  }

  bool is_over() const {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (!world_.is_alive(rank)) continue;
      for (const auto& act : ranks_[rank].acts) {
        if (!act->has_begun || !act->work.is_over()) return false;
      }
    }
    return true;
  }

  std::string check() {
    if (!is_over()) return "somebody waits for ever\n" + world_.story();
    if (!world_.violation().empty()) return world_.story();
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (!world_.is_alive(rank)) continue;
      // By sender and tag, what the last receive that was begun got.
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> last;
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> begun;
      for (const auto& act : ranks_[rank].acts) {
        const Letter& wanted = letters_[act->letter];
        const std::size_t place = act->sends ? 0 : begun[{wanted.from, wanted.tag}]++;
        if (!act->work.status().ok()) {
          if (is_deadly_) continue;
          return act->work.status().to_string();
        }
        if (act->sends) continue;
        std::string wrong = check_received(rank, *act);
        const auto [former, is_first] =
            last.try_emplace({act->received.peer, act->received.tag}, -1);
        const auto number = static_cast<std::int64_t>(number_of(*act));
        if (wrong.empty() && number <= former->second) wrong = "messages overtook each other";
        former->second = number;
        if (wrong.empty() && !act->takes_any && number != number_sent(wanted, place)) {
          wrong = "one that was lost was passed over";
        }
        if (!wrong.empty()) return wrong + "\n" + world_.story();
      }
    }
    return {};
  }

  /// Of the letters that go the same way with the same tag.
  std::int64_t number_sent(const Letter& like, std::size_t place) const {
    for (std::size_t i = 0; i < letters_.size(); ++i) {
      const Letter& each = letters_[i];
      const bool is_like = each.from == like.from && each.to == like.to && each.tag == like.tag;
      if (is_like && place-- == 0) return static_cast<std::int64_t>(i);
    }
    return -1;
  }

  static std::uint32_t number_of(const Act& act) {
    std::uint32_t number = 0;
    std::memcpy(&number, act.memory.data(), sizeof number);
    return number;
  }

  std::string check_received(std::uint32_t rank, const Act& act) const {
    const Letter& wanted = letters_[act.letter];
    const std::uint32_t number = number_of(act);
    if (number >= letters_.size()) return fmt::format("rank {} got nonsense", rank);
    const Letter& letter = letters_[number];
    const bool is_for_it = letter.to == rank && letter.tag == wanted.tag &&
                           (act.takes_any || letter.from == wanted.from);
    const bool is_told = act.received.peer == letter.from && act.received.tag == letter.tag &&
                         act.received.bytes == letter.bytes;
    if (!is_for_it || !is_told) return fmt::format("rank {} got letter {}", rank, number);
    for (std::uint64_t i = sizeof number; i < letter.bytes; ++i) {
      if (act.memory[i] != static_cast<std::byte>(number)) return "a letter was spoiled";
    }
    return {};
  }

  bool is_deadly_;
  SeededRandom random_;
  std::uint32_t size_;
  SimWorld world_;
  std::vector<Letter> letters_;
  std::vector<Owner> ranks_;
};

void run_mailbox_seeds(std::uint64_t first, std::uint64_t count, bool is_deadly) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    const std::string wrong = std::make_unique<MailRun>(seed, is_deadly)->run();
    INFO(wrong);
    REQUIRE(wrong.empty());
  }
}

TEST_CASE("messages find their receives in rough worlds") { run_mailbox_seeds(1, 150, false); }

TEST_CASE("messages come or fail where ranks die") { run_mailbox_seeds(1, 150, true); }

TEST_CASE("messages find their receives in new worlds", "[new_worlds]") {
  run_mailbox_seeds(fresh_seed(), runs_or(500), false);
}

TEST_CASE("messages come or fail where ranks die in new worlds", "[new_worlds]") {
  run_mailbox_seeds(fresh_seed(), runs_or(500), true);
}

}  // namespace
}  // namespace hocket::testing
