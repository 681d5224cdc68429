#include "start.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "measure.hpp"
#include "ranks.hpp"
#include "world/rendezvous.hpp"

namespace hocket::bench {
namespace {

using namespace std::chrono_literals;

constexpr Duration patience = 60s;

struct Options {
  int ranks = 64;
  int rounds = 5;
  bool json = false;
  bool is_rank = false;
};

/// A launcher, and what it is told to start.
struct Contestant {
  std::string name;
  std::vector<std::string> words;
  std::string absence = {};  // why it can't be measured here
  std::vector<double> seconds = {};
};

void join_and_leave() {
  const world::World world = world::rendezvous().value();
  if (Status status = world.store->barrier("joined", world.size); !status.ok()) throw_error(status);
}

pid_t spawn(const std::vector<std::string>& words) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

/// How long the command takes from its start to its end; nothing when it fails.
std::optional<double> seconds_of(const std::vector<std::string>& words) {
  const Instant start = monotonic_clock().now();
  const pid_t pid = spawn(words);
  if (pid < 0) return {};
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ready{.fd = end.get(), .events = POLLIN, .revents = 0};
  constexpr auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  if (::poll(&ready, 1, static_cast<int>(patience_ms.count())) != 1) ::kill(pid, SIGKILL);
  const double seconds = std::chrono::duration<double>(monotonic_clock().now() - start).count();
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? std::optional(seconds) : std::nullopt;
}

std::vector<Contestant> contestants(const Options& options) {
  const std::string ranks = std::to_string(options.ranks);
  const std::string this_program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string launcher = beside_this_program("hocket");
  const std::string open_mpi = beside_this_program("mpi_start.openmpi");
  const std::string mpich = beside_this_program("mpi_start.mpich");
  std::vector<Contestant> all = {
      {"Hocket", {launcher, "run", "-n", ranks, "--", this_program, "start", "--as-rank"}},
      {"Open MPI",
       {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
        "mpi_yield_when_idle", "1", "-n", ranks, open_mpi}},
      {"MPICH", {"mpirun.mpich", "-n", ranks, mpich}},
  };
  if (launcher.empty()) all[0].absence = "the program hocket is not beside this one";
  if (open_mpi.empty()) all[1].absence = "mpicc.openmpi was not there for the build";
  if (mpich.empty()) all[2].absence = "mpicc.mpich was not there for the build";
  return all;
}

void measure_starts(std::vector<Contestant>& all, const Options& options) {
  for (int round = 0; round < options.rounds; ++round) {
    for (Contestant& each : all) {
      if (!each.absence.empty()) continue;
      if (const auto seconds = seconds_of(each.words)) {
        each.seconds.push_back(*seconds);
      } else {
        each.absence = "its command fails: " + fmt::format("{}", fmt::join(each.words, " "));
      }
    }
  }
}

void print_table(const std::vector<Contestant>& all, const Options& options) {
  fmt::print(
      "{} local processes join one world, pass a barrier and end: the whole command.\n"
      "Medians of {} rounds that take turns.\n\n",
      options.ranks, options.rounds);
  for (const Contestant& each : all) {
    if (each.absence.empty()) {
      fmt::print("  {:<10} {:>8.0f} ms   {:.2f}x Hocket   (best {:.0f}, worst {:.0f})\n", each.name,
                 median(each.seconds) * 1e3,
                 all[0].seconds.empty() ? 0 : median(each.seconds) / median(all[0].seconds),
                 std::ranges::min(each.seconds) * 1e3, std::ranges::max(each.seconds) * 1e3);
    } else {
      fmt::print("  {:<10} not measured: {}\n", each.name, each.absence);
    }
  }
}

void print_json(const std::vector<Contestant>& all, const Options& options) {
  using Json = nlohmann::ordered_json;
  Json document = {{"benchmark", "start"},
                   {"version", version()},
                   {"ranks", options.ranks},
                   {"rounds", options.rounds},
                   {"launchers", Json::array()}};
  for (const Contestant& each : all) {
    Json row = {{"name", each.name}, {"command", each.words}};
    if (each.absence.empty()) {
      row["seconds"] = each.seconds;
      row["median_s"] = median(each.seconds);
    } else {
      row["not_measured"] = each.absence;
    }
    document["launchers"].push_back(row);
  }
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_start_command(CLI::App& program) {
  // The program owns its sub-commands, and with this one the options.
  const auto options = std::make_shared<Options>();
  CLI::App* const parser = program.add_subcommand(
      "start", "How long a launcher takes until its processes are one world, beside MPI's");
  parser->add_option("--ranks", options->ranks, "Processes")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  parser->add_option("--rounds", options->rounds, "Rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  parser->add_flag("--json", options->json, "Write one JSON document");
  parser->add_flag("--as-rank", options->is_rank)->group("");  // what the launcher starts
  parser->callback([options] {
    if (options->is_rank) return join_and_leave();
    std::vector<Contestant> all = contestants(*options);
    measure_starts(all, *options);
    options->json ? print_json(all, *options) : print_table(all, *options);
  });
}

}  // namespace hocket::bench
