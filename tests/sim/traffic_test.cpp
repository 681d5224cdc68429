// Random traffic in random worlds: what must be right whatever the world does.
#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/rng.hpp"
#include "sim/ranks.hpp"
#include "support/seeds.hpp"

using namespace hocket;
using namespace hocket::testing;

namespace {

/// Ranks that each post a list of sends and receives, in a random order across channels, as fast as
/// they are taken.
class Traffic {
 public:
  Traffic(std::uint64_t seed, const SimProfile& profile)
      : random_(~seed),
        ranks_({.size = static_cast<std::uint32_t>(1 + random_.below(5)),
                .seed = seed,
                .profile = profile}),
        programs_(ranks_.transports.size()) {
    const std::uint64_t channels = 1 + random_.below(12);
    const auto size = static_cast<std::uint32_t>(programs_.size());
    for (std::uint64_t lane = 0; lane < channels; ++lane) {
      const auto a = static_cast<std::uint32_t>(random_.below(size));
      const auto b = static_cast<std::uint32_t>(random_.below(size));
      if (a != b) add_channel(a, b, lane);
    }
    for (Program& program : programs_) shuffle(program);
  }

  /// Empty if all was right.
  std::string run() {
    do {
      for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
        while (ranks_.world.is_alive(rank) && advance(rank)) continue;
      }
      if (!wrong_.empty() || !ranks_.world.violation().empty()) return tell();
    } while (!is_done() && ranks_.world.step());
    if (!is_done()) wrong_ = "a hang";
    return wrong_.empty() ? "" : tell();
  }

  [[nodiscard]] std::uint64_t fingerprint() const { return ranks_.world.fingerprint(); }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }

 private:
  struct Op {
    TransportOp op;
    Bytes memory;
    std::uint64_t message;  // what it carries
    std::uint64_t bytes;
    bool is_done = false;
  };
  struct Program {
    std::vector<std::vector<Op>> streams;  // of one channel and kind
    std::vector<std::size_t> order;        // streams, in each of which the next op comes
    std::vector<std::size_t> posted;       // by stream
    std::vector<std::size_t> completed;
    std::vector<bool> has_failed;  // channels
    std::size_t next = 0;
    std::size_t done = 0;
  };

  void add_channel(std::uint32_t a, std::uint32_t b, std::uint64_t lane) {
    const auto [at_a, at_b] = ranks_.open(a, b, lane);
    const std::uint64_t count = random_.below(20);
    for (const bool is_back : {false, true}) {
      std::vector<Op> sends;
      std::vector<Op> receives;
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t id = ++messages_;
        const std::uint64_t bytes = random_.chance(0.2) ? random_.below(9000) : random_.below(100);
        sends.push_back({.op = {.channel = is_back ? at_b : at_a},
                         .memory = message(id, bytes),
                         .message = id,
                         .bytes = bytes});
        receives.push_back({.op = {.kind = TransportOp::Kind::recv,
                                   .may_lend = random_.chance(0.5),
                                   .channel = is_back ? at_a : at_b},
                            .memory = Bytes(bytes + random_.below(3)),
                            .message = id,
                            .bytes = bytes});
      }
      programs_[is_back ? b : a].streams.push_back(std::move(sends));
      programs_[is_back ? a : b].streams.push_back(std::move(receives));
    }
  }

  void shuffle(Program& program) {
    program.posted.resize(program.streams.size());
    program.completed.resize(program.streams.size());
    for (std::size_t stream = 0; stream < program.streams.size(); ++stream) {
      for (std::size_t i = 0; i < program.streams[stream].size(); ++i) {
        Op& op = program.streams[stream][i];
        const std::uint64_t cut = random_.below(op.memory.size() + 1);
        op.op.first = {op.memory.data(), cut};
        op.op.rest = {op.memory.data() + cut, op.memory.size() - cut};
        op.op.token = stream << 32 | i;
        program.order.push_back(stream);
        program.has_failed.resize(
            std::max<std::size_t>(program.has_failed.size(), op.op.channel + 1));
      }
    }
    for (std::size_t i = program.order.size(); i > 1; --i) {
      std::swap(program.order[i - 1], program.order[random_.below(i)]);
    }
  }

  /// True if there was something to do.
  bool advance(std::uint32_t rank) {
    Transport& transport = *ranks_.transports[rank];
    Program& program = programs_[rank];
    std::vector<TransportOp> batch;
    std::vector<std::size_t> posted = program.posted;
    for (std::size_t i = program.next; i < program.order.size() && batch.size() < 6; ++i) {
      const std::size_t stream = program.order[i];
      batch.push_back(program.streams[stream][posted[stream]++].op);
    }
    const std::size_t taken = transport.post(batch);
    for (std::size_t i = 0; i < taken; ++i) ++program.posted[program.order[program.next++]];
    std::array<TransportCompletion, 3> completions;
    const std::size_t count = transport.poll(completions);
    for (const TransportCompletion& each : std::span(completions).first(count)) {
      complete(rank, program, each);
    }
    return taken + count > 0;
  }

  void complete(std::uint32_t rank, Program& program, const TransportCompletion& done) {
    const std::size_t stream = done.token >> 32;
    const std::size_t index = done.token & UINT32_MAX;
    if (program.completed[stream]++ != index) wrong_ = "a completion out of order, or twice";
    Op& op = program.streams[stream][index];
    ++program.done;
    if (done.status.ok()) return check(rank, op, done);
    ++failures_;
    if (done.status.code() != StatusCode::peer_lost || done.status.peer() < 0) {
      wrong_ = done.status.to_string();
    }
  }

  void check(std::uint32_t rank, const Op& op, const TransportCompletion& done) {
    if (done.bytes != op.bytes) wrong_ = "a message of another length";
    if (op.op.kind == TransportOp::Kind::send) return;
    const std::byte* const data = done.lent != nullptr ? done.lent : op.memory.data();
    if (as_text({data, op.bytes}) != as_text(message(op.message, op.bytes))) wrong_ = "wrong data";
    if (done.lent != nullptr) ranks_.transports[rank]->give_back(done.lent);
  }

  [[nodiscard]] bool is_done() const {
    for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
      if (ranks_.world.is_alive(rank) && programs_[rank].done < programs_[rank].order.size()) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string tell() const { return wrong_ + "\n" + ranks_.world.story(); }

  SeededRandom random_;
  Ranks ranks_;
  std::vector<Program> programs_;
  std::uint64_t messages_ = 0;
  std::uint64_t failures_ = 0;
  std::string wrong_;
};

}  // namespace

TEST_CASE("all arrives, and right, in worlds calm and wild") {
  const std::uint64_t fresh = fresh_seed();
  for (std::uint64_t i = 0; i < 600; ++i) {
    const std::uint64_t seed = i < 400 ? i : fresh + i;
    Traffic calm(seed, {});
    REQUIRE(calm.run() == "");
    Traffic wild(seed, wild_profile(seed));
    REQUIRE(wild.run() == "");
    REQUIRE(calm.failures() + wild.failures() == 0);
  }
}

TEST_CASE("in deadly worlds every op of those alive is over some time") {
  const std::uint64_t fresh = fresh_seed();
  std::uint64_t failures = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t seed = i < 700 ? i : fresh + i;
    Traffic deadly(seed, deadly_profile(seed));
    REQUIRE(deadly.run() == "");
    failures += deadly.failures();
  }
  CHECK(failures > 1000);
}

TEST_CASE("the same seed gives the same world, and another one another") {
  std::set<std::uint64_t> fingerprints;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Traffic once(seed, deadly_profile(seed));
    Traffic again(seed, deadly_profile(seed));
    CHECK(once.run() == again.run());
    CHECK(once.fingerprint() == again.fingerprint());
    fingerprints.insert(once.fingerprint());
  }
  CHECK(fingerprints.size() > 40);  // some have no traffic at all
}
