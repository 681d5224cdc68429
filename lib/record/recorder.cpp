#include "record/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/text.hpp"

namespace hocket::record {
namespace {

template <std::size_t size>
void copy_text(std::string_view text, std::array<char, size>& to) noexcept {
  const std::size_t count = std::min(text.size(), size - 1);
  if (count > 0) std::memcpy(to.data(), text.data(), count);
  to[count] = '\0';
}

Status failure(const std::string& what, int error) {
  return Status(StatusCode::system_error, what).with_system_error(error);
}

/// A file in a folder has its blocks reserved, because a full disk would otherwise end the program
/// with SIGBUS.
Result<Fd> make_file(const RecorderOptions& options) {
  if (options.folder.empty()) {
    Fd file = Fd::open_unforked([] { return ::memfd_create(file_mark, MFD_CLOEXEC); });
    if (!file || ::ftruncate(file.get(), file_bytes) != 0) {
      return failure("no memory to record operations in", errno);
    }
    return file;
  }
  std::string path;
  Fd file;
  std::error_code ignored;  // open() says what is wrong
  std::filesystem::create_directories(options.folder, ignored);
  // A process may join several worlds, and process ids are reused.
  for (int attempt = 0; !file && (attempt == 0 || errno == EEXIST); ++attempt) {
    path = fmt::format("{}/rank-{}.{}.{}.{}{}", options.folder, options.rank, host_name(),
                       ::getpid(), attempt == 0 ? "" : fmt::format("{}.", attempt), file_mark);
    file = Fd::open_unforked(
        [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); });
  }
  if (!file) return failure(fmt::format("can't create {}", quote(path)), errno);
  if (const int error = ::posix_fallocate(file.get(), 0, file_bytes); error != 0) {
    ::unlink(path.c_str());
    return failure(fmt::format("can't reserve {} bytes for {}", file_bytes, quote(path)), error);
  }
  return file;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Wish parse_wish(std::string_view text) {
  if (text.empty()) return {};
  if (const auto is_on = parse_boolean(text)) return {.is_on = *is_on};
  return {.folder = std::string(text)};
}

Result<std::unique_ptr<Recorder>> Recorder::open(const RecorderOptions& options) {
  auto file = make_file(options);
  if (!file.ok()) return file.status();
  ::flock(file->get(), LOCK_EX | LOCK_NB);  // nobody else has it for long
  void* const memory =
      ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  if (memory == MAP_FAILED) return failure("no memory to record operations in", errno);
  auto* const bytes = static_cast<std::byte*>(memory);
  std::unique_ptr<Recorder> recorder(new (std::nothrow) Recorder(std::move(*file), bytes));
  if (recorder == nullptr) {
    ::munmap(memory, file_bytes);
    return Status::out_of_memory();
  }
  Header& header = *new (memory) Header{};
  header.entries = entries_kept;
  header.entry_bytes = sizeof(Entry);
  header.world = options.world;
  header.rank = options.rank;
  header.size = options.size;
  header.pid = ::getpid();
  copy_text(host_name(), header.host);
  struct stat status = {};
  if (::fstat(recorder->file_.get(), &status) == 0) header.inode = status.st_ino;
  copy_text(options.transport, header.transport);
  header.monotonic_time = monotonic_clock().now().time_since_epoch().count();
  header.universal_time = universal_time();
  // Last, because a reader takes a file without it for none of ours.
  order_stores();
  header.magic = magic;
  return recorder;
}

Recorder::~Recorder() {
  header().life = Life::left;
  ::munmap(memory_, file_bytes);
}

void Recorder::add_group(std::uint64_t id, std::uint32_t rank, std::uint32_t size) noexcept {
  const std::lock_guard lock(mutex_);
  auto& groups = header().groups;
  const auto place = std::ranges::find(groups, 0U, &GroupEntry::is_open);
  if (place != groups.end()) *place = {.id = id, .rank = rank, .size = size, .is_open = 1};
}

void Recorder::remove_group(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  for (GroupEntry& each : header().groups) {
    if (each.is_open != 0 && each.id == id) each.is_open = 0;
  }
}

void Recorder::note_failure(std::string_view text) noexcept {
  const std::lock_guard lock(mutex_);
  if (header().failure[0] == '\0') copy_text(text, header().failure);
}

}  // namespace hocket::record
