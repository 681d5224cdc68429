// The ways in which operations of a communicator are run: collectives on memory of the host
// (HostPath) or of a device (DevicePath), and messages (Mail). Everybody else treats them alike.
#pragma once

#include <memory>
#include <vector>

#include "hocket/collective.hpp"
#include "hocket/device.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "comm/operation.hpp"
#include "engine/engine.hpp"

namespace hocket::comm {

/// Unless a path says otherwise, the engine moves its operations on.
class Path {
 public:
  explicit Path(engine::Engine& engine) noexcept : engine_(engine) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;

  /// Waits until the operation is over, or the deadline passes. Returns whether it is over.
  virtual bool wait(const Operation& operation, Deadline deadline) {
    return engine_.wait(*operation.work, deadline);
  }
  /// Moves things on once, without waiting. Returns whether the operation is over.
  virtual bool test(const Operation& operation) { return engine_.test(*operation.work); }
  /// Whether its operations end without a word to the engine, so that somebody must look.
  [[nodiscard]] virtual bool ends_silently() const noexcept { return false; }
  /// What is put into the stream from now on waits for the operation.
  [[nodiscard]] virtual Status make_wait(Operation& operation, Stream stream);
  /// What the failure of an operation is to its caller.
  [[nodiscard]] virtual Status explain(const Operation& operation,
                                       const Status& why) const noexcept = 0;
  /// Takes back what the path has put into an operation that is over, or that a stream waits for.
  virtual void let_go(Operation& operation) noexcept = 0;

 private:
  engine::Engine& engine_;
};

/// A collective that was prepared, with lists of its own. The memory is still the caller's.
class Repeated {
 public:
  /// The path is the group's.
  Repeated(std::shared_ptr<Group> group, Path& path, const Collective& collective);
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  virtual ~Repeated() = default;

  [[nodiscard]] virtual Status run() = 0;
  [[nodiscard]] virtual Status start(Operation& operation) = 0;

  [[nodiscard]] const std::shared_ptr<Group>& group() const noexcept { return group_; }
  [[nodiscard]] Path& path() const noexcept { return path_; }
  [[nodiscard]] const Collective& collective() const noexcept { return collective_; }

 private:
  const std::shared_ptr<Group> group_;
  Path& path_;
  const std::vector<Piece> pieces_;
  const std::vector<std::size_t> counts_;
  const std::vector<std::size_t> counts_from_;
  Collective collective_;  // of those
};

/// Collectives on one kind of memory. `device`: on which it is; -1 for the host.
class CollectivePath : public Path {
 public:
  using Path::Path;

  /// Until it is over; or of one with a stream, until it is in the stream.
  [[nodiscard]] virtual Status run(const Collective& collective, int device) = 0;
  /// Throws without memory before it has begun.
  [[nodiscard]] virtual Status start(const Collective& collective, int device,
                                     Operation& operation) = 0;
  /// Throws without memory.
  [[nodiscard]] virtual Result<std::unique_ptr<Repeated>> prepare(std::shared_ptr<Group> group,
                                                                  const Collective& collective,
                                                                  int device) = 0;
};

}  // namespace hocket::comm
