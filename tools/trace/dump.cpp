#include "trace/dump.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "record/recorder.hpp"

namespace hocket::trace {
namespace {

namespace fs = std::filesystem;
using record::Entry;
using record::Header;
using record::Life;

/// A file's device and inode, by which it is found among a process's descriptors.
using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> identity_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity(status.st_dev, status.st_ino);
}

Status cannot(std::string_view what, const std::string& path) {
  return Status(StatusCode::system_error, fmt::format("can't {} {}", what, quote(path)))
      .with_system_error(errno);
}

bool is_time(std::int64_t time) { return time >= 0 && time < std::int64_t{1} << 61; }

/// Whatever a file says, its numbers are safe to count and calculate with.
bool is_plausible(const Header& header) {
  return header.magic == record::magic && header.entries == record::entries_kept &&
         header.entry_bytes == sizeof(Entry) && header.size > 0 &&
         header.size <= static_cast<std::uint32_t>(limits::world_size_max) &&
         header.rank < header.size && is_time(header.monotonic_time) &&
         is_time(header.universal_time) && is_time(header.copy_time) &&
         header.life <= Life::unknown;
}

bool is_plausible(const Entry& entry) {
  return entry.sequence != 0 && is_time(entry.begun) && is_time(entry.arrived) &&
         is_time(entry.ended) && entry.kind < record::kinds_max &&
         entry.state <= record::State::failed;
}

using Bytes = std::vector<std::byte>;

Result<Bytes> read_bytes(int file, const std::string& path) {
  Bytes bytes(record::file_bytes);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  Header header = {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (done < bytes.size() || !is_plausible(header)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} holds no records of this version of Hocket", quote(path)))
        .with_hint("use the `hocket` command of the version that the program uses");
  }
  return bytes;
}

/// Reads the file twice, and drops entries that another operation took over in between.
Result<Bytes> read_consistently(const std::string& path) {
  // Whatever it is: to open a pipe would wait for its writer.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return cannot("open", path);
  auto bytes = read_bytes(file.get(), path);
  if (!bytes.ok()) return bytes;
  auto again = read_bytes(file.get(), path);
  if (!again.ok()) return again;
  for (std::size_t at = record::entries_at; at < record::file_bytes; at += sizeof(Entry)) {
    if (std::memcmp(&(*bytes)[at], &(*again)[at], sizeof(Entry::sequence)) == 0) continue;
    std::memset(&(*bytes)[at], 0, sizeof(Entry));
  }
  return bytes;
}

std::vector<int> processes() {
  std::vector<int> pids;
  std::error_code error;
  for (const auto& each : fs::directory_iterator("/proc", error)) {
    const auto pid = parse_integer(each.path().filename().native());
    if (pid && *pid > 0) pids.push_back(static_cast<int>(*pid));
  }
  return pids;
}

bool has_open(int pid, const Identity& file) {
  std::error_code error;
  for (const auto& each : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    if (identity_of(each.path()) == file) return true;
  }
  return false;
}

/// The letter of a process's state, behind its name in parentheses.
char state_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= line.size() ? 'X' : line[name_end + 2];
}

/// The process that has the file open, or 0. Its number may be another one than the rank itself
/// knows, where containers have numbers of their own.
int holder_of(const Header& header, const Identity& file) {
  if (has_open(header.pid, file)) return header.pid;
  for (const int pid : processes()) {
    if (has_open(pid, file)) return pid;
  }
  return 0;
}

/// Whether a process has the file that made it, which is the rank's sign of life.
bool is_locked(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Life life_of(const Header& header, const std::string& path) {
  if (header.life != Life::joined) return header.life;
  const auto file = identity_of(path);
  if (!file || file->second != header.inode) return Life::unknown;  // a copy
  if (!is_locked(path))
    return record::host_name() == header.host.data() ? Life::gone : Life::unknown;
  const int pid = holder_of(header, *file);
  const char state = pid == 0 ? 'R' : state_of(pid);
  return state == 'T' || state == 't' ? Life::stopped : Life::running;
}

std::vector<Entry> entries_of(const Bytes& bytes) {
  std::vector<Entry> entries(record::entries_kept);
  std::memcpy(entries.data(), bytes.data() + record::entries_at, entries.size() * sizeof(Entry));
  std::erase_if(entries, [](const Entry& each) { return !is_plausible(each); });
  std::ranges::sort(entries, {}, &Entry::sequence);
  return entries;
}

std::int64_t last_time(const Dump& dump) {
  std::int64_t last = dump.header.monotonic_time;
  for (const Entry& each : dump.entries) {
    last = std::max({last, each.begun, each.arrived, each.ended});
  }
  return last;
}

std::int64_t monotonic_now() { return monotonic_clock().now().time_since_epoch().count(); }

}  // namespace

std::string Dump::name() const {
  return fmt::format("rank {} (pid {} on {})", rank(), header.pid, host());
}

const Dump* World::find(std::uint32_t rank) const noexcept {
  const auto found = std::ranges::find(dumps, rank, &Dump::rank);
  return found == dumps.end() ? nullptr : &*found;
}

std::vector<std::uint32_t> World::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (find(rank) == nullptr) ranks.push_back(rank);
  }
  return ranks;
}

Result<Dump> read_dump(const std::string& path) {
  const auto bytes = read_consistently(path);
  if (!bytes.ok()) return bytes.status();
  Dump dump;
  std::memcpy(&dump.header, bytes->data(), sizeof dump.header);
  dump.header.host.back() = dump.header.transport.back() = dump.header.failure.back() = '\0';
  dump.entries = entries_of(*bytes);
  dump.life = life_of(dump.header, path);
  const bool is_alive = dump.life == Life::running || dump.life == Life::stopped;
  dump.now = dump.header.copy_time;
  if (dump.now == 0) dump.now = is_alive ? monotonic_now() : last_time(dump);
  return dump;
}

Status copy_dump(const std::string& from, const std::string& to) {
  auto bytes = read_consistently(from);
  if (!bytes.ok()) return bytes.status();
  Header header = {};
  std::memcpy(&header, bytes->data(), sizeof header);
  header.life = life_of(header, from);
  header.copy_time = monotonic_now();
  std::memcpy(bytes->data(), &header, sizeof header);
  const Fd file(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  for (std::size_t done = 0; file && done < bytes->size();) {
    const ssize_t count = ::write(file.get(), &(*bytes)[done], bytes->size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("write", to);
    done += static_cast<std::size_t>(count);
  }
  return file ? Status() : cannot("write", to);
}

std::vector<std::string> live_record_files() {
  std::vector<std::string> paths;
  std::set<Identity> seen;
  for (const int pid : processes()) {
    std::error_code ignored;  // the process has ended, or belongs to another user
    for (const auto& each : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), ignored)) {
      const std::string target = fs::read_symlink(each.path(), ignored);
      const bool is_ours = target.ends_with(record::file_mark) ||
                           target.starts_with(fmt::format("/memfd:{}", record::file_mark));
      if (!is_ours) continue;
      const std::string path = each.path();
      const auto file = identity_of(path);
      if (file && seen.insert(*file).second) paths.push_back(path);
    }
  }
  return paths;
}

Result<std::vector<std::string>> record_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(folder, error)) {
    if (each.path().native().ends_with(record::file_mark)) paths.push_back(each.path());
  }
  if (error) {
    return Status(StatusCode::system_error, fmt::format("can't read the folder {}", quote(folder)))
        .with_system_error(error.value());
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<World> worlds_of(std::vector<Dump> dumps) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, Dump> by_rank;
  for (Dump& each : dumps) {
    Dump& kept = by_rank[{each.header.world, each.rank()}];
    if (kept.header.magic != record::magic || kept.now < each.now) kept = std::move(each);
  }
  std::vector<World> worlds;
  for (auto& [key, dump] : by_rank) {
    if (worlds.empty() || worlds.back().id != key.first) {
      worlds.push_back({.id = key.first, .size = dump.header.size});
    }
    worlds.back().dumps.push_back(std::move(dump));
  }
  return worlds;
}

}  // namespace hocket::trace
