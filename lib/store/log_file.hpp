// A file to which several processes append records, and which each of them reads from its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "hocket/status.hpp"

#include "base/fd.hpp"

namespace hocket::store {

/// All locks are of this object, not of the process (F_OFD_SETLK): another LogFile of the same file
/// excludes this one in the same process, too. They end with it, however the process ends, and
/// whatever children it leaves: a child made by fork() closes the file as soon as it runs, and its
/// copy of this object has no lock and no mark. On NFS they are as good as its lock service. Not
/// for several threads at once.
class LogFile {
 public:
  /// Where in the file a record stands: what it is known by everywhere.
  using Position = std::uint64_t;

  struct Record {
    Position position = 0;
    std::string_view body;  // until the next call
  };

  /// Makes the file when there is none, for this user only. One that others may write to is
  /// refused, as are links and all that is no plain file.
  [[nodiscard]] static Result<LogFile> open(std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Whether only this user may read it.
  [[nodiscard]] Result<bool> is_private() const;

  /// Whether this is the copy in a child made by fork(): good for nothing but to reopen().
  [[nodiscard]] bool is_forked() const noexcept { return !file_ || file_.is_inherited(); }
  /// Opens the file of the parent for this process; it goes on reading where the parent was.
  [[nodiscard]] Status reopen();

  /// Whether we have the lock now: never waits.
  [[nodiscard]] Result<bool> try_lock();
  void unlock() noexcept;

  // --- with the lock held ---------------------------------------------------------------------

  /// Finds out what others have appended.
  [[nodiscard]] Status look();
  /// The next record; nothing when all have been read. What a writer that died left unfinished at
  /// the end is cut off; any other damage is a protocol_error.
  [[nodiscard]] Result<std::optional<Record>> next();
  /// Gives back the record that next() gave last, which comes again then.
  void unread(Position record) noexcept;
  /// When all have been read.
  [[nodiscard]] Result<Position> append(std::string body);
  /// Removes the record that was just appended. It may fail; then the record stays.
  void take_back() noexcept;
  /// How much of the file has been read.
  [[nodiscard]] Position position() const noexcept { return position_; }
  /// Whether there is no record.
  [[nodiscard]] bool is_empty() const noexcept;
  /// Shows others that we use the file, until this object or its process ends. Returns whether
  /// nobody else does.
  [[nodiscard]] Result<bool> attend();
  /// Removes all records.
  [[nodiscard]] Status clear();

  // --- at any time ----------------------------------------------------------------------------

  // A mark on a record shows others that whoever wrote it is there still.
  [[nodiscard]] Status mark(Position record);
  void unmark(Position record) noexcept;
  /// Whether somebody else marked it.
  [[nodiscard]] Result<bool> is_marked(Position record) const;

 private:
  /// Which file has the path, whatever becomes of the path.
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const Identity&) const = default;
  };

  explicit LogFile(std::string path) noexcept : path_(std::move(path)) {}

  Status open_file(int more_flags);
  Status start();
  Status fetch(std::size_t bytes);
  Status write(Position to, std::string_view bytes);
  Result<std::optional<Record>> cut_off_rest();
  [[nodiscard]] std::string_view ahead() const noexcept;
  [[nodiscard]] Status gone(std::string_view how) const;
  [[nodiscard]] Status damaged() const;

  std::string path_;
  Fd file_;
  Identity identity_;
  Position position_ = 0;
  Position end_ = 0;
  Position last_ = 0;     // the record appended last
  std::string buffer_;    // what was read of the file…
  std::size_t used_ = 0;  // … from position_ - used_ on
};

}  // namespace hocket::store
