#include "store/file_store.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "wire/fields.hpp"

namespace hocket::store {
namespace {

/// The numbers stay in files.
enum class RecordKind : std::uint8_t {
  beginning = 0,   // version and job
  request = 1,     // one that changed something; known by its position where it has to wait
  withdrawal = 2,  // of a request that waited at a barrier, by its position
};

constexpr std::uint32_t version = 1;

/// Of a request that is tried and not left waiting. No position is that large.
constexpr Ticket passing_ticket = std::numeric_limits<Ticket>::max();

std::string record_of(RecordKind kind) { return {static_cast<char>(kind)}; }

/// Longer from one sleep to the next.
class Pauses {
 public:
  Pauses(Duration first, Duration longest) noexcept
      : first_(first), longest_(longest), next_(first) {}

  Duration next() noexcept { return std::exchange(next_, std::min(2 * next_, longest_)); }
  void restart() noexcept { next_ = first_; }

 private:
  Duration first_;
  Duration longest_;
  Duration next_;
};

/// Whether a request to which this was the reply has left a trace.
bool is_change(Kind kind, const Reply& reply) noexcept {
  if (!reply.status.ok() || kind == Kind::barrier) return false;
  const bool may_be_in_vain = kind == Kind::delete_key || kind == Kind::compare_set;
  return !may_be_in_vain || reply.number != 0;
}

/// Whatever happens on the way, others get the file.
struct Unlock {
  LogFile& log;
  ~Unlock() { log.unlock(); }
};

/// The request as others will execute it: it has no time of its own.
Request timeless(Request request) {
  request.timeout = request.kind == Kind::barrier ? Duration::max() : Duration::zero();
  return request;
}

}  // namespace

struct FileStore::Call {
  Request request;
  Instant start = monotonic_clock().now();
  Deadline deadline = Deadline::after(monotonic_clock(), request.timeout);
  Deadline lock_deadline =
      Deadline::after(monotonic_clock(), std::max(request.timeout, lock_patience));
  std::optional<Ticket> ticket = {};  // once it waits at a barrier
  LogFile::Position seen = 0;         // of the log, when it was last tried
  Duration pause = {};
  Pauses lock_pauses = {std::chrono::microseconds(50), std::chrono::milliseconds(5)};
  Pauses news_pauses = {std::chrono::milliseconds(1), std::chrono::milliseconds(20)};
};

Result<std::unique_ptr<FileStore>> FileStore::open(FileStoreOptions options) {
  auto log = LogFile::open(options.path);
  if (!log.ok()) return log.status();
  std::unique_ptr<FileStore> store(new FileStore(std::move(options), std::move(*log)));
  if (Status status = store->ping(); !status.ok()) return status;
  return store;
}

FileStore::FileStore(FileStoreOptions options, LogFile log)
    : options_(std::move(options)), log_(std::move(log)) {
  set_timeout(options_.timeout);
}

Result<std::unique_ptr<Store>> FileStore::clone() {
  FileStoreOptions options = options_;
  options.timeout = timeout();
  auto copy = open(std::move(options));
  if (!copy.ok()) return copy.status();
  return std::unique_ptr<Store>(std::move(*copy));
}

Reply FileStore::perform(Request request) {
  Call call{.request = std::move(request)};
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (std::optional<Reply> reply = attempt(call)) {
        end(call);
        unshare(*reply);
        return std::move(*reply);
      }
    }
    std::this_thread::sleep_for(call.pause);
  }
}

/// Nothing when the call has to be tried again after its pause.
std::optional<Reply> FileStore::attempt(Call& call) {
  if (log_.is_forked()) {
    if (Status status = take_over(); !status.ok()) return Reply{.status = std::move(status)};
  }
  if (auto reply = answer(call)) return reply;
  const Result<bool> is_locked = log_.try_lock();
  if (!is_locked.ok()) return Reply{.status = is_locked.status()};
  const Instant now = monotonic_clock().now();
  if (!*is_locked) {
    call.pause = std::min(call.lock_pauses.next(), call.lock_deadline.remaining(now));
    if (!call.lock_deadline.passed(now)) return std::nullopt;
    return Reply{.status =
                     Status(StatusCode::timeout, "another process does not let go of the file")
                         .with_hint("look for a process of the job that is stopped")};
  }
  const Unlock unlock{log_};
  Status status = catch_up();
  std::optional<Reply> reply = status.ok() ? answer(call) : Reply{.status = std::move(status)};
  if (!reply) reply = serve(call, now);
  return reply;
}

/// The reply that came to a call that waits at a barrier.
std::optional<Reply> FileStore::answer(const Call& call) {
  return call.ticket ? ours_.at(*call.ticket) : std::nullopt;
}

/// Where it could not withdraw, others see that its mark is gone.
void FileStore::end(const Call& call) noexcept {
  if (!call.ticket) return;
  log_.unmark(*call.ticket);
  ours_.erase(*call.ticket);
}

/// In a child made by fork(): the calls that it knows of are its parent's.
Status FileStore::take_over() {
  if (Status status = log_.reopen(); !status.ok()) return status;
  ours_.clear();
  return log_.attend().status();  // the parent's records are ours
}

/// Reads what others have written. The first time, shows them that we are here, too.
Status FileStore::catch_up() {
  if (!is_attending_) {
    const Result<bool> is_alone = log_.attend();
    if (!is_alone.ok()) return is_alone.status();
    must_begin_anew_ = *is_alone && options_.is_for_one_run;
    is_attending_ = true;
  }
  if (Status status = replay(); !status.ok()) return status;
  return must_begin_anew_ ? begin_anew() : Status();
}

/// Drops what an earlier run of the job has left.
Status FileStore::begin_anew() {
  if (Status status = log_.clear(); !status.ok()) return status;
  keyspace_ = Keyspace();
  callers_.clear();
  must_begin_anew_ = false;
  return begin_log();
}

Status FileStore::replay() {
  if (!damage_.ok()) return damage_;
  if (Status status = log_.look(); !status.ok()) return status;
  for (;;) {
    auto record = log_.next();
    if (!record.ok()) return record.status();
    if (!*record) break;
    try {
      if (Status status = apply(**record); !status.ok()) return damage_ = std::move(status);
    } catch (...) {  // without memory; what this handle knows must not lack a record
      log_.unread((*record)->position);
      throw;
    }
  }
  return log_.is_empty() ? begin_log() : Status();
}

Status FileStore::begin_log() {
  std::string record = record_of(RecordKind::beginning);
  wire::FieldWriter fields(record);
  fields.integer(version);
  fields.text(options_.job);
  return log_.append(std::move(record)).status();
}

Status FileStore::apply(const LogFile::Record& record) {
  wire::FieldReader fields(record.body);
  const auto kind = static_cast<RecordKind>(fields.integer<std::uint8_t>());
  if (kind == RecordKind::request) {
    return apply_request(record.position, record.body.substr(sizeof kind));
  }
  if (kind == RecordKind::withdrawal) {
    const auto ticket = fields.integer<Ticket>();
    keyspace_.cancel(ticket);
    callers_.erase(ticket);
    return {};
  }
  const auto their_version = fields.integer<std::uint32_t>();
  const std::string_view job = fields.text();
  if (kind != RecordKind::beginning || their_version != version || !fields.ended_well()) {
    return Status(StatusCode::unsupported, "the file was written by another version of Hocket")
        .with_hint("remove the file, and run the same version of Hocket everywhere");
  }
  if (job == options_.job) return {};
  return Status(StatusCode::mismatch, fmt::format("the file is of job {}, and this is job {}",
                                                  quote(job), quote(options_.job)))
      .with_hint("remove the file if that job is over, or name another one");
}

Status FileStore::apply_request(Ticket ticket, std::string_view body) {
  auto request = decode_request(body);
  if (!request.ok()) return request.status();
  const bool is_barrier = request->kind == Kind::barrier;
  std::string key = is_barrier ? request->keys.front() : std::string();
  const std::optional<Reply> reply =
      keyspace_.execute(ticket, timeless(std::move(*request)), Instant());
  if (!reply && is_barrier) callers_.emplace(ticket, std::move(key));
  hand_out_replies();
  return {};
}

std::optional<Reply> FileStore::serve(Call& call, Instant now) {
  const bool is_old = call.seen == log_.position() && !call.deadline.passed(now);
  if (!is_old) call.news_pauses.restart();
  call.pause = std::min(call.news_pauses.next(), call.deadline.remaining(now));
  if (is_old) return std::nullopt;
  std::optional<Reply> reply;
  Ticket unused = 0;
  switch (call.request.kind) {
    case Kind::ping:
    case Kind::check:
    case Kind::num_keys:
    case Kind::keys:
    case Kind::queue_len:
    case Kind::will:
    case Kind::absence:
    case Kind::get:
    case Kind::wait:
      reply = try_only(call, now);
      break;
    case Kind::queue_pop:
      reply = pop(call, now);
      break;
    case Kind::barrier:
      reply = come_to_barrier(call, now);
      break;
    default:
      reply = change(std::move(call.request), unused);
  }
  call.seen = log_.position();
  return reply;
}

/// Of what would change something, only when it can't.
std::optional<Reply> FileStore::try_only(const Call& call, Instant now) {
  auto reply = keyspace_.execute(passing_ticket, call.request, call.start);
  if (reply) return reply;
  if (!call.deadline.passed(now)) {
    keyspace_.cancel(passing_ticket);
    return std::nullopt;
  }
  keyspace_.expire(now);  // nothing else in there has a deadline
  return std::move(keyspace_.take_completions().front().reply);
}

std::optional<Reply> FileStore::pop(const Call& call, Instant now) {
  const Request length{.kind = Kind::queue_len, .keys = call.request.keys};
  const bool is_there = keyspace_.execute(passing_ticket, length, now)->number > 0;
  Ticket unused = 0;
  return is_there ? change(call.request, unused) : try_only(call, now);
}

std::optional<Reply> FileStore::come_to_barrier(Call& call, Instant now) {
  const std::string& key = call.request.keys.front();
  const bool must_leave = call.deadline.passed(now);
  if (call.ticket && !must_leave) return std::nullopt;
  if (Status status = withdraw_the_dead(key); !status.ok()) return Reply{.status = status};
  if (!call.ticket) {
    Ticket ticket = 0;
    auto reply = change(call.request, ticket);
    if (reply) return reply;
    call.ticket = ticket;
    ours_.emplace(ticket, std::nullopt);
    callers_.emplace(ticket, key);
  }
  return must_leave ? std::optional(leave_barrier(call, now)) : std::nullopt;
}

Reply FileStore::leave_barrier(const Call& call, Instant now) {
  if (Status status = withdraw(*call.ticket); !status.ok()) return {.status = std::move(status)};
  return *try_only(call, now);
}

/// Executes the request and appends it, under the ticket that it gives, if it changes something.
/// The record comes first: what can't be written is not done.
std::optional<Reply> FileStore::change(Request request, Ticket& ticket) {
  const Kind kind = request.kind;
  request = timeless(std::move(request));
  std::string record = record_of(RecordKind::request);
  encode(request, record);
  if (log_.position() + record.size() > options_.bytes_max) {
    return Reply{
        .status = Status(StatusCode::limit_exceeded, fmt::format("the file is full: it may hold {}",
                                                                 format_size(options_.bytes_max)))
                      .with_hint("begin a new file, or use the store of a server")};
  }
  const auto position = log_.append(std::move(record));
  if (!position.ok()) return Reply{.status = position.status()};
  ticket = *position;
  if (Status status = kind == Kind::barrier ? log_.mark(ticket) : Status(); !status.ok()) {
    log_.take_back();
    return Reply{.status = std::move(status)};
  }
  std::optional<Reply> reply;
  try {
    reply = keyspace_.execute(ticket, std::move(request), Instant());
  } catch (...) {  // without memory: it has not happened, and nobody has read the record yet
    log_.take_back();
    throw;
  }
  const bool did_others_wait = hand_out_replies() > 0;
  if (reply && kind == Kind::barrier) log_.unmark(ticket);
  if (reply && !did_others_wait && !is_change(kind, *reply)) log_.take_back();
  return reply;
}

/// How many there were, those of other processes included.
std::size_t FileStore::hand_out_replies() {
  std::vector<Completion> completions = keyspace_.take_completions();
  for (Completion& each : completions) {
    callers_.erase(each.ticket);
    const auto found = ours_.find(each.ticket);
    if (found != ours_.end()) found->second = std::move(each.reply);
  }
  return completions.size();
}

Status FileStore::withdraw(Ticket ticket) {
  std::string record = record_of(RecordKind::withdrawal);
  wire::FieldWriter(record).integer(ticket);
  if (const auto position = log_.append(std::move(record)); !position.ok()) {
    return position.status();
  }
  keyspace_.cancel(ticket);
  callers_.erase(ticket);
  return {};
}

Status FileStore::withdraw_the_dead(const std::string& barrier) {
  std::vector<Ticket> dead;
  for (const auto& caller : callers_) {
    if (caller.second != barrier || ours_.contains(caller.first)) continue;
    const Result<bool> is_marked = log_.is_marked(caller.first);
    if (!is_marked.ok()) return is_marked.status();
    if (!*is_marked) dead.push_back(caller.first);
  }
  for (const Ticket ticket : dead) {
    if (Status status = withdraw(ticket); !status.ok()) return status;
  }
  return {};
}

}  // namespace hocket::store
