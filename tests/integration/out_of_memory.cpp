// Memory runs out: of one rank of two, the n-th allocation of a scenario fails, for every n until
// the scenario needs no more. That rank gets limit_exceeded, or does without; its communicator then
// either goes on or fails at once, its buffers are left alone, and the other rank does not hang.
//
// Arguments: "every STRIDE [SCENARIO...]" tries every STRIDE-th n, from a random start; "one N RANK
// SCENARIO" only the N-th allocation of that rank; "limit" cuts RLIMIT_AS after the join.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/environment.hpp"
#include "base/fd.hpp"
#include "base/rng.hpp"
#include "net/socket.hpp"
#include "support/operator_new.hpp"
#include "support/seeds.hpp"
#include "support/stopwatch.hpp"
#include "support/temporary_folder.hpp"

namespace {

constexpr std::int64_t never = INT64_MAX;
/// Until the allocation that fails: 0, the next one.
std::atomic<std::int64_t> allocations_left = never;

}  // namespace

void hocket::testing::on_allocation() {
  const bool is_armed = allocations_left.load(std::memory_order_relaxed) != never;
  if (is_armed && allocations_left.fetch_sub(1) == 0) throw std::bad_alloc();
}

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::CollectiveKind;
using hocket::Communicator;
using hocket::Message;
using hocket::StatusCode;
using hocket::Work;
using hocket::testing::Stopwatch;

constexpr int ranks = 2;
constexpr std::size_t small = 16;
constexpr std::size_t large = 150'000;  // several segments
constexpr auto operation_timeout = 20s;
constexpr auto join_timeout = 3s;
constexpr auto soon = 10s;        // of what must not wait for a time-out
constexpr int hang_seconds = 60;  // then a rank is killed
/// The status of a process with which all is well, and whose allocation failed.
constexpr int has_failed = 3;

int wrong(const std::string& what) {
  std::fputs(fmt::format("WRONG: {}\n", what).c_str(), stdout);
  std::fflush(stdout);
  return 1;
}

/// What a rank gives to operations; nobody may write to it once they are over.
struct Buffers {
  std::vector<float> in = std::vector<float>(large * ranks, 1.0F);
  std::vector<float> out = std::vector<float>(large * ranks, 1.0F);
};

struct Scenario {
  std::string name;
  std::function<void(Communicator& world, Buffers& buffers)> run;
  bool has_join = false;
  bool has_rails = false;
  bool serves_store = false;  // rank 0, by TCP
  std::vector<std::pair<const char*, const char*>> variables = {};
};

Collective collective(CollectiveKind kind, std::size_t count, Buffers& buffers) {
  return {.kind = kind,
          .in = buffers.in.data(),
          .out = kind == CollectiveKind::broadcast ? buffers.in.data() : buffers.out.data(),
          .type = hocket::DataType::f32,
          .count = count};
}

void start_several(Communicator& world, Buffers& buffers) {
  Collective first = collective(CollectiveKind::all_reduce, small, buffers);
  Collective second = collective(CollectiveKind::broadcast, large, buffers);
  first.out = buffers.out.data() + large;
  Work works[] = {world.start(first), world.start(second), world.start(first)};
  while (!works[0].test()) std::this_thread::sleep_for(1ms);
  hocket::wait_any(works);
  hocket::wait_all(works);
}

/// Only the thread in the background moves it on.
void start_in_background(Communicator& world, Buffers& buffers) {
  std::atomic<bool> has_ended = false;
  Collective operation = collective(CollectiveKind::all_reduce, large, buffers);
  operation.options.on_end_context = &has_ended;
  operation.options.on_end = [](void* context, StatusCode) {
    *static_cast<std::atomic<bool>*>(context) = true;
  };
  Work work = world.start(operation);
  while (!has_ended) std::this_thread::sleep_for(1ms);
  work.wait();
}

void prepare(Communicator& world, Buffers& buffers) {
  hocket::Prepared prepared = world.prepare(collective(CollectiveKind::all_reduce, large, buffers));
  prepared.run();
  prepared.start().wait();
}

void send_around(Communicator& world, Buffers& buffers) {
  const int other = 1 - world.rank();
  for (const std::size_t count : {small, std::size_t{20'000}, large}) {
    world.sendrecv(Message::send(std::span(buffers.in).first(count), other),
                   Message::recv(std::span(buffers.out).first(count), other));
  }
}

void send_in_background(Communicator& world, Buffers& buffers) {
  const int other = 1 - world.rank();
  for (const std::size_t count : {small, std::size_t{20'000}, large}) {
    Work works[] = {
        world.start(Message::send(std::span(buffers.in).first(count), other, 1)),
        world.start(Message::send(std::span(buffers.in).first(count), other, 2)),
        world.start(Message::recv(std::span(buffers.out).first(count), other, 2)),
        world.start(Message::recv(std::span(buffers.out).subspan(large, count))),
    };
    hocket::wait_all(works);
  }
}

void split(Communicator& world, Buffers& buffers) {
  Communicator part = world.split(0, -world.rank());
  part.run(collective(CollectiveKind::all_reduce, small, buffers));
  part.dup().barrier();
}

/// A rank that has no memory to come at all is missed.
void make_group(Communicator& world, Buffers& buffers) {
  const int order[] = {1, 0};
  Communicator group = world.group(order, "out.of.memory", 2s);
  group.run(collective(CollectiveKind::all_reduce, small, buffers));
}

void leave(Communicator& world, Buffers& buffers) {
  Communicator copy = world.dup();
  Work work = copy.start(collective(CollectiveKind::all_reduce, large, buffers));
  send_around(copy, buffers);
  copy = {};
  work = {};
  world = {};
}

void run_pieces(Communicator& world, Buffers& buffers) {
  std::array<hocket::Piece, 20> pieces;
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = {&buffers.out[i * 100], i};
  world.run(Collective::all_reduce<float>(pieces, hocket::ReduceOp::average));
}

void check_c(hocket_status status) {
  if (status != HOCKET_OK) {
    hocket::throw_error({static_cast<StatusCode>(status), hocket_last_error()});
  }
}

/// By the C ABI, which no exception leaves.
void run_c(Communicator& /*world*/, Buffers& buffers) {
  hocket_join_options options = {};
  options.struct_size = sizeof options;
  options.url = hocket::process_environment().get("MEMORY_URL").data();  // ends with its 0
  options.timeout_ns = std::chrono::nanoseconds(join_timeout).count();
  hocket_comm* world = nullptr;
  hocket_status status = hocket_join(&options, &world);
  hocket_work* work = nullptr;
  if (status == HOCKET_OK) {
    status = hocket_all_reduce(world, buffers.in.data(), buffers.out.data(), large, HOCKET_F32,
                               HOCKET_OP_SUM);
  }
  if (status == HOCKET_OK) {
    hocket_collective barrier = {};
    barrier.struct_size = sizeof barrier;
    barrier.kind = HOCKET_KIND_BARRIER;
    status = hocket_start(world, &barrier, &work);
  }
  std::size_t which = 0;
  if (status == HOCKET_OK) status = hocket_wait_any(&work, 1, &which);
  hocket_work_free(work);
  hocket_comm_free(world);
  check_c(status);
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  all.push_back({.name = "join", .run = [](Communicator&, Buffers&) {}, .has_join = true});
  for (auto kind = CollectiveKind::all_reduce; kind <= CollectiveKind::exscan;
       kind = static_cast<CollectiveKind>(static_cast<int>(kind) + 1)) {
    for (const std::size_t count : {small, large}) {
      if (kind == CollectiveKind::barrier && count == large) continue;
      all.push_back({.name = fmt::format("{} of {}", name(kind), count),
                     .run = [=](Communicator& world, Buffers& buffers) {
                       world.run(collective(kind, count, buffers));
                     }});
    }
  }
  all.push_back({.name = "pieces", .run = run_pieces});
  all.push_back({.name = "start", .run = start_several});
  all.push_back({.name = "background", .run = start_in_background});
  all.push_back({.name = "prepare", .run = prepare});
  all.push_back({.name = "messages", .run = send_around});
  all.push_back({.name = "background messages", .run = send_in_background});
  all.push_back({.name = "split", .run = split});
  all.push_back({.name = "group", .run = make_group});
  all.push_back({.name = "leave", .run = leave});
  all.push_back({.name = "C", .run = run_c, .has_join = true});
  all.push_back(
      {.name = "streams", .run = start_several, .variables = {{"HOCKET_TCP_STREAMS", "3"}}});
  // As if each rank were a host of its own, with two addresses.
  all.push_back({.name = "rails", .run = start_several, .has_rails = true});
  all.push_back({.name = "TCP join",
                 .run = [](Communicator&, Buffers&) {},
                 .has_join = true,
                 .serves_store = true});
  return all;
}

// --- one rank ---

struct Fault {
  int rank = 0;
  std::int64_t n = 0;
};

void arm(const Fault& fault, int rank) {
  if (rank == fault.rank) allocations_left = fault.n;
}

/// The failure that a call ends with, and how long it took.
struct Outcome {
  hocket::Status status = {};
  hocket::Duration time = {};
};

template <class Call>
Outcome outcome_of(const Call& call) {
  const Stopwatch watch;
  try {
    call();
  } catch (const hocket::Error& error) {
    return {error.status(), watch.elapsed()};
  }
  return {{}, watch.elapsed()};
}

/// The rank that serves the store may lose a client, itself among them, for want of memory.
bool is_for_want_of_memory(const hocket::Status& status, const Scenario& scenario) {
  for (const hocket::Status* each = &status; each != nullptr; each = each->cause()) {
    if (each->code() == StatusCode::limit_exceeded || each->system_error() == ENOMEM) return true;
  }
  return scenario.serves_store;
}

/// The memory of operations that are over is its owner's, also while the communicator is used.
int check_afterwards(Communicator& world, Buffers& buffers) {
  std::ranges::fill(buffers.in, 7.0F);
  std::ranges::fill(buffers.out, 7.0F);
  for (int i = 0; i < 2; ++i) {
    float value = 1;
    const Outcome later = outcome_of(
        [&] { world.all_reduce(std::span(&value, 1), {}, {.timeout = operation_timeout}); });
    if (later.time > soon) return wrong("a later operation hangs: " + later.status.to_string());
  }
  std::this_thread::sleep_for(2ms);
  const auto is_ours = [](float value) { return value == 7.0F; };
  if (!std::ranges::all_of(buffers.in, is_ours) || !std::ranges::all_of(buffers.out, is_ours)) {
    return wrong("a buffer is written to after its operation");
  }
  return 0;
}

int run_rank(const Scenario& scenario, int rank, const std::string& url, const Fault& fault) {
  ::setenv("MEMORY_URL", url.c_str(), 1);
  for (const auto& [name, value] : scenario.variables) ::setenv(name, value, 1);
  if (scenario.has_rails) {
    ::setenv("HOCKET_TCP_INTERFACES", fmt::format("127.0.0.{0},127.0.1.{0}", rank + 1).c_str(), 1);
  }
  Buffers buffers;
  Communicator world;
  hocket::set_log_sink([](void*, hocket_log_level, const char*) {}, nullptr);
  const hocket::JoinOptions options = {
      .url = url, .timeout = join_timeout, .operation_timeout = operation_timeout};
  const auto join = [&] { world = hocket::join(options); };
  const bool is_c = scenario.has_join && scenario.name == "C";
  Outcome outcome;
  if (scenario.has_join) {
    arm(fault, rank);
    outcome = outcome_of([&] { is_c ? scenario.run(world, buffers) : join(); });
  } else {
    join();
    arm(fault, rank);
    outcome = outcome_of([&] { scenario.run(world, buffers); });
  }
  const bool has_fired = rank == fault.rank && allocations_left < 0;
  allocations_left = never;
  if (outcome.time > soon) return wrong("it hangs: " + outcome.status.to_string());
  if (rank == fault.rank && !outcome.status.ok() &&
      !(has_fired && is_for_want_of_memory(outcome.status, scenario))) {
    return wrong("not for want of memory: " + outcome.status.to_string());
  }
  if (world && check_afterwards(world, buffers) != 0) return 1;
  return has_fired ? has_failed : 0;
}

// --- all of them ---

/// Status of a rank as a shell has it.
int status_of(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A socket with a port of its own that nobody listens at. A server may listen there beside it, but
/// the system gives the port to nobody else.
hocket::Fd reserve_port() {
  hocket::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  const int on = 1;
  // Only then shared: a port that is shared from the beginning may be one that others have.
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    throw std::runtime_error("no port");
  }
  return socket;
}

/// Whether the allocation failed. Throws when something is wrong.
bool try_one(const Scenario& scenario, const Fault& fault, const std::string& place) {
  pid_t processes[ranks] = {};
  std::string meeting = "file://" + place;
  hocket::Fd port;
  if (scenario.serves_store) {
    port = reserve_port();
    meeting = "tcp://" + hocket::net::local_address(port.get()).endpoint().to_string();
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string url = fmt::format("{}?rank={}&size={}", meeting, rank, ranks);
    processes[rank] = ::fork();
    if (processes[rank] != 0) continue;
    ::alarm(hang_seconds);
    int status = 1;
    try {
      status = run_rank(scenario, rank, url, fault);
    } catch (const std::exception& error) {
      allocations_left = never;
      status = wrong(fmt::format("an exception escapes: {}", error.what()));
    }
    std::_Exit(status);
  }
  bool has_fired = false;
  std::string statuses;
  bool is_right = true;
  for (const pid_t each : processes) {
    const int status = status_of(each);
    has_fired = has_fired || status == has_failed;
    is_right = is_right && (status == 0 || status == has_failed);
    statuses += fmt::format(" {}", status);
  }
  if (!is_right) {
    throw std::runtime_error(fmt::format("{}, allocation {} of rank {}: ranks end with{}",
                                         scenario.name, fault.n, fault.rank, statuses));
  }
  return has_fired;
}

/// A process that does try_one(), so that several go on at once.
pid_t try_beside(const Scenario& scenario, const Fault& fault, const std::string& place) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  int status = 0;
  try {
    if (try_one(scenario, fault, place)) status = has_failed;
  } catch (const std::runtime_error& error) {
    status = wrong(error.what());
  }
  std::_Exit(status);
}

/// From the first n on, at every stride, until all of a batch need fewer allocations. How many
/// were wrong.
int try_scenario(const Scenario& scenario, int rank, std::int64_t stride) {
  const hocket::testing::TemporaryFolder folder;
  const Stopwatch watch;
  // Those that join wait for each other, and not for a processor.
  const int batch = scenario.has_join ? 16 : 4;
  hocket::SeededRandom random(hocket::testing::fresh_seed());
  auto n = static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(stride));
  int failures = 0;
  for (bool has_fired = true; has_fired;) {
    has_fired = false;
    std::vector<pid_t> processes;
    for (int i = 0; i < batch; ++i, n += stride) {
      const std::string place = fmt::format("{}/{}", folder.path(), n);
      processes.push_back(try_beside(scenario, {.rank = rank, .n = n}, place));
    }
    for (const pid_t each : processes) {
      const int status = status_of(each);
      if (status != 0) has_fired = true;
      if (status != 0 && status != has_failed) ++failures;
    }
  }
  fmt::print("{}, rank {}: up to {} allocations, {:.1f} s\n", scenario.name, rank, n,
             std::chrono::duration<double>(watch.elapsed()).count());
  std::fflush(stdout);
  return failures;
}

int try_every(std::int64_t stride, std::span<char*> names) {
  int failures = 0;
  for (const Scenario& scenario : scenarios()) {
    const auto is_named = [&](const char* name) {
      return scenario.name.find(name) != std::string::npos;
    };
    if (!names.empty() && std::ranges::none_of(names, is_named)) continue;
    for (int rank = 0; rank < ranks; ++rank) failures += try_scenario(scenario, rank, stride);
  }
  return failures == 0 ? 0 : 1;
}

int try_alone(const Fault& fault, std::string_view name) {
  const hocket::testing::TemporaryFolder folder;
  for (const Scenario& scenario : scenarios()) {
    if (scenario.name == name) return try_one(scenario, fault, folder.path() + "/1") ? 0 : 1;
  }
  return wrong("no such scenario");
}

// --- with the system's limit ---

std::size_t address_space_bytes() {
  std::ifstream status("/proc/self/statm");
  std::size_t pages = 0;
  status >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// A rank that gets no more memory from the system: to scale what it gives, it needs as much as
/// its vector, and for what it starts a thread.
int run_without_memory(int rank, const std::string& url) {
  Buffers buffers;
  Communicator world =
      hocket::join({.url = url, .timeout = 60s, .operation_timeout = operation_timeout});
  Communicator second = world.dup();
  // One that nothing fails in: who is slow to leave a barrier of the others may find them failed.
  Communicator third = world.dup();
  std::vector<float> values(std::size_t{4} << 20, 1.0F);
  third.barrier();
  const rlimit limit = {.rlim_cur = address_space_bytes() + (std::size_t{1} << 20),
                        .rlim_max = RLIM_INFINITY};
  if (rank == 0) ::setrlimit(RLIMIT_AS, &limit);
  hocket::Reduction scaled(hocket::ReduceOp::premul_sum);
  scaled.factor = 2;
  const Outcome run = outcome_of([&] { world.all_reduce(values, scaled); });
  const Outcome started =
      outcome_of([&] { second.start(Collective::all_reduce(values, values)).wait(); });
  if (rank == 0) {
    const rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &none);
  }
  for (const Outcome& each : {run, started}) {
    if (each.time > soon) return wrong("it hangs: " + each.status.to_string());
    const bool is_right =
        rank == 0 ? each.status.code() == StatusCode::limit_exceeded : !each.status.ok();
    if (!is_right) return wrong(fmt::format("rank {}: {}", rank, each.status.to_string()));
  }
  return check_afterwards(world, buffers) + check_afterwards(second, buffers);
}

int try_limit() {
  const hocket::testing::TemporaryFolder folder;
  pid_t processes[ranks] = {};
  for (int rank = 0; rank < ranks; ++rank) {
    processes[rank] = ::fork();
    if (processes[rank] != 0) continue;
    ::alarm(hang_seconds);
    std::_Exit(run_without_memory(
        rank, fmt::format("file://{}/1?rank={}&size={}", folder.path(), rank, ranks)));
  }
  int failures = 0;
  for (const pid_t each : processes) failures += status_of(each) == 0 ? 0 : 1;
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("HOCKET_SECRET", "of this test", 1);
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (argc > 2 && std::string_view(argv[1]) == "every") {
    return try_every(std::strtoll(argv[2], nullptr, 10), arguments.subspan(3));
  }
  if (argc == 5 && std::string_view(argv[1]) == "one") {
    return try_alone({.rank = std::atoi(argv[3]), .n = std::atoll(argv[2])}, argv[4]);
  }
  if (argc == 2 && std::string_view(argv[1]) == "limit") return try_limit();
  return wrong("out_of_memory every STRIDE [SCENARIO...] | one N RANK SCENARIO | limit");
}
