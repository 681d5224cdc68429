// A communicator: an ordered group of ranks, and the operations that they do together.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/collective.hpp"
#include "hocket/device.hpp"
#include "hocket/export.h"
#include "hocket/message.hpp"
#include "hocket/setting.hpp"
#include "hocket/status.hpp"
#include "hocket/store.hpp"
#include "hocket/types.hpp"

// Inside the library.
namespace hocket::comm {
class Group;
struct Operation;
class PreparedCollective;
}  // namespace hocket::comm

namespace hocket::inline v0 {

/// An operation under way. Its memory is borrowed until it is over, and so ~Work waits for it.
class HOCKET_API Work {
 public:
  Work() noexcept;  // over already
  explicit Work(std::unique_ptr<comm::Operation> operation) noexcept;
  Work(Work&& other) noexcept;
  Work& operator=(Work&& other) noexcept;
  ~Work();

  /// Until it is over. Throws if it failed. What failed behind something else in a stream may touch
  /// the memory until the stream is past it.
  void wait();
  /// Of an operation on device memory: whatever is put into the stream from now on waits for it.
  /// Returns at once. From then on ~Work does not wait: the memory is borrowed until the stream is
  /// past it. A failure does not stop the stream; it is what wait() says, and the communicator's
  /// next operation.
  void wait(Stream stream);
  /// Waits until the operation has ended, at most `time`; zero or less only looks. Returns true if
  /// it has ended, and throws if it failed. Otherwise the operation goes on.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);
  /// Whether it is over, without waiting; whether it went well is what wait() says.
  [[nodiscard]] bool is_over();
  /// How the operation ended, or a Status with code in_progress. Neither waits nor makes progress;
  /// call is_over() to make progress without waiting.
  [[nodiscard]] Status status() const;
  /// Of a receive that is over and went well.
  [[nodiscard]] Received received() const;

 private:
  friend std::size_t wait_any(std::span<Work> works);
  friend void wait_all(std::span<Work> works);
  std::unique_ptr<comm::Operation> operation_;  // null: over
};

/// Until one of them is over: which. Throws InvalidArgument for none.
HOCKET_API std::size_t wait_any(std::span<Work> works);
/// Until all are over. Throws for the first that failed, when all are over.
HOCKET_API void wait_all(std::span<Work> works);

/// An operation that is planned once and run often, on the same memory, which stays mapped as long
/// as this or a work of it lives: adapters may know it from now on, and move it without copies.
/// Of device memory: all ranks prepare the operation and let go of it, as they do operations, in
/// one order; and while it lives, the memory is in other operations on all ranks or on none. So
/// that NCCL, too, may know it, which it must on all ranks. ~Prepared waits for what is under way.
class HOCKET_API Prepared {
 public:
  explicit Prepared(std::unique_ptr<comm::PreparedCollective> operation) noexcept;
  Prepared(Prepared&& other) noexcept;
  Prepared& operator=(Prepared&& other) noexcept;
  ~Prepared();

  void run();
  [[nodiscard]] Work start();

 private:
  std::unique_ptr<comm::PreparedCollective> operation_;
};

/// A handle: copies are the same communicator. Its operations run one after the other, in the order
/// in which they are begun, which must be the same on all its ranks. Operations of different
/// communicators never wait for each other, in however many threads they are begun. When one
/// operation fails, so do all later ones. Where NCCL has done operations on device memory, the last
/// copy waits for the other ranks' to go, too, which may need this rank's memory till then: at most
/// until the last deadline of those operations.
class HOCKET_API Communicator {
 public:
  Communicator() noexcept;  // of no ranks; only to be assigned to
  explicit Communicator(std::shared_ptr<comm::Group> group) noexcept;
  Communicator(const Communicator&) noexcept;
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(const Communicator&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  /// Whether this process is one of its ranks; else only to be assigned to.
  [[nodiscard]] explicit operator bool() const noexcept { return group_ != nullptr; }
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// The name of the one that carries its messages: "tcp".
  [[nodiscard]] std::string_view transport() const;

  // All three throw when the operation can't be: a wrong argument, or a communicator that failed.
  // What is started moves on by itself, from 0.1 ms on after the last start, or while anyone waits.
  // A communicator's first operation on device memory waits in run and start, until all ranks have
  // come to it.
  /// Until it is over; throws if it failed. Of an operation with a stream (Options): puts it into
  /// the stream, and returns at once. A failure does not stop the stream; it is what the
  /// communicator's next operation throws.
  void run(const Collective& operation);
  /// Of an operation with a stream: it begins behind what the stream has. What is put into the
  /// stream later does not wait for it, but by Work::wait(Stream).
  [[nodiscard]] Work start(const Collective& operation);
  [[nodiscard]] Prepared prepare(const Collective& operation);

  // Messages from rank to rank, in any order with the operations above, and apart from those of
  // other communicators.
  /// Of a send, what was sent.
  Received run(const Message& message);
  [[nodiscard]] Work start(const Message& message);

  /// Waits until all ranks have called it. If some have not come when the first rank's timeout
  /// ends, it throws Timeout on every rank. The error lists the missing ranks, and peer() is the
  /// lowest of them. The communicator stays usable.
  ///
  /// The nth call on one rank belongs to the nth call on every other rank. A rank that comes after
  /// the timeout gets the same error at once; the next call is the next barrier. So after a
  /// Timeout, all ranks must call it again, not only those that were in time.
  ///
  /// It does not wait for other operations, and may be called in any order with them. It goes
  /// through the store, which is slower than barrier(). No value means the communicator's timeout;
  /// zero means that all other ranks must have come already. If the communicator fails, it throws
  /// that error. If the store does not answer, this rank alone fails, possibly some seconds after
  /// its timeout, and not with Timeout.
  void monitored_barrier(std::optional<std::chrono::nanoseconds> timeout = {});

  /// Ends this communicator: operations and messages that are in flight, and all later ones, fail
  /// with code aborted. On this rank the error has the reason; other ranks fail when they next need
  /// something from this rank, and name it as peer(). Any thread may call this, also while others
  /// wait. It returns at once and takes effect within about a millisecond; until then an operation
  /// may still succeed. Only the first reason counts, and a communicator that has failed keeps its
  /// first error. Does nothing in a child made by fork().
  void abort(std::string_view reason = {}) noexcept;

  // All ranks of this communicator call these, in the same order as its operations.
  /// The ranks that say the same color, ordered by key and then by rank. A negative color: none.
  [[nodiscard]] Communicator split(int color, int key = 0);
  /// These ranks, in this order; on the others, none.
  [[nodiscard]] Communicator subgroup(std::span<const int> ranks);
  [[nodiscard]] Communicator dup();

  // The same in one word, for one operation now.
  template <Element T>
  void all_reduce(std::span<T> values, Reduce reduction = {}, Options options = {}) {
    run(Collective::all_reduce(std::span<const T>(values), values, reduction, options));
  }
  template <Element T>
  void broadcast(std::span<T> values, int root = 0, Options options = {}) {
    run(Collective::broadcast(values, root, options));
  }
  template <Element T>
  void all_gather(std::span<const T> in, std::span<T> out, Options options = {}) {
    run(Collective::all_gather(in, out, options));
  }
  void barrier(Options options = {}) { run(Collective::barrier(options)); }
  template <Element T>
  void send(std::span<const T> values, int peer, int tag = 0, Options options = {}) {
    run(Message::send(values, peer, tag, options));
  }
  template <Element T>
  Received recv(std::span<T> values, int peer = any_rank, int tag = any_tag, Options options = {}) {
    return run(Message::recv(values, peer, tag, options));
  }
  /// Both at once, so that ranks may send each other in a circle.
  Received sendrecv(const Message& sent, const Message& received);

 private:
  std::shared_ptr<comm::Group> group_;
};

struct JoinOptions {
  /// The store in which the ranks meet, in place of a URL; HOCKET_RENDEZVOUS is ignored then. The
  /// world shares it until its last communicator is gone; join(), split(), subgroup(), dup() and
  /// monitored_barrier() call it. The world's keys begin with "hocket/" and stay in the store, so a
  /// store that outlives the program needs a part (make_prefix_store), a `name` or a HOCKET_ATTEMPT
  /// of its own for each run. If no secret is set, the ranks agree on one in the store: whoever can
  /// read it can join the world.
  std::shared_ptr<Store> store = {};
  /// This rank, and the number of ranks. Give both or neither; without them the URL or the launcher
  /// says both.
  int rank = -1;
  int size = -1;
  /// How the ranks meet: env://, tcp://HOST:PORT?rank=&size=, file:///PATH?rank=&size=; empty for
  /// HOCKET_RENDEZVOUS, else what the launcher says.
  std::string url = {};
  /// How long to wait for all ranks; not set: HOCKET_STORE_TIMEOUT. Below zero is an error.
  std::optional<std::chrono::nanoseconds> timeout = {};
  /// Timeout of operations that set none. Zero: only what can be done at once. Below zero is an
  /// error.
  std::chrono::nanoseconds operation_timeout = std::chrono::minutes(30);
  /// The name of the world. Worlds of different names never meet, so that libraries in one program
  /// need not agree on the order in which they join. At most 64 letters, digits, '.', '_' and '-'.
  std::string name = {};
  /// Variables for this world, in place of the environment's. An unknown name, an invalid value or
  /// a variable of the whole process (see `hocket info --env`) is an error here, where the
  /// environment only gets a warning.
  std::vector<Setting> settings = {};
};

/// Joins a world: returns when all its ranks are there. Throws, within the timeout, and names the
/// ranks that are missing or wrong.
///
/// A process may join any number of worlds, at once or one after the other, and by the same
/// variables or the same URL. Each call forms another world, of the same ranks: the n-th of a rank
/// meets the n-th of the others, counted for each name by itself. So all ranks must join the worlds
/// of one name in the same order.
[[nodiscard]] HOCKET_API Communicator join(const JoinOptions& options = {});

}  // namespace hocket::inline v0
