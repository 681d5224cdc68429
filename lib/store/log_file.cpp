#include "store/log_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "store/message.hpp"
#include "wire/fields.hpp"

namespace hocket::store {
namespace {

constexpr std::string_view magic = "hocket\x0a\x01";

/// Before each body: its length, its checksum, and the checksum of those two, so that a length is
/// believed only when it is what was written.
constexpr std::size_t head_bytes = 3 * sizeof(std::uint32_t);
constexpr std::size_t body_bytes_max = encoded_bytes_max + 64;
constexpr std::size_t read_bytes_min = 256 << 10;

/// The byte whose lock is the file's, and the one that all who use the file lock together. Others
/// are marks.
constexpr LogFile::Position lock_position = 0;
constexpr LogFile::Position attendance_position = 1;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0xedb88320 : 0);
    table[i] = rest;
  }
  return table;
}

/// CRC-32 as zlib has it.
std::uint32_t checksum(std::string_view bytes) noexcept {
  static constexpr std::array<std::uint32_t, 256> table = make_crc_table();
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char byte : bytes) {
    rest = (rest >> 8) ^ table[(rest ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~rest;
}

std::string head_of(std::string_view body) {
  std::string head;
  wire::FieldWriter fields(head);
  fields.integer(static_cast<std::uint32_t>(body.size()));
  fields.integer(checksum(body));
  fields.integer(checksum(head));
  return head;
}

/// Sets, tests or ends a lock on one byte.
int lock_byte(int file, int command, struct flock& lock, LogFile::Position at, int type) noexcept {
  lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(at);
  lock.l_len = 1;
  return fcntl(file, command, &lock);
}

Status failed(std::string_view what, const std::string& path) {
  const int error = errno;
  return Status(StatusCode::system_error, fmt::format("can't {} {}", what, path))
      .with_system_error(error);
}

Status lock_failed(const std::string& path) {
  return failed("lock", path).with_hint("put the file on a filesystem that has byte-range locks");
}

Status refused(const std::string& path, std::string_view what) {
  return Status(StatusCode::permission_denied, fmt::format("{} {}", path, what))
      .with_hint("name a file that does not exist yet, in a folder that only you write to");
}

}  // namespace

Result<LogFile> LogFile::open(std::string path) {
  LogFile log(std::move(path));
  if (Status status = log.open_file(O_CREAT); !status.ok()) return status;
  return log;
}

Status LogFile::reopen() {
  const Identity before = identity_;
  if (Status status = open_file(0); !status.ok()) return status;
  if (identity_ == before) return {};
  file_ = {};
  identity_ = before;
  return gone("replaced");
}

Status LogFile::open_file(int more_flags) {
  constexpr int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  Fd file = Fd::open_unforked(
      [&] { return ::open(path_.c_str(), flags | more_flags, S_IRUSR | S_IWUSR); });
  if (!file) {
    const bool is_link = errno == ELOOP;
    return failed("open", path_).with_hint(is_link ? "give the file itself, not a link" : "");
  }
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return failed("look at", path_);
  if (!S_ISREG(found.st_mode)) return refused(path_, "is no plain file");
  if (found.st_uid != geteuid()) return refused(path_, "belongs to another user");
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refused(path_, "may be written by others");
  file_ = std::move(file);
  identity_ = {.device = found.st_dev, .number = found.st_ino};
  return {};
}

Result<bool> LogFile::is_private() const {
  struct stat found {};
  if (fstat(file_.get(), &found) != 0) return failed("look at", path_);
  return (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

Result<bool> LogFile::try_lock() {
  struct flock lock {};
  if (lock_byte(file_.get(), F_OFD_SETLK, lock, lock_position, F_WRLCK) == 0) return true;
  if (errno == EAGAIN || errno == EACCES || errno == EINTR) return false;
  return lock_failed(path_);
}

void LogFile::unlock() noexcept { unmark(lock_position); }

Status LogFile::look() {
  struct stat found {};
  if (fstat(file_.get(), &found) != 0) return failed("look at", path_);
  end_ = static_cast<Position>(found.st_size);
  if (found.st_nlink == 0 || end_ < position_) {
    return gone(found.st_nlink == 0 ? "removed" : "shortened");
  }
  return position_ == 0 ? start() : Status();
}

/// Reads the magic, or writes it into a file that holds nothing, or only a part of it.
Status LogFile::start() {
  if (Status status = fetch(magic.size()); !status.ok()) return status;
  const std::string_view found = ahead().substr(0, magic.size());
  if (!magic.starts_with(found)) return refused(path_, "is no file of a store");
  if (found.size() < magic.size()) {
    if (Status status = write(0, magic); !status.ok()) return status;
    end_ = magic.size();
    buffer_ = magic;
  }
  position_ = magic.size();
  used_ = magic.size();
  return {};
}

bool LogFile::is_empty() const noexcept { return end_ <= magic.size(); }

std::string_view LogFile::ahead() const noexcept { return std::string_view(buffer_).substr(used_); }

/// Makes ahead() as long as this, or as far as the file goes.
Status LogFile::fetch(std::size_t bytes) {
  const std::size_t left = end_ - position_;
  if (ahead().size() >= std::min(bytes, left)) return {};
  buffer_.erase(0, std::exchange(used_, 0));
  std::size_t have = buffer_.size();
  buffer_.resize(std::min(std::max(bytes, read_bytes_min), left));
  while (have < buffer_.size()) {
    const ssize_t count = pread(file_.get(), buffer_.data() + have, buffer_.size() - have,
                                static_cast<off_t>(position_ + have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      Status status = failed("read", path_);
      buffer_.resize(have);
      return status;
    }
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  buffer_.resize(have);
  return {};
}

Result<std::optional<LogFile::Record>> LogFile::next() {
  if (position_ == end_) {
    buffer_ = std::string();
    used_ = 0;
    return std::optional<Record>();
  }
  if (Status status = fetch(head_bytes); !status.ok()) return status;
  const std::string_view head = ahead().substr(0, head_bytes);
  if (head.size() < head_bytes) return cut_off_rest();
  wire::FieldReader fields(head);
  const std::size_t length = fields.integer<std::uint32_t>();
  const auto body_sum = fields.integer<std::uint32_t>();
  const bool is_head = fields.integer<std::uint32_t>() ==
                       checksum(head.substr(0, head_bytes - sizeof(std::uint32_t)));
  if (!is_head || length > body_bytes_max) return damaged();

  const std::size_t bytes = head_bytes + length;
  if (Status status = fetch(bytes); !status.ok()) return status;
  const std::string_view body = ahead().substr(0, bytes).substr(head_bytes);
  if (body.size() < length) return cut_off_rest();
  if (checksum(body) != body_sum) return end_ - position_ == bytes ? cut_off_rest() : damaged();
  const Record record{.position = position_, .body = body};
  position_ += bytes;
  used_ += bytes;
  return std::optional(record);
}

void LogFile::unread(Position record) noexcept {
  used_ -= static_cast<std::size_t>(position_ - record);
  position_ = record;
}

Result<std::optional<LogFile::Record>> LogFile::cut_off_rest() {
  if (ftruncate(file_.get(), static_cast<off_t>(position_)) != 0) return failed("shorten", path_);
  end_ = position_;
  return next();
}

Status LogFile::gone(std::string_view how) const {
  return Status(StatusCode::protocol_error, fmt::format("{} was {} while in use", path_, how));
}

Status LogFile::damaged() const {
  return Status(StatusCode::protocol_error,
                fmt::format("{} is damaged at byte {}", path_, position_))
      .with_hint("remove the file and start the job again");
}

Result<LogFile::Position> LogFile::append(std::string body) {
  body.insert(0, head_of(body));
  if (Status status = write(position_, body); !status.ok()) {
    last_ = position_;
    take_back();
    return status;
  }
  last_ = position_;
  position_ += body.size();
  end_ = position_;
  return last_;
}

Status LogFile::write(Position to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(to));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("write to", path_);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    to += static_cast<Position>(count);
  }
  return {};
}

void LogFile::take_back() noexcept {
  if (ftruncate(file_.get(), static_cast<off_t>(last_)) == 0) position_ = end_ = last_;
}

Result<bool> LogFile::attend() {
  const Result<bool> is_used = is_marked(attendance_position);
  if (!is_used.ok()) return is_used.status();
  struct flock lock {};
  if (lock_byte(file_.get(), F_OFD_SETLK, lock, attendance_position, F_RDLCK) != 0) {
    return lock_failed(path_);
  }
  return !*is_used;
}

Status LogFile::clear() {
  if (ftruncate(file_.get(), static_cast<off_t>(magic.size())) != 0) {
    return failed("shorten", path_);
  }
  position_ = end_ = magic.size();
  buffer_.clear();
  used_ = 0;
  return {};
}

Status LogFile::mark(Position record) {
  struct flock lock {};
  if (lock_byte(file_.get(), F_OFD_SETLK, lock, record, F_WRLCK) == 0) return {};
  return lock_failed(path_);
}

void LogFile::unmark(Position record) noexcept {
  struct flock lock {};
  lock_byte(file_.get(), F_OFD_SETLK, lock, record, F_UNLCK);
}

Result<bool> LogFile::is_marked(Position record) const {
  struct flock lock {};
  if (lock_byte(file_.get(), F_OFD_GETLK, lock, record, F_WRLCK) != 0) return lock_failed(path_);
  return lock.l_type != F_UNLCK;
}

}  // namespace hocket::store
