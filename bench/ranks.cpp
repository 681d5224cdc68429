#include "ranks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/environment.hpp"
#include "base/machine.hpp"
#include "comm/card.hpp"
#include "world/entry.hpp"
#include "world/launcher.hpp"

namespace hocket::bench {
namespace {

bool is_launched() {
  const Environment environment = process_environment();
  if (environment.has(variables::rendezvous.name)) return true;
  const auto launcher = world::detect_launcher(environment);
  return launcher.ok() || launcher.status().code() != StatusCode::not_found;
}

[[noreturn]] void launch(int ranks, std::span<const std::string> words) {
  const std::string launcher = beside_this_program("hocket");
  if (launcher.empty()) {
    throw_error(Status(StatusCode::not_found, "the program hocket is not beside this one")
                    .with_hint("start the ranks yourself: hocket run -n 4 -- hocket-bench …"));
  }
  std::vector<std::string> command = {launcher,
                                      "run",
                                      "-n",
                                      std::to_string(ranks),
                                      "--no-tag-output",
                                      "--",
                                      std::filesystem::read_symlink("/proc/self/exe")};
  command.insert(command.end(), words.begin(), words.end());
  // Their stderr is none, even if this one's is.
  if (isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 0) command.emplace_back("--progress");
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(launcher.c_str(), arguments.data());
  throw_error(Status(StatusCode::system_error, fmt::format("{} can't be started", launcher))
                  .with_system_error(errno));
}

void check_root(const WorldOptions& options, int ranks) {
  if (options.root < ranks) return;
  throw program::UsageError("--root", fmt::format("{} is none of {} ranks", options.root, ranks));
}

int processors() { return static_cast<int>(std::thread::hardware_concurrency()); }

/// How many different texts the ranks have.
int count_different(Communicator& world, const std::string& ours) {
  const std::uint64_t hash = std::hash<std::string>()(ours);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather(std::span(&hash, 1), all);
  return static_cast<int>(std::set(all.begin(), all.end()).size());
}

}  // namespace

std::string beside_this_program(const std::string& name) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {here, here.parent_path() / "tools"}) {  // installed; a build folder
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  return {};
}

void add_world_options(program::Parser& parser, WorldOptions& options) {
  parser
      .add_option("--ranks", &options.ranks,
                  "Without a launcher: start so many here (as many as processors, at least 2)")
      .in_range(1, 4096);
  parser.add_option("--transport", &options.transport, "Sets HOCKET_TRANSPORT");
}

Communicator join_world(const WorldOptions& options, const std::vector<std::string>& words) {
  if (!options.transport.empty()) {
    ::setenv(std::string(variables::transport.name).c_str(), options.transport.c_str(), 1);
  }
  if (!is_launched()) {
    const int ranks = options.ranks > 0 ? options.ranks : std::max(2, processors());
    check_root(options, ranks);
    launch(ranks, words);
  }
  Communicator world = join();
  check_root(options, world.size());
  if (options.ranks == 0 || options.ranks == world.size()) return world;
  throw program::UsageError("--ranks",
                            fmt::format("{} is for a world of its own; the launcher's has {} ranks",
                                        options.ranks, world.size()));
}

int count_hosts(Communicator& world) {
  return count_different(world, world::describe_process().host);
}

int count_machines(Communicator& world) {
  const std::string machine = own_machine();
  return machine.empty() ? count_hosts(world) : count_different(world, machine);
}

double max_over_ranks(Communicator& world, double value) {
  world.all_reduce(std::span(&value, 1), ReduceOp::max);
  return value;
}

std::uint64_t sum_over_ranks(Communicator& world, std::uint64_t value) {
  world.all_reduce(std::span(&value, 1));
  return value;
}

Progress::Progress(bool is_asked) : is_terminal_(isatty(STDERR_FILENO) == 1), is_asked_(is_asked) {}

void Progress::show(const std::string& what) const {
  if (!is_terminal_ && !is_asked_) return;
  fmt::print(stderr, "{}{} …{}", is_terminal_ ? "\r\x1b[K" : "", what, is_terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void Progress::clear() const {
  if (is_terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace hocket::bench
