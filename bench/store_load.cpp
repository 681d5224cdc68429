#include "store_load.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "net/socket.hpp"
#include "store/server.hpp"

namespace hocket::bench {
namespace {

constexpr std::size_t small_request_bytes = 45;

void require(const Status& status) {
  if (!status.ok()) throw_error(status);
}

std::pair<Fd, Fd> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("socketpair failed");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

/// A child that runs `work` with its end of a pair of sockets, and dies with this process.
template <class Work>
std::pair<pid_t, Fd> fork_child(Work work) {
  std::pair<Fd, Fd> ends = socket_pair();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return {pid, std::move(ends.first)};
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ends.first.reset();
  try {
    work(ends.second.get());
  } catch (const std::exception& error) {
    fmt::print(stderr, "hocket-bench: {}\n", error.what());
  }
  ::_exit(1);
}

void end_child(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void write_line(int socket, std::string line) {
  line += '\n';
  require(net::send_all(socket, line, Deadline::never()));
}

/// Empty at the end.
std::string read_line(int socket) {
  std::string line;
  char next = 0;
  while (::read(socket, &next, 1) == 1 && next != '\n') line += next;
  return line;
}

net::Endpoint read_endpoint(int socket) {
  auto endpoint = net::parse_endpoint(read_line(socket));
  require(endpoint.status());
  return *endpoint;
}

void serve_echo(int report) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto addresses = net::resolve({"127.0.0.1", 0}, Deadline::never());
  require(addresses.status());
  if (::bind(listener.get(), addresses->front().get(), addresses->front().bytes) != 0 ||
      ::listen(listener.get(), 1) != 0) {
    throw std::runtime_error("can't listen");
  }
  write_line(report, net::local_address(listener.get()).endpoint().to_string());
  const Fd client(::accept(listener.get(), nullptr, nullptr));
  net::set_options(client.get());
  char bytes[small_request_bytes];
  for (;;) {
    const ssize_t count = ::recv(client.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return;
    static_cast<void>(::send(client.get(), bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL));
  }
}

constexpr const char* torch_script = R"py(
import datetime, os, subprocess, sys, time
os.environ.setdefault("USE_LIBUV", "0")
import torch
from torch.distributed import TCPStore
if len(sys.argv) > 1:
    store = TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=60))
    print(store.port, flush=True)
    sys.stdin.read()
    sys.exit()
server = subprocess.Popen([sys.executable, "-c", os.environ["HOCKET_BENCH_SCRIPT"], "serve"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
port = int(server.stdout.readline())
store = TCPStore("127.0.0.1", port, None, False, datetime.timedelta(seconds=60))
print(torch.__version__, flush=True)
for line in sys.stdin:
    trips = int(line)
    start = time.perf_counter()
    for _ in range(trips):
        store.add("n", 1)
    print((time.perf_counter() - start) / trips, flush=True)
)py";

void run_torch(int socket) {
  ::dup2(socket, STDIN_FILENO);
  ::dup2(socket, STDOUT_FILENO);
  ::setenv("HOCKET_BENCH_SCRIPT", torch_script, 1);
  // Where there is no PyTorch, what Python has to say of that is for nobody.
  if (std::freopen("/dev/null", "w", stderr) == nullptr) return;
  for (const char* python : {"/usr/bin/python3", "python3"}) {
    const std::string check = fmt::format("{} -c 'import torch.distributed' </dev/null", python);
    if (std::system(check.c_str()) != 0) continue;
    ::execlp(python, python, "-c", torch_script, nullptr);
  }
}

void send_requests(const store::ConnectOptions& server, const Load& load) {
  auto connection = store::Connection::open(server);
  require(connection.status());
  const store::Request request{.kind = store::Kind::add, .keys = {"n"}, .number = 1};
  std::vector<std::uint64_t> ids;
  for (int sent = 0; sent < load.requests; sent += load.in_flight) {
    ids.clear();
    for (int i = 0; i < load.in_flight; ++i) {
      const auto id = (*connection)->send(request, Deadline::never());
      require(id.status());
      ids.push_back(*id);
    }
    for (const std::uint64_t id : ids) {
      require((*connection)->receive(id, Deadline::never()).status);
    }
  }
}

}  // namespace

void pin(pid_t process, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int each = 0; each < CPU_SETSIZE; ++each) {
    if (core < 0 || each == core) CPU_SET(static_cast<std::size_t>(each), &cores);
  }
  const pid_t group = process == 0 ? ::getpid() : process;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", group))) {
    ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof cores, &cores);
  }
}

ServerProcess::ServerProcess() : secret_(random_hex(16)) {
  auto [pid, socket] = fork_child([this](int report) {
    auto server = store::Server::start({.credentials = {.job = "bench", .secret = secret_}});
    require(server.status());
    write_line(report, (*server)->endpoint().to_string());
    static_cast<void>(read_line(report));
  });
  pid_ = pid;
  endpoint_ = read_endpoint(socket.get());
  static_cast<void>(socket.release());  // open until we end: the child waits for that
}

ServerProcess::~ServerProcess() { end_child(pid_); }

store::ConnectOptions ServerProcess::address() const {
  return {.server = endpoint_,
          .credentials = {.job = "bench", .secret = secret_},
          .timeout = std::chrono::seconds(30)};
}

std::size_t ServerProcess::resident_bytes() const {
  std::ifstream file(fmt::format("/proc/{}/statm", pid_));
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

EchoProcess::EchoProcess() {
  auto [pid, socket] = fork_child(serve_echo);
  pid_ = pid;
  const auto addresses = net::resolve(read_endpoint(socket.get()), Deadline::never());
  require(addresses.status());
  auto connected = net::connect_to(addresses->front(), Deadline::never());
  require(connected.status());
  socket_ = std::move(*connected);
  ::fcntl(socket_.get(), F_SETFL, 0);  // blocking
}

EchoProcess::~EchoProcess() { end_child(pid_); }

void EchoProcess::trip() {
  char bytes[small_request_bytes] = {};
  const ssize_t sent = ::send(socket_.get(), bytes, sizeof bytes, MSG_NOSIGNAL);
  const ssize_t received = ::recv(socket_.get(), bytes, sizeof bytes, MSG_WAITALL);
  if (sent != sizeof bytes || received != sizeof bytes) {
    throw std::runtime_error("the echo process does not answer");
  }
}

std::unique_ptr<TorchStore> TorchStore::start() {
  std::pair<pid_t, Fd> child = fork_child(run_torch);
  std::string version = read_line(child.second.get());
  if (version.empty()) {
    end_child(child.first);
    return nullptr;
  }
  return std::unique_ptr<TorchStore>(
      new TorchStore(child.first, std::move(child.second), std::move(version)));
}

TorchStore::TorchStore(pid_t pid, Fd pipe, std::string version)
    : pid_(pid), pipe_(std::move(pipe)), version_(std::move(version)) {}

TorchStore::~TorchStore() { end_child(pid_); }

void TorchStore::pin(int client, int server) const {
  bench::pin(pid_, client);
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid_));
  for (pid_t child = 0; children >> child;) bench::pin(child, server);
}

double TorchStore::seconds_a_trip(int trips) {
  write_line(pipe_.get(), std::to_string(trips));
  return std::strtod(read_line(pipe_.get()).c_str(), nullptr);
}

double requests_a_second(const store::ConnectOptions& server, const Load& load) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(load.clients));
  const Instant start = monotonic_clock().now();
  std::vector<std::thread> clients;
  for (std::exception_ptr& failure : failures) {
    clients.emplace_back([&] {
      try {
        send_requests(server, load);
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const std::chrono::duration<double> time = monotonic_clock().now() - start;
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return static_cast<double>(load.clients) * load.requests / time.count();
}

}  // namespace hocket::bench
