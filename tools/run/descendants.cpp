#include "run/descendants.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace hocket::run {
namespace {

constexpr std::chrono::seconds end_patience{10};

using Families = std::multimap<pid_t, pid_t>;  // parent, child

std::optional<pid_t> parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(pid)
                                                                  : std::nullopt;
}

/// Out of "pid (any name) state parent …". A dead process counts: its threads may live on.
std::optional<pid_t> parent_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line, '\0');
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || line.size() < name_end + 5) return {};
  const std::size_t begin = name_end + 4;
  return parse_pid(std::string_view(line).substr(begin, line.find(' ', begin) - begin));
}

Families families() {
  Families found;
  if (!sees_descendants()) return found;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const auto pid = parse_pid(entry->d_name);
    if (!pid) continue;
    if (const auto parent = parent_of(*pid)) found.emplace(*parent, *pid);
  }
  closedir(folder);
  return found;
}

void collect(const Families& all, pid_t parent, const std::vector<pid_t>& spared,
             std::vector<pid_t>& to) {
  const auto [begin, end] = all.equal_range(parent);
  for (auto each = begin; each != end; ++each) {
    if (std::ranges::find(spared, each->second) != spared.end()) continue;
    to.push_back(each->second);
    collect(all, each->second, spared, to);
  }
}

/// Whether this process has any children, dead or alive, after those that are dead were reaped.
bool reap_all() {
  pid_t reaped = 0;
  do {
    reaped = waitpid(-1, nullptr, WNOHANG);
  } while (reaped > 0);
  return reaped == 0 || errno != ECHILD;
}

}  // namespace

void adopt_orphans() noexcept { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

bool sees_descendants() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self", error) == std::to_string(getpid());
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const Families all = families();
  const auto [begin, end] = all.equal_range(getpid());
  std::transform(begin, end, std::back_inserter(found), [](auto& each) { return each.second; });
  return found;
}

std::vector<pid_t> kill_descendants(const Clock& clock, const std::vector<pid_t>& spared) {
  const Deadline deadline = Deadline::after(clock, end_patience);
  std::vector<pid_t> left;
  bool was_empty = !sees_descendants();
  for (int pause_ms = 1; reap_all(); pause_ms = std::min(2 * pause_ms, 100)) {
    left.clear();
    collect(families(), getpid(), spared, left);
    if (deadline.passed(clock.now())) return left;
    // A look misses who is born and orphaned during it; only where some are spared it is relied on.
    if (left.empty() && was_empty) return left;
    was_empty = left.empty() && !spared.empty();
    for (const pid_t pid : left) kill(pid, SIGKILL);
    poll(nullptr, 0, pause_ms);  // the next look also finds what was born since this one
  }
  return {};
}

}  // namespace hocket::run
