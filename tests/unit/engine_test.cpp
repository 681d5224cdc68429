// The engine over a transport that we move by hand.
#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "plan/catalog.hpp"
#include "plan/layout.hpp"
#include "support/catch.hpp"
#include "support/require.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

/// What happens at a network, and how often it was asked.
struct Network {
  Fd news = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));  // readable: there are some
  std::atomic<bool> has_come = false;
  std::atomic<bool> is_moving = false;  // parts of messages move
  std::atomic<int> sleeps = 0;
  std::atomic<int> posts = 0;   // calls
  std::atomic<int> sent = 0;    // messages
  std::atomic<int> closed = 0;  // channels
  std::atomic<bool> is_asked = false;
  Duration first_poll = {};  // takes so long
};

/// Tells of what has come only in the poll behind the one that noticed it, as TCP does of a message
/// that is too long for one turn.
class SlowTransport final : public Transport {
 public:
  explicit SlowTransport(Network& network) : network_(network) {}
  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return {}; }
  [[nodiscard]] Status connect(std::span<const std::string> /*addresses*/) override { return {}; }
  [[nodiscard]] Status can_reach(std::uint32_t /*peer*/) const override { return {}; }
  [[nodiscard]] Result<ChannelId> open(std::uint32_t /*peer*/, std::uint64_t /*lane*/) override {
    return channels_++;
  }
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    ++network_.posts;
    for (const TransportOp& op : ops) {
      ops_.push_back(op);
      if (op.kind == TransportOp::Kind::send) ++network_.sent;
    }
    return ops.size();
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    if (!network_.is_asked.exchange(true)) std::this_thread::sleep_for(network_.first_poll);
    const bool was_noticed = std::exchange(is_noticed_, network_.has_come.load());
    if (!was_noticed) return 0;
    std::size_t count = 0;
    for (const TransportOp& op : ops_) {
      completions[count++] = {.token = op.token, .bytes = op.bytes(), .tag = op.tag};
    }
    ops_.clear();
    return count;
  }
  [[nodiscard]] bool has_moved() const noexcept override { return network_.is_moving; }
  void give_back(const std::byte* /*lent*/) noexcept override {}
  [[nodiscard]] int descriptor() const noexcept override { return network_.news.get(); }
  [[nodiscard]] bool prepare_to_sleep() noexcept override {
    if (is_noticed_) return false;
    ++network_.sleeps;
    return true;
  }
  void close(ChannelId /*channel*/, const Status& /*reason*/) noexcept override {
    ++network_.closed;
    network_.has_come = true;  // what was posted ends
  }
  void close_lanes(std::uint64_t /*first*/, std::uint64_t /*last*/,
                   const Status& /*reason*/) noexcept override {}

 private:
  Network& network_;
  TransportCaps caps_;
  ChannelId channels_ = 0;
  bool is_noticed_ = false;
  std::vector<TransportOp> ops_;
};

/// One rank of two, whose peer is the network.
struct Rank {
  Rank() : engine(require(engine::Engine::make(std::make_unique<SlowTransport>(network)))) {
    std::vector<ChannelId> channels;
    for (const engine::Port& port : program.ports()) {
      channels.push_back(require(engine->open(group, port.peer, port.lane)));
    }
    binding = std::make_unique<engine::Binding>(program, plan::even_sizes(problem, 1), 1, channels);
  }

  void start(Deadline deadline = {}) {
    engine->start_in_background({.binding = binding.get(),
                                 .in = in,
                                 .out = out,
                                 .group = &group,
                                 .work = &work,
                                 .deadline = deadline});
  }
  /// Until the thread in the background has found nothing to do, and sleeps or is about to.
  void await_sleep() {
    while (network.sleeps == 0 && watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
  }
  void await_end() {
    while (!work.is_over() && watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
    CHECK(work.is_over());
    CHECK(work.status().ok());
  }

  Stopwatch watch;
  Network network;
  std::unique_ptr<engine::Engine> engine;
  const plan::Problem problem = {.operation = plan::Operation::all_gather, .size = 2};
  const engine::Program program{
      plan::build(*plan::find_algorithm(problem.operation, "ring"), problem, 0)};
  engine::Group group;
  std::unique_ptr<engine::Binding> binding;
  std::byte in[1] = {};
  std::byte out[2] = {};
  engine::Work work;
};

/// One rank of two that sends messages, without waiting for any.
struct Sender {
  explicit Sender(Duration burst_pause)
      : engine(require(engine::Engine::make(std::make_unique<SlowTransport>(network),
                                            {.burst_pause = burst_pause}))) {
    engine->attach(group, mailbox);
    CHECK(engine->open_mail(group, 1, 1, 0, 1).ok());
    network.posts = 0;
  }
  ~Sender() {
    network.has_come = true;
    engine.reset();
  }

  void start(std::span<engine::Work> works) {
    for (engine::Work& work : works) {
      engine->start_in_background(group, {.sends = true, .peer = 1, .work = &work});
    }
  }
  void await_sent(int count) {
    while (network.sent < count && watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
    CHECK(network.sent == count);
  }

  Stopwatch watch;
  Network network;
  engine::Group group;
  engine::Mailbox mailbox{0, 2};
  std::unique_ptr<engine::Engine> engine;
};

}  // namespace

TEST_CASE("many messages in a row go together, also when nobody waits for them") {
  int fewest = 40;
  // On a machine under load others may run between two messages: then they are not in a row.
  for (int attempt = 0; attempt < 5 && fewest > 3; ++attempt) {
    std::array<engine::Work, 40> works;  // that outlive the engine
    Sender sender(10s);
    sender.start(std::span(works).first(4));
    CHECK(sender.network.posts == 4);
    CHECK(sender.network.sent == 4);
    sender.start(std::span(works).subspan(4));
    sender.await_sent(40);
    fewest = std::min<int>(fewest, sender.network.posts - 4);
  }
  CHECK(fewest <= 3);
}

TEST_CASE("messages with pauses between them go one by one") {
  std::array<engine::Work, 40> works;
  Sender sender(0s);
  sender.start(works);
  CHECK(sender.network.posts == 40);
}

TEST_CASE("who looks whether a work is over takes nothing from those who sleep for it") {
  Rank rank;
  rank.start();
  rank.await_sleep();
  rank.network.has_come = true;  // and is noticed by this thread, before the other one can
  CHECK_FALSE(rank.engine->test(rank.work));
  rank.await_end();
}

TEST_CASE("nobody sleeps while parts of a message move") {
  Rank rank;
  rank.network.is_moving = true;
  rank.start();
  while (!rank.network.is_asked && rank.watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // many times as long as one looks before one sleeps
  CHECK(rank.network.sleeps == 0);
  rank.network.is_moving = false;
  rank.await_sleep();
  CHECK(rank.network.sleeps > 0);
  rank.network.has_come = true;
  CHECK(rank.engine->wait(rank.work));
}

TEST_CASE("a deadline ends what moves for too long") {
  Rank rank;
  rank.group.channels = {0};
  rank.network.is_moving = true;
  rank.start(Deadline::after(monotonic_clock(), 50ms));
  while (!rank.work.is_over() && rank.watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
  REQUIRE(rank.work.is_over());
  CHECK(rank.work.status().code() == StatusCode::timeout);
}

TEST_CASE("a work is moved on although who should do it sleeps since the one before") {
  Rank rank;
  rank.start();
  rank.await_sleep();
  rank.network.has_come = true;
  CHECK(rank.engine->wait(rank.work));
  rank.start();
  rank.await_end();
}

TEST_CASE("who is about to sleep moves what another thread has begun since the last look") {
  constexpr std::size_t bytes = 1 << 20;  // a few segments, which only we move
  const plan::Problem problem = {.operation = plan::Operation::all_gather, .size = 1};
  const engine::Program program(
      plan::build(*plan::find_algorithm(problem.operation, "ring"), problem, 0));
  engine::Binding binding(program, plan::even_sizes(problem, bytes), 1, {});
  std::vector<std::byte> in(bytes), out(bytes);
  Network network;
  network.first_poll = 50ms;
  const auto engine =
      require(engine::Engine::make(std::make_unique<SlowTransport>(network), {.spin = 0s}));
  engine::Group group;
  engine::Work never, work;
  never.begin();
  std::thread sleeper([&] { engine->wait(never, Deadline::after(monotonic_clock(), soon)); });
  while (!network.is_asked) std::this_thread::yield();
  engine->start(
      {.binding = &binding, .in = in.data(), .out = out.data(), .group = &group, .work = &work});
  CHECK(engine->wait(work, Deadline::after(monotonic_clock(), soon / 2)));
  sleeper.join();
  never.finish({});
}

TEST_CASE("channels stay open behind a failure if other ranks are to be told first") {
  struct Observer final : engine::GroupObserver {
    bool ends_later = false;
    bool on_failure(const engine::Failure& /*failure*/) noexcept override { return ends_later; }
    void on_stall(const engine::Stall& /*stall*/) noexcept override {}
  };
  const Status why(StatusCode::mismatch, "two calls differ");
  for (const bool ends_later : {false, true}) {
    Observer observer;
    observer.ends_later = ends_later;
    Rank rank;
    rank.group.channels = {0};
    rank.group.observer = &observer;
    rank.engine->fail(rank.group, why);
    CHECK(rank.network.closed == (ends_later ? 0 : 1));
    rank.engine->abort(rank.group, why);
    CHECK_FALSE(rank.engine->failure_of(rank.group).ok());  // which looks for aborts first
    CHECK(rank.network.closed == 1);
  }
}

TEST_CASE("an engine ends although its thread sleeps since the last work") {
  Rank rank;
  rank.start();
  rank.await_sleep();
  rank.network.has_come = true;
  CHECK(rank.engine->wait(rank.work));
  std::atomic<bool> is_gone = false;
  std::thread end([&] {
    rank.engine.reset();
    is_gone = true;
  });
  while (!is_gone && rank.watch.elapsed() < soon) std::this_thread::sleep_for(1ms);
  CHECK(is_gone);
  const std::uint64_t news = 1;  // which would end its sleep in any case
  CHECK(::write(rank.network.news.get(), &news, sizeof news) == sizeof news);
  end.join();
}

}  // namespace hocket::testing
