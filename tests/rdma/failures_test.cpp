// What goes wrong with real queue pairs, what it costs, and that nothing of it is left behind. In
// the machine of tools/rdma-vm, with two adapters; as root there.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "conformance/transport_world.hpp"
#include "net/socket.hpp"
#include "support/child.hpp"
#include "transports/common/link.hpp"
#include "transports/verbs/queue_pair.hpp"
#include "transports/verbs/transport.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

/// Each rank on one of the two adapters.
class Net final : public TransportNet {
 public:
  std::unique_ptr<Transport> make(TransportOptions options) override {
    options.job = "failures";
    options.secret = "of every rank";
    return require(
        verbs::VerbsTransport::make(options, {.devices = fmt::format("=rxe{}", options.rank % 2)}));
  }
};

const TransportSubject verbs_subject = {
    .name = "verbs",
    .make_net = []() -> std::unique_ptr<TransportNet> { return std::make_unique<Net>(); }};

void exchange(TransportWorld& world, std::uint32_t from, std::uint32_t to, std::uint64_t lane,
              std::uint64_t bytes = 100) {
  Parcel sent(bytes);
  Parcel received(bytes);
  sent.fill(lane);
  const Token token = world.send(from, to, lane, sent);
  world.require_success(world.receive(to, from, lane, received));
  world.require_success(token);
  REQUIRE(received.holds(lane));
}

std::string output_of(const char* command) {
  FILE* const pipe = popen(command, "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t count = fread(part.data(), 1, part.size(), pipe)) {
    text.append(part.data(), count);
  }
  REQUIRE(pclose(pipe) == 0);
  return text;
}

/// Between two commands.
class Trouble {
 public:
  Trouble(const char* begin, const char* end) : end_(end) { REQUIRE(std::system(begin) == 0); }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;
  ~Trouble() { static_cast<void>(!std::system(end_)); }

 private:
  const char* end_;
};

/// Sends, and waits on the other's message, in vain; gives what is said of it.
std::string require_end(TransportWorld& world, std::uint32_t rank) {
  Parcel parcel(100);
  const Stopwatch watch;
  const Token sent = world.send(rank, 1 - rank, 0, parcel);
  const Token received = world.receive(rank, 1 - rank, 0, parcel);
  world.finish(received);
  REQUIRE(watch.elapsed() < 10s);
  REQUIRE(world.outcome(sent).is_over);
  REQUIRE(world.outcome(received).status.code() == StatusCode::peer_lost);
  REQUIRE(world.outcome(received).status.peer() == static_cast<int>(1 - rank));
  return world.outcome(received).status.to_string();
}

/// A large message from rank 1 to 0, between registered memory, that rank 0 has asked for in part,
/// and of which rank 1 has not looked for that yet.
struct StraightWorld {
  StraightWorld() {
    exchange(ranks, 0, 1, 1);
    source.fill(5);
    room.poison();
    ranks.at(1).register_memory({source.first().data, source.bytes()});
    ranks.at(0).register_memory({room.first().data, room.bytes(), true});
    post(0, {.kind = TransportOp::Kind::recv, .channel = ranks.channel(0, 1, 0)}, room);
    post(1, {.channel = ranks.channel(1, 0, 0)}, source);
    for (int i = 0; i < 50; ++i) look(0);
  }
  StraightWorld(const StraightWorld&) = delete;
  StraightWorld& operator=(const StraightWorld&) = delete;
  ~StraightWorld() {
    ranks.at(0).deregister_memory({room.first().data, room.bytes(), true});
    ranks.at(1).deregister_memory({source.first().data, source.bytes()});
  }

  void post(std::uint32_t rank, TransportOp op, Parcel& parcel) {
    op.first = parcel.first();
    REQUIRE(ranks.at(rank).post({&op, 1}) == 1);
  }
  /// This rank alone, and gives the others a millisecond.
  void look(std::uint32_t rank) {
    TransportCompletion over;
    if (ranks.at(rank).poll({&over, 1}) == 1 && rank == 0) receive = over;
    usleep(1000);
  }
  void look_until_received() {
    const Stopwatch watch;
    while (!receive && watch.elapsed() < soon) {
      look(1);
      look(0);
    }
    REQUIRE(receive);
  }

  Parcel source{4 << 20};
  Parcel room{4 << 20};
  TransportWorld ranks{verbs_subject, 2};
  std::optional<TransportCompletion> receive = {};
};

/// What all programs have of the adapters, by `rdma resource`: "qp" and how many.
std::map<std::string, long> resources() {
  std::istringstream words(output_of("rdma resource show"));
  const std::set<std::string> kinds = {"pd", "cq", "qp", "mr", "ctx", "srq"};
  std::map<std::string, long> counts;
  for (std::string word; words >> word;) {
    long count = 0;
    if (kinds.contains(word) && words >> count) counts[word] += count;
  }
  REQUIRE(counts.contains("qp"));
  return counts;
}

/// Pages that this process has mapped; those of its queues are among them.
std::uint64_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Duration processor_time() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

}  // namespace

TEST_CASE("a queue pair in error ends its channels, and says what the adapter said") {
  for (const std::uint32_t broken : {0U, 1U}) {
    TransportWorld world(verbs_subject, 3);
    exchange(world, 0, 1, 0);
    exchange(world, 2, 0, 0);
    std::deque<Parcel> parcels;
    std::vector<Token> tokens;
    for (int i = 0; i < 4; ++i) {
      tokens.push_back(world.receive(0, 1, 0, parcels.emplace_back(6 << 20)));
      tokens.push_back(world.send(1, 0, 0, parcels.emplace_back(6 << 20)));
      tokens.push_back(world.send(0, 1, 0, parcels.emplace_back(100)));
    }
    world.pump_rounds(5);
    dynamic_cast<verbs::VerbsTransport&>(world.at(broken)).break_pairs(1 - broken);
    std::size_t lost = 0;
    std::string said;
    for (const Token token : tokens) {
      world.finish(token);
      const Status& status = world.outcome(token).status;
      if (status.ok()) continue;
      ++lost;
      REQUIRE(status.code() == StatusCode::peer_lost);
      REQUIRE(status.peer() >= 0);
      REQUIRE_FALSE(status.hint().empty());
      said += status.to_string();
    }
    INFO(said);
    REQUIRE(lost >= 4);
    REQUIRE(said.find("rxe") != std::string::npos);
    exchange(world, 0, 2, 0);
  }
}

TEST_CASE("a network that falls silent is noticed by whoever sends") {
  TransportWorld world(verbs_subject, 2);
  exchange(world, 0, 1, 0);
  const Trouble silence("tc qdisc add dev port1 root netem loss 100%",
                        "tc qdisc del dev port1 root");
  const std::string said = require_end(world, 0);
  INFO(said);
  REQUIRE(said.find("nothing answers") != std::string::npos);
}

TEST_CASE("a port that goes down ends what goes over it, and is named") {
  {
    TransportWorld world(verbs_subject, 2);
    exchange(world, 0, 1, 0);
    const Trouble down("ip link set port1 down", "ip link set port1 up");
    const std::string said = require_end(world, 1);
    INFO(said);
    REQUIRE(said.find("our port rxe1:1 is down") != std::string::npos);
  }
  const Stopwatch watch;
  while (output_of("rdma link show rxe1/1").find("ACTIVE") == std::string::npos) {
    REQUIRE(watch.elapsed() < soon);
    usleep(10'000);
  }
  TransportWorld again(verbs_subject, 2);
  exchange(again, 0, 1, 0);
}

TEST_CASE("memory of a device takes no small message of a host, and is not touched") {
  TransportWorld world(verbs_subject, 2);
  exchange(world, 0, 1, 0);
  Parcel from(100);
  Parcel room(100);
  from.fill(3);
  room.poison();
  const RegisteredMemory memory = {room.first().data, room.bytes(), true};
  const std::uint32_t peers[] = {1};
  require(world.at(0).register_device_memory({}, -1, peers));
  require(world.at(0).register_device_memory(memory, -1, peers));
  for (const bool is_receive_first : {true, false}) {
    const std::uint64_t lane = is_receive_first ? 1 : 2;
    Token received = 0;
    if (is_receive_first) received = world.receive(0, 1, lane, room);
    world.send(1, 0, lane, from);
    if (!is_receive_first) {
      world.pump_rounds(200);
      received = world.receive(0, 1, lane, room);
    }
    world.finish(received);
    REQUIRE(world.outcome(received).status.code() == StatusCode::mismatch);
    REQUIRE(world.outcome(received).status.peer() == 1);
    REQUIRE(room.is_poisoned());
  }
  Parcel large(100'000);
  Parcel large_room(100'000);
  large.fill(4);
  const RegisteredMemory more = {large_room.first().data, large_room.bytes(), true};
  require(world.at(0).register_device_memory(more, -1, peers));
  const Token sent = world.send(1, 0, 3, large);  // of the host, by slots
  world.require_success(world.receive(0, 1, 3, large_room));
  world.require_success(sent);
  REQUIRE(large_room.holds(4));
  world.at(0).deregister_memory(more);
  world.at(0).deregister_memory(memory);
  exchange(world, 0, 1, 4);
}

TEST_CASE("an op that is of a device in part only fails") {
  TransportWorld world(verbs_subject, 2);
  exchange(world, 0, 1, 0);
  Parcel room(5000);
  const RegisteredMemory memory = {room.first().data, 3000, true};
  const std::uint32_t peers[] = {1};
  require(world.at(0).register_device_memory(memory, -1, peers));
  const Token received = world.receive(0, 1, 1, room);
  world.finish(received);
  REQUIRE(world.outcome(received).status.code() == StatusCode::invalid_argument);
  world.at(0).deregister_memory(memory);
}

TEST_CASE("why memory of a device can't be registered is told, of each way") {
  TransportWorld world(verbs_subject, 2);
  constexpr std::size_t bytes = 1 << 20;
  void* const memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::uint32_t peers[] = {1};
  const RegisteredMemory hidden = {static_cast<std::byte*>(memory), bytes, true};
  const int no_dma_buf = ::memfd_create("no dma-buf", 0);
  for (const int dma_buf : {-1, no_dma_buf}) {
    const Status status = world.at(0).register_device_memory(hidden, dma_buf, peers);
    INFO(status.to_string());
    REQUIRE(status.code() == StatusCode::unsupported);
    REQUIRE(status.what().find("Bad address") != std::string_view::npos);
    const bool tells_more = status.what().find("dma-buf") != std::string_view::npos;
    REQUIRE(tells_more == (dma_buf >= 0));
  }
  ::close(no_dma_buf);
  ::munmap(memory, bytes);
}

TEST_CASE("without credit nothing is sent, and all arrives when there is some again") {
  constexpr int messages = 3000;
  constexpr std::uint32_t senders = 7;
  TransportWorld world(verbs_subject, senders + 1);
  Parcel from(600);  // not inlined
  from.fill(7);
  // Nobody receives: more is offered than all slots and queues hold, from all sides at once.
  for (std::uint32_t rank = 1; rank <= senders; ++rank) {
    exchange(world, rank, 0, 9);
    for (std::uint64_t i = 0; i < messages; ++i) world.send(rank, 0, i % 3, from);
  }
  world.pump_rounds(200);
  exchange(world, 1, 0, 9);
  exchange(world, 0, senders, 9);
  REQUIRE(world.outstanding() > senders * (messages - 3 * (verbs::Channel::window + 1)) - 1);
  std::deque<Parcel> rooms;
  for (std::uint32_t rank = 1; rank <= senders; ++rank) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      world.receive(0, rank, i % 3, rooms.emplace_back(600));
    }
  }
  world.finish(60s);
  for (Parcel& each : rooms) {
    if (!each.holds(7)) FAIL("a message is not as it was");
  }
}

TEST_CASE("a receiver who does not look for long loses nothing") {
  constexpr int messages = 100;
  TransportWorld world(verbs_subject, 16);
  Parcel from(50);
  from.fill(3);
  for (std::uint32_t rank = 1; rank < 16; ++rank) exchange(world, rank, 0, 0);
  // Fifteen times 64 messages and no look: twice what the shared queue holds.
  for (std::uint32_t rank = 1; rank < 16; ++rank) {
    std::vector<TransportOp> ops(messages,
                                 {.channel = world.channel(rank, 0, 0), .first = from.first()});
    REQUIRE(world.at(rank).post(ops) == messages);
  }
  usleep(300'000);
  std::deque<Parcel> rooms;
  std::vector<TransportOp> receives;
  for (std::uint32_t rank = 1; rank < 16; ++rank) {
    for (int i = 0; i < messages; ++i) {
      receives.push_back({.kind = TransportOp::Kind::recv,
                          .channel = world.channel(0, rank, 0),
                          .first = rooms.emplace_back(50).first()});
    }
  }
  REQUIRE(world.at(0).post(receives) == receives.size());
  std::size_t over = 0;
  const Stopwatch watch;
  while (over < receives.size() && watch.elapsed() < soon) {
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      std::array<TransportCompletion, 64> completions;
      const std::size_t count = world.at(rank).poll(completions);
      for (std::size_t i = 0; i < count; ++i) require(completions[i].status);
      if (rank == 0) over += count;
    }
  }
  REQUIRE(over == receives.size());
  for (Parcel& each : rooms) {
    if (!each.holds(3)) FAIL("a message is not as it was");
  }
}

TEST_CASE("registered memory is written to while its owner does not look") {
  StraightWorld world;
  for (int i = 0; i < 100 && world.room.is_poisoned(); ++i) world.look(1);
  REQUIRE_FALSE(world.room.is_poisoned());
  REQUIRE_FALSE(world.receive);
  world.look_until_received();
  require(world.receive->status);
  REQUIRE(world.room.holds(5));
}

TEST_CASE("an op ends when its registered memory is its user's again, and other lanes go on") {
  StraightWorld world;
  world.ranks.close(0, 1, 0, Status(StatusCode::aborted, "enough"));
  world.look(0);
  REQUIRE_FALSE(world.receive);
  world.look_until_received();
  REQUIRE(world.receive->status.code() == StatusCode::aborted);
  world.room.poison();
  exchange(world.ranks, 0, 1, 1);
  exchange(world.ranks, 1, 0, 1);
  REQUIRE(world.room.is_poisoned());
}

TEST_CASE("who does not give registered memory back in time is lost, and can't write to it") {
  StraightWorld world;
  const Stopwatch watch;
  world.ranks.close(0, 1, 0, Status(StatusCode::aborted, "enough"));
  while (!world.receive && watch.elapsed() < soon) world.look(0);
  REQUIRE(world.receive);
  REQUIRE(world.receive->status.code() == StatusCode::aborted);
  REQUIRE(watch.elapsed() > 500ms);
  REQUIRE(watch.elapsed() < 3s);
  world.room.poison();
  for (int i = 0; i < 100; ++i) world.look(1);
  REQUIRE(world.room.is_poisoned());
  Parcel parcel(10);
  world.ranks.require_failure(world.ranks.send(0, 1, 1, parcel), StatusCode::peer_lost);
}

TEST_CASE("a peer costs less than 64 KiB, and only once there is something to say") {
  constexpr std::uint32_t size = 16;
  constexpr std::uint64_t ends = std::uint64_t{size} * (size - 1);
  const long before = resources().at("qp");
  TransportWorld world(verbs_subject, size);
  REQUIRE(resources().at("qp") == before);
  const std::uint64_t mapped = mapped_bytes();
  for (std::uint32_t a = 0; a < size; ++a) {
    for (std::uint32_t b = a + 1; b < size; ++b) {
      exchange(world, a, b, 0);
      exchange(world, b, a, 0);
    }
  }
  REQUIRE(resources().at("qp") - before == static_cast<long>(ends));
  const std::uint64_t each = (mapped_bytes() - mapped) / ends;
  fmt::print("a peer costs {} bytes\n", each);
  REQUIRE(each < 64 << 10);
}

TEST_CASE("who waits for long sleeps, and costs nothing") {
  TransportWorld world(verbs_subject, 2);
  exchange(world, 0, 1, 0);
  exchange(world, 1, 0, 0);
  Parcel room(10);
  const Token waiting = world.receive(0, 1, 0, room);
  world.pump_rounds(100);
  const Duration before = processor_time();
  for (int i = 0; i < 10; ++i) {
    while (!world.at(0).prepare_to_sleep()) world.pump();
    pollfd entry = {.fd = world.at(0).descriptor(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&entry, 1, 100));
  }
  const Duration used = processor_time() - before;
  fmt::print("a second of waiting costs {} us of the processor\n", used / 1us);
  REQUIRE(used < 50ms);
  REQUIRE_FALSE(world.outcome(waiting).is_over);
}

TEST_CASE("without enough memory that may be locked it is said what to raise") {
  Child child([] {
    const rlimit little = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    constexpr uid_t nobody = 65534;
    if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || setuid(nobody) != 0) return false;
    const auto made = verbs::VerbsTransport::make({.rank = 0, .size = 2, .secret = "of both"},
                                                  {.devices = "=rxe0"});
    const Status status = made.status();
    return status.code() == StatusCode::limit_exceeded &&
           status.hint().find("ulimit -l") != std::string_view::npos;
  });
  REQUIRE(child.ended_well());
}

TEST_CASE("after a flood of strangers ranks still connect") {
  TransportWorld world(verbs_subject, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto address = require(common::parse_address(world.at(rank).address()));
    const Deadline deadline = Deadline::after(monotonic_clock(), soon);
    const auto there = require(net::resolve(address.endpoints.front(), deadline)).front();
    for (int i = 0; i < 2 * limits::strangers_at_once; ++i) {
      static_cast<void>(require(net::connect_to(there, deadline)));  // and goes
      if (i % 16 == 0) world.pump_rounds(1);
    }
  }
  world.pump_rounds(100);
  // The other one does nothing but accept.
  Parcel parcel(100);
  world.require_success(world.send(0, 1, 0, parcel));
}

TEST_CASE("a thousand connections and failures leave nothing behind") {
  const auto before = resources();
  for (int i = 0; i < 1000; ++i) {
    TransportWorld world(verbs_subject, 2);
    Parcel parcel(i % 3 == 0 ? 100'000 : 50);
    Parcel room(parcel.bytes());
    const Token received = world.receive(1, 0, 0, room);
    const Token sent = world.send(0, 1, 0, parcel);
    if (i % 4 != 3) world.require_success(received);
    if (i % 4 == 1) {
      dynamic_cast<verbs::VerbsTransport&>(world.at(0)).break_pairs(1);
      world.finish(world.send(0, 1, 0, parcel));
      world.pump_rounds(2);
    }
    if (i % 4 == 2) world.close(0, 1, 0, Status(StatusCode::aborted, "enough"));
    if (i % 4 == 3) world.pump_rounds(i % 20);
    world.end(static_cast<std::uint32_t>(i % 2));
    world.finish();
    REQUIRE(world.outcome(sent).is_over);
  }
  REQUIRE(resources() == before);
}

}  // namespace hocket::testing
