// The store of processes that share a filesystem: a log in a file, which every process replays into
// a keyspace of its own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "store/keyspace.hpp"
#include "store/log_file.hpp"
#include "store/store.hpp"

namespace hocket::store {

struct FileStoreOptions {
  /// Made when it is not there.
  std::string path = {};
  /// Any text; a file of another job is refused.
  std::string job = {};
  /// To open, and of every later call that gives none.
  Duration timeout = Store::default_timeout;
  std::size_t bytes_max = limits::file_store_bytes_max;  // of the file
  /// Whether what an earlier run of the job left is dropped, which is when nobody has the file open
  /// any more. All who use the file must say the same. Otherwise it is still there.
  bool is_for_one_run = false;
};

/// Every call locks the file, reads what others have appended, and appends what it changes itself.
/// Who waits looks again every 1 to 20 ms, so that a queue serves first whoever looks first, and a
/// key that comes and goes in between may be missed.
///
/// A process may be killed at any moment: its locks end with it, the next writer cuts off what it
/// left unfinished, and a barrier does not count it. A process that is stopped while it has the
/// lock holds up the others until their timeouts. As the lock has to be waited for, even a call
/// with no time may take lock_patience.
///
/// A child made by fork() may go on with its copy, which then is a store of its own; if another
/// thread was in a call as it was made, it must open() a new one.
///
/// On NFS all of this is as good as the byte-range locks there. What is written is not forced to
/// the disk: a file that outlives a crash of the machine may be damaged, which is noticed.
class FileStore final : public Store {
 public:
  static constexpr Duration lock_patience = std::chrono::milliseconds(200);

  /// Fails with mismatch when the file is another job's, and permission_denied when others may
  /// write to it.
  [[nodiscard]] static Result<std::unique_ptr<FileStore>> open(FileStoreOptions options);

  /// Whether only this user may read the file.
  [[nodiscard]] Result<bool> is_private() const { return log_.is_private(); }

  /// Opens the file anew.
  [[nodiscard]] Result<std::unique_ptr<Store>> clone() override;
  [[nodiscard]] std::string describe() const override { return "the store in " + options_.path; }
  [[nodiscard]] Reply perform(Request request) override;

 private:
  struct Call;

  FileStore(FileStoreOptions options, LogFile log);

  // All of these with the mutex held, those after replay() with the file's lock, too.
  std::optional<Reply> attempt(Call& call);
  std::optional<Reply> answer(const Call& call);
  void end(const Call& call) noexcept;

  Status take_over();
  Status catch_up();
  Status replay();
  Status begin_anew();
  Status apply(const LogFile::Record& record);
  Status apply_request(Ticket ticket, std::string_view body);
  Status begin_log();

  std::optional<Reply> serve(Call& call, Instant now);
  std::optional<Reply> pop(const Call& call, Instant now);
  std::optional<Reply> come_to_barrier(Call& call, Instant now);
  Reply leave_barrier(const Call& call, Instant now);
  std::optional<Reply> try_only(const Call& call, Instant now);
  std::optional<Reply> change(Request request, Ticket& ticket);
  std::size_t hand_out_replies();
  Status withdraw(Ticket ticket);
  Status withdraw_the_dead(const std::string& barrier);

  const FileStoreOptions options_;
  std::mutex mutex_;
  LogFile log_;
  Status damage_;                 // once found, for good
  bool is_attending_ = false;     // others can see that we use the file
  bool must_begin_anew_ = false;  // what is in it is of an earlier run
  Keyspace keyspace_;
  std::map<Ticket, std::string> callers_;        // of barriers, from anywhere
  std::map<Ticket, std::optional<Reply>> ours_;  // calls of this object among them
};

}  // namespace hocket::store
