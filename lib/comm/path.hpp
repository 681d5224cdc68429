// How the operations of a communicator are run: collectives on host memory (HostPath), collectives
// on device memory (DevicePath) and messages (Mail). Work and Group treat all three alike.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "hocket/collective.hpp"
#include "hocket/device.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "comm/operation.hpp"
#include "engine/engine.hpp"

namespace hocket::comm {

/// The engine makes progress on the operations, unless a path overrides wait() and test().
class Path {
 public:
  explicit Path(engine::Engine& engine) noexcept : engine_(engine) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  virtual ~Path() = default;

  /// Waits until the operation has ended or the deadline passes. Returns whether it has ended.
  virtual bool wait(const Operation& operation, Deadline deadline) {
    return engine_.wait(*operation.work, deadline);
  }
  /// Makes progress once, without waiting. Returns whether the operation has ended.
  virtual bool test(const Operation& operation) { return engine_.test(*operation.work); }
  /// As Engine::call_at_end, of the operation's work.
  virtual bool call_at_end(Operation& operation, engine::EndNote note, engine::EndNote& former) {
    return engine_.call_at_end(operation.own_work, note, former);
  }
  /// Whether operations can end without notice to the engine, so that wait_any() must poll them.
  [[nodiscard]] virtual bool ends_silently() const noexcept { return false; }
  /// Makes later work in the stream wait for the operation. Does not block.
  [[nodiscard]] virtual Status make_wait(Operation& operation, Stream stream);
  /// Describes a failure for the caller: operation, rank and cause.
  [[nodiscard]] virtual Status explain(const Operation& operation,
                                       const Status& why) const noexcept = 0;
  /// Releases what the path keeps in the operation. It must have ended, or a stream must wait for
  /// it.
  virtual void let_go(Operation& operation) noexcept = 0;

 private:
  engine::Engine& engine_;
};

/// Returns how the operation ended, with its cause; it must have ended.
[[nodiscard]] Status status_of(const Operation& operation);

/// Calls the function when the operation has ended, on a thread where it may wait (callbacks.hpp),
/// also if it has ended by now. Throws if memory or threads run out.
void call_at_end(Operation& operation, std::function<void(const Status& status)> function);

/// Ends one hold of an operation. The last one returns it to its pool; it must have ended then, or
/// a stream must wait for it. This may destroy the group.
void let_go(Operation* operation) noexcept;

/// A prepared collective. It has copies of the caller's lists (pieces, counts); buffers stay the
/// caller's. It keeps the group alive, and the path belongs to that group.
class PreparedCollective {
 public:
  PreparedCollective(std::shared_ptr<Group> group, Path& path, const Collective& collective);
  PreparedCollective(const PreparedCollective&) = delete;
  PreparedCollective& operator=(const PreparedCollective&) = delete;
  virtual ~PreparedCollective() = default;

  [[nodiscard]] virtual Status run() = 0;
  [[nodiscard]] virtual Status start(Operation& operation) = 0;

  [[nodiscard]] const std::shared_ptr<Group>& group() const noexcept { return group_; }
  [[nodiscard]] Path& path() const noexcept { return path_; }
  [[nodiscard]] const Collective& collective() const noexcept { return collective_; }

 private:
  const std::shared_ptr<Group> group_;
  Path& path_;
  const std::vector<Piece> pieces_;
  const std::vector<Piece> in_pieces_;
  const std::vector<Piece> out_pieces_;
  const std::vector<std::size_t> counts_;
  const std::vector<std::size_t> counts_from_;
  Collective collective_;  // refers to the copies above
};

/// Collectives on one kind of memory. `device` is the number of the device, -1 on the host.
class CollectivePath : public Path {
 public:
  using Path::Path;

  /// Runs the collective to its end; with a stream, returns once it is in the stream.
  [[nodiscard]] virtual Status run(const Collective& collective, int device) = 0;
  /// Starts it in the background. Throws std::bad_alloc if memory runs out; then nothing has begun.
  [[nodiscard]] virtual Status start(const Collective& collective, int device,
                                     Operation& operation) = 0;
  /// Throws std::bad_alloc if memory runs out.
  [[nodiscard]] virtual Result<std::unique_ptr<PreparedCollective>> prepare(
      std::shared_ptr<Group> group, const Collective& collective, int device) = 0;
};

}  // namespace hocket::comm
