// How Hocket says that something failed: Status and Result inside the library and in transports,
// exceptions of the family Error at the C++ face.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "hocket/export.h"
#include "hocket/hocket.h"

namespace hocket::inline v1 {

/// The C ABI's codes under their C++ names; what each means stands in hocket.h.
enum class StatusCode : std::int32_t {
  ok = HOCKET_OK,
  invalid_argument = HOCKET_INVALID_ARGUMENT,
  unsupported = HOCKET_UNSUPPORTED,
  timeout = HOCKET_TIMEOUT,
  peer_lost = HOCKET_PEER_LOST,
  aborted = HOCKET_ABORTED,
  mismatch = HOCKET_MISMATCH,
  permission_denied = HOCKET_PERMISSION_DENIED,
  limit_exceeded = HOCKET_LIMIT_EXCEEDED,
  system_error = HOCKET_SYSTEM_ERROR,
  protocol_error = HOCKET_PROTOCOL_ERROR,
  not_found = HOCKET_NOT_FOUND,
  already_exists = HOCKET_ALREADY_EXISTS,
  internal = HOCKET_INTERNAL,
  in_progress = HOCKET_IN_PROGRESS,  // no failure; never thrown
};

/// "ok", "timeout", …; "unknown" for a value that is not one of the enumerators.
[[nodiscard]] HOCKET_API std::string_view name(StatusCode code) noexcept;

/// The line of code that made a Status.
struct SourceLocation {
  const char* file = "";
  int line = 0;

  /// Where it is called.
  static constexpr SourceLocation here(const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Success, or what failed and everything known about it. One pointer wide; neither a success nor a
/// copy allocates memory. Details are added where they are known, and whoever passes a failure on
/// may wrap it as the cause of its own. A Status that was moved from is a success. Without memory
/// for a failure it is out_of_memory(), and without memory for a detail the detail is left out.
class [[nodiscard]] HOCKET_API Status {
 public:
  Status() noexcept = default;  // a success
  /// A failure.
  Status(StatusCode code, std::string what, SourceLocation where = SourceLocation::here());
  Status(const Status& other) noexcept;
  Status(Status&& other) noexcept = default;
  Status& operator=(const Status& other) noexcept;
  Status& operator=(Status&& other) noexcept = default;
  ~Status() = default;

  /// limit_exceeded, "out of memory". Allocates nothing.
  [[nodiscard]] static Status out_of_memory() noexcept;

  /// Whether it is a success, which has code ok and no words.
  [[nodiscard]] bool ok() const noexcept { return detail_ == nullptr; }
  [[nodiscard]] StatusCode code() const noexcept;
  [[nodiscard]] std::string_view what() const noexcept;

  // The rank that met the failure, the other rank involved, and the step of its plan; -1 when not
  // known. system_error() is an errno value, 0 for none.
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int peer() const noexcept;
  [[nodiscard]] int step() const noexcept;
  [[nodiscard]] int system_error() const noexcept;
  /// Such as "all_reduce #17"; empty when not known.
  [[nodiscard]] std::string_view operation() const noexcept;
  /// What to try; empty for none.
  [[nodiscard]] std::string_view hint() const noexcept;
  [[nodiscard]] SourceLocation where() const noexcept;
  /// The failure behind this one; null for none.
  [[nodiscard]] const Status* cause() const noexcept;

  /// The whole story in words: a line for each failure in the chain and one for each hint.
  [[nodiscard]] std::string to_string() const;

  // Each adds one detail to a failure, and does nothing to a success.
  Status with_rank(int rank) && noexcept;
  Status with_peer(int peer) && noexcept;
  Status with_step(int step) && noexcept;
  /// ENOMEM makes limit_exceeded of system_error.
  Status with_system_error(int error_number) && noexcept;
  Status with_operation(std::string operation) && noexcept;
  Status with_hint(std::string hint) && noexcept;
  Status caused_by(Status cause) && noexcept;

 private:
  struct Detail;  // shared by copies
  struct HOCKET_API ReleaseDetail {
    void operator()(Detail* detail) const noexcept;
  };
  using DetailPointer = std::unique_ptr<Detail, ReleaseDetail>;

  [[nodiscard]] static Detail& out_of_memory_detail();
  [[nodiscard]] static DetailPointer share(Detail* detail) noexcept;
  /// The detail, to be changed by this Status alone; null if there is none, or no memory for it.
  [[nodiscard]] Detail* own() noexcept;

  DetailPointer detail_;
};

/// The exception that the C++ API throws; one derived class for each StatusCode worth catching
/// alone.
class HOCKET_API Error : public std::exception {
 public:
  /// Of a failure; throw_error() picks the class.
  explicit Error(Status status);
  Error(const Error&) = default;
  Error(Error&&) noexcept = default;
  Error& operator=(const Error&) = default;
  Error& operator=(Error&&) noexcept = default;
  ~Error() override;

  /// Status::to_string; only the code's name if there was no memory for more.
  [[nodiscard]] const char* what() const noexcept override;
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] StatusCode code() const noexcept { return status_.code(); }
  [[nodiscard]] int rank() const noexcept { return status_.rank(); }
  [[nodiscard]] int peer() const noexcept { return status_.peer(); }
  [[nodiscard]] std::string_view operation() const noexcept { return status_.operation(); }
  [[nodiscard]] std::string_view hint() const noexcept { return status_.hint(); }

 private:
  Status status_;
  std::string text_;
};

class HOCKET_API InvalidArgument : public Error {
  using Error::Error;
};
class HOCKET_API Unsupported : public Error {
  using Error::Error;
};
class HOCKET_API Timeout : public Error {
  using Error::Error;
};
class HOCKET_API PeerLost : public Error {
  using Error::Error;
};
class HOCKET_API Aborted : public Error {
  using Error::Error;
};
class HOCKET_API Mismatch : public Error {
  using Error::Error;
};
class HOCKET_API PermissionDenied : public Error {
  using Error::Error;
};
class HOCKET_API LimitExceeded : public Error {
  using Error::Error;
};

/// Throws the class of the family that fits the code.
[[noreturn]] HOCKET_API void throw_error(Status status);

/// The status itself, or a failure of code internal in place of a success.
[[nodiscard]] HOCKET_API Status failure_or_internal(Status status);

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  /// Returned as they are: `return value;`, `return status;`.
  Result(T value) : content_(std::move(value)) {}
  /// A success here is a defect, and becomes a failure of code internal.
  Result(Status failure) : content_(failure_or_internal(std::move(failure))) {}

  /// Whether there is a value.
  [[nodiscard]] bool ok() const noexcept { return content_.index() == 0; }
  /// Success when there is a value.
  [[nodiscard]] Status status() const { return ok() ? Status() : *std::get_if<1>(&content_); }

  // The value; there must be one.
  [[nodiscard]] T& operator*() & noexcept { return *std::get_if<0>(&content_); }
  [[nodiscard]] const T& operator*() const& noexcept { return *std::get_if<0>(&content_); }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
  [[nodiscard]] T* operator->() noexcept { return std::get_if<0>(&content_); }
  [[nodiscard]] const T* operator->() const noexcept { return std::get_if<0>(&content_); }

  /// The value, or an Error thrown.
  [[nodiscard]] T value() && {
    if (!ok()) throw_error(status());
    return std::move(**this);
  }

 private:
  std::variant<T, Status> content_;
};

}  // namespace hocket::inline v1
