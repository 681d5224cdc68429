#include "hocket/status.hpp"

#include <cstring>
#include <system_error>

#include <fmt/format.h>

namespace hocket::inline v0 {

struct Status::Detail {
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

Status::Status(StatusCode code, std::string what, SourceLocation where) {
  if (code == StatusCode::ok) return;
  detail_.reset(new Detail);
  detail_->code = code;
  detail_->what = std::move(what);
  detail_->where = where;
}

Status::Status(const Status& other) : detail_(other.ok() ? nullptr : new Detail(*other.detail_)) {}
Status& Status::operator=(const Status& other) {
  if (this != &other) *this = Status(other);
  return *this;
}
void Status::DeleteDetail::operator()(Detail* detail) const noexcept { delete detail; }

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

Status Status::with_rank(int rank) && {
  if (!ok()) detail_->rank = rank;
  return std::move(*this);
}
Status Status::with_peer(int peer) && {
  if (!ok()) detail_->peer = peer;
  return std::move(*this);
}
Status Status::with_step(int step) && {
  if (!ok()) detail_->step = step;
  return std::move(*this);
}
Status Status::with_system_error(int error_number) && {
  if (!ok()) detail_->system_error = error_number;
  return std::move(*this);
}
Status Status::with_operation(std::string operation) && {
  if (!ok()) detail_->operation = std::move(operation);
  return std::move(*this);
}
Status Status::with_hint(std::string hint) && {
  if (!ok()) detail_->hint = std::move(hint);
  return std::move(*this);
}
Status Status::caused_by(Status cause) && {
  if (!ok()) detail_->cause = std::move(cause);
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

Error::Error(Status status) : status_(std::move(status)), text_(status_.to_string()) {}
Error::~Error() = default;

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

}  // namespace hocket::inline v0
