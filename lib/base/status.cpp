#include "hocket/status.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include <fmt/format.h>

namespace hocket::inline v1 {

struct Status::Detail {
  Detail(StatusCode its_code, std::string its_what, SourceLocation its_where) noexcept
      : code(its_code), what(std::move(its_what)), where(its_where) {}
  /// Of one that copies share, for a Status of its own.
  Detail(const Detail& other)
      : code(other.code),
        what(other.what),
        where(other.where),
        rank(other.rank),
        peer(other.peer),
        step(other.step),
        system_error(other.system_error),
        operation(other.operation),
        hint(other.hint),
        cause(other.cause) {}
  Detail& operator=(const Detail&) = delete;
  ~Detail() = default;

  std::atomic<std::uint32_t> owners = 1;
  StatusCode code = StatusCode::internal;
  std::string what;
  SourceLocation where;
  int rank = -1;
  int peer = -1;
  int step = -1;
  int system_error = 0;
  std::string operation;
  std::string hint;
  Status cause;
};

std::string_view name(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::invalid_argument:
      return "invalid argument";
    case StatusCode::unsupported:
      return "unsupported";
    case StatusCode::timeout:
      return "timeout";
    case StatusCode::peer_lost:
      return "peer lost";
    case StatusCode::aborted:
      return "aborted";
    case StatusCode::mismatch:
      return "mismatch";
    case StatusCode::permission_denied:
      return "permission denied";
    case StatusCode::limit_exceeded:
      return "limit exceeded";
    case StatusCode::system_error:
      return "system error";
    case StatusCode::protocol_error:
      return "protocol error";
    case StatusCode::not_found:
      return "not found";
    case StatusCode::already_exists:
      return "already exists";
    case StatusCode::internal:
      return "internal";
    case StatusCode::in_progress:
      return "in progress";
  }
  return "unknown";
}

/// Made when the library is loaded, and never destroyed.
Status::Detail& Status::out_of_memory_detail() {
  static Detail& detail = [&]() -> Detail& {
    auto& made = *new Detail(StatusCode::limit_exceeded, "out of memory", SourceLocation::here());
    made.hint = "see what limits the memory of this process: ulimit -v, a cgroup, or the machine";
    return made;
  }();
  return detail;
}

namespace {
[[maybe_unused]] const Status made_when_loaded = Status::out_of_memory();
}  // namespace

Status Status::out_of_memory() noexcept {
  Status status;
  status.detail_ = share(&out_of_memory_detail());
  return status;
}

Status::Status(StatusCode code, std::string what, SourceLocation where) {
  if (code == StatusCode::ok) return;
  detail_.reset(new (std::nothrow) Detail(code, std::move(what), where));
  if (detail_ == nullptr) *this = out_of_memory();
}

Status::Status(const Status& other) noexcept : detail_(share(other.detail_.get())) {}
Status& Status::operator=(const Status& other) noexcept {
  if (this != &other) *this = Status(other);
  return *this;
}

Status::DetailPointer Status::share(Detail* detail) noexcept {
  if (detail != nullptr) detail->owners.fetch_add(1, std::memory_order_relaxed);
  return DetailPointer(detail);
}

void Status::ReleaseDetail::operator()(Detail* detail) const noexcept {
  if (detail->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete detail;
}

Status::Detail* Status::own() noexcept {
  if (detail_ == nullptr || detail_->owners.load(std::memory_order_acquire) == 1) {
    return detail_.get();
  }
  try {
    detail_.reset(new Detail(*detail_));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return detail_.get();
}

StatusCode Status::code() const noexcept { return ok() ? StatusCode::ok : detail_->code; }
// Two views in each: a view or "" and a string would meet in a string, a temporary.
std::string_view Status::what() const noexcept {
  return ok() ? std::string_view() : std::string_view(detail_->what);
}
int Status::rank() const noexcept { return ok() ? -1 : detail_->rank; }
int Status::peer() const noexcept { return ok() ? -1 : detail_->peer; }
int Status::step() const noexcept { return ok() ? -1 : detail_->step; }
int Status::system_error() const noexcept { return ok() ? 0 : detail_->system_error; }
std::string_view Status::operation() const noexcept {
  return ok() ? std::string_view() : std::string_view(detail_->operation);
}
std::string_view Status::hint() const noexcept {
  return ok() ? std::string_view() : std::string_view(detail_->hint);
}
SourceLocation Status::where() const noexcept { return ok() ? SourceLocation() : detail_->where; }
const Status* Status::cause() const noexcept {
  return ok() || detail_->cause.ok() ? nullptr : &detail_->cause;
}

Status Status::with_rank(int rank) && noexcept {
  if (Detail* const detail = own()) detail->rank = rank;
  return std::move(*this);
}
Status Status::with_peer(int peer) && noexcept {
  if (Detail* const detail = own()) detail->peer = peer;
  return std::move(*this);
}
Status Status::with_step(int step) && noexcept {
  if (Detail* const detail = own()) detail->step = step;
  return std::move(*this);
}
Status Status::with_system_error(int error_number) && noexcept {
  if (Detail* const detail = own()) {
    detail->system_error = error_number;
    // As when our own allocations fail.
    const bool is_limit = error_number == ENOMEM && detail->code == StatusCode::system_error;
    if (is_limit) detail->code = StatusCode::limit_exceeded;
  }
  return std::move(*this);
}
Status Status::with_operation(std::string operation) && noexcept {
  if (Detail* const detail = own()) detail->operation = std::move(operation);
  return std::move(*this);
}
Status Status::with_hint(std::string hint) && noexcept {
  if (Detail* const detail = own()) detail->hint = std::move(hint);
  return std::move(*this);
}
Status Status::caused_by(Status cause) && noexcept {
  if (Detail* const detail = own()) detail->cause = std::move(cause);
  return std::move(*this);
}

namespace {

std::string_view base_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

/// "timeout: no answer (rank 1, peer 3, all_reduce #17, step 4) [engine.cpp:88]"
std::string describe(const Status& status) {
  std::string text = fmt::format("{}: {}", name(status.code()), status.what());
  if (status.system_error() != 0) {
    text += fmt::format(": {} (errno {})",
                        std::error_code(status.system_error(), std::system_category()).message(),
                        status.system_error());
  }
  std::string who;
  const auto add = [&who](std::string part) { who += (who.empty() ? "" : ", ") + std::move(part); };
  if (status.rank() >= 0) add(fmt::format("rank {}", status.rank()));
  if (status.peer() >= 0) add(fmt::format("peer {}", status.peer()));
  if (!status.operation().empty()) add(std::string(status.operation()));
  if (status.step() >= 0) add(fmt::format("step {}", status.step()));
  if (!who.empty()) text += fmt::format(" ({})", who);
  return text + fmt::format(" [{}:{}]", base_name(status.where().file), status.where().line);
}

}  // namespace

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text;
  for (const Status* status = this; status != nullptr; status = status->cause()) {
    if (!text.empty()) text += "\n  because: ";
    text += describe(*status);
    if (!status->hint().empty()) text += fmt::format("\n  hint: {}", status->hint());
  }
  return text;
}

Error::Error(Status status) : status_(std::move(status)) {
  try {
    text_ = status_.to_string();
  } catch (const std::bad_alloc&) {  // the failure matters more than its text
  }
}
Error::~Error() = default;

const char* Error::what() const noexcept {
  return text_.empty() ? name(status_.code()).data() : text_.c_str();  // names are literals
}

Status failure_or_internal(Status status) {
  if (!status.ok()) return status;
  return {StatusCode::internal, "a success where a failure was expected"};
}

void throw_error(Status status) {
  status = failure_or_internal(std::move(status));
  switch (status.code()) {
    case StatusCode::invalid_argument:
      throw InvalidArgument(std::move(status));
    case StatusCode::unsupported:
      throw Unsupported(std::move(status));
    case StatusCode::timeout:
      throw Timeout(std::move(status));
    case StatusCode::peer_lost:
      throw PeerLost(std::move(status));
    case StatusCode::aborted:
      throw Aborted(std::move(status));
    case StatusCode::mismatch:
      throw Mismatch(std::move(status));
    case StatusCode::permission_denied:
      throw PermissionDenied(std::move(status));
    case StatusCode::limit_exceeded:
      throw LimitExceeded(std::move(status));
    default:
      throw Error(std::move(status));
  }
}

}  // namespace hocket::inline v1
