// A communicator: an ordered group of ranks, and the operations that they do together.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <variant>
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

namespace hocket::inline v1 {

class Memory;

/// An operation under way. Its memory is borrowed until it is over, and so ~Work waits for it; so
/// does an assignment to it. Any thread may call the functions that wait, look or attach a
/// function.
class HOCKET_API Work {
 public:
  Work() noexcept;  // over already
  explicit Work(std::unique_ptr<comm::Operation> operation) noexcept;
  Work(Work&& other) noexcept;
  Work& operator=(Work&& other) noexcept;
  ~Work();

  /// Waits until the operation has ended, and throws if it failed. If it was behind something else
  /// in a stream and failed, it may touch the memory until the stream is past it.
  void wait();
  /// For an operation on device memory: whatever is put into the stream from now on waits for it.
  /// Returns at once, unless it is staged (docs/device.md), for which no stream can wait. From then
  /// on ~Work does not wait: the memory is borrowed until the stream is past it. A failure does not
  /// stop the stream; wait() and the communicator's next operation throw it, and so does this if it
  /// is known by then.
  void wait(Stream stream);
  /// Waits until the operation has ended, at most `time`; zero or less only looks. Returns true if
  /// it has ended, and throws if it failed. Otherwise the operation goes on.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);
  /// Makes progress without waiting, and returns whether the operation has ended; whether it went
  /// well is what wait() says.
  [[nodiscard]] bool test();
  /// How the operation ended, or a Status with code in_progress. Makes no progress. After a failure
  /// it may take up to 0.2 s to find out why.
  [[nodiscard]] Status status() const;
  /// Calls the function once, soon after the operation has ended, with its status. A thread of the
  /// library calls it, where it may wait and call Hocket; if it throws, that is logged and has no
  /// other effect. May be called several times. Of an operation on device memory, the call waits
  /// while another thread begins one. Throws InvalidArgument without an operation.
  void then(std::function<void(const Status& status)> function);
  /// Gives up the operation, which goes on by itself; this Work is empty then. The memory stays
  /// borrowed until `release` is called, once, on a thread of the library as by then(). Null means
  /// that the memory outlives the operation anyway. If this Work is empty already, detach() calls
  /// `release` itself, with success. If detach() throws, nothing has changed.
  void detach(std::function<void(const Status& status)> release);
  /// Returns what a receive got. Throws InvalidArgument unless this is a message that has ended
  /// well.
  [[nodiscard]] Received received() const;

 private:
  friend std::size_t wait_any(std::span<Work> works);
  friend std::size_t wait_any(std::span<Work* const> works);
  friend void wait_all(std::span<Work> works);
  friend void wait_all(std::span<Work* const> works);
  std::unique_ptr<comm::Operation> operation_;  // null: over
};

/// A collective or a message.
using AnyOperation = std::variant<Collective, Message>;

/// Waits until one of them has ended and returns its index; an empty Work counts as ended. Does not
/// throw if that operation failed: its wait() does. Take it out of the list before the next call,
/// or it will be returned again. Throws InvalidArgument if the list is empty. No pointer may be
/// null.
HOCKET_API std::size_t wait_any(std::span<Work> works);
HOCKET_API std::size_t wait_any(std::span<Work* const> works);
/// Waits until all are over. Then it throws if some failed: what the first of them in the list
/// says.
HOCKET_API void wait_all(std::span<Work> works);
HOCKET_API void wait_all(std::span<Work* const> works);

/// An operation that is planned once and run often, on the same memory, which stays mapped as long
/// as this or a work of it lives: adapters may know it from now on, and move it without copies.
/// With device memory, all ranks prepare and destroy it in one order, as they do operations. While
/// it lives, other operations use that memory on all ranks or on none, because NCCL must know it on
/// all ranks. ~Prepared waits for what is under way. One thread at a time may call it.
class HOCKET_API Prepared {
 public:
  explicit Prepared(std::unique_ptr<comm::PreparedCollective> operation) noexcept;
  Prepared(Prepared&& other) noexcept;
  Prepared& operator=(Prepared&& other) noexcept;
  ~Prepared();

  /// As Communicator::run and start of the operation.
  void run();
  [[nodiscard]] Work start();

 private:
  std::unique_ptr<comm::PreparedCollective> operation_;
};

/// A handle: copies refer to the same communicator. Any thread may call any function, also several
/// at once; only assigning to a handle or destroying it needs that handle alone. Operations run one
/// after the other, in the order in which they are begun. That order must be the same on all ranks,
/// so threads that begin different operations must agree on it. If the variable HOCKET_OVERLAP is
/// above 1, up to that many collectives on host memory are in flight at once, and may end in any
/// order; a barrier may end before an earlier collective. Memory that one in flight uses must then
/// not be passed to another one, unless both only read it; this also holds for start_many and for
/// starting a Prepared again. Operations of different communicators never wait for each other. When
/// one operation fails, all later ones fail. If NCCL has run operations on device memory,
/// destroying the last copy waits until the other ranks destroy theirs, at most until the last
/// deadline of those operations.
class HOCKET_API Communicator {
 public:
  Communicator() noexcept;  // of no ranks; only to be assigned to
  explicit Communicator(std::shared_ptr<comm::Group> group) noexcept;
  Communicator(const Communicator&) noexcept;
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(const Communicator&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  /// Whether this is a communicator. An empty one (default-constructed, or of a rank that group()
  /// or split() left out) may only be tested, copied, assigned and destroyed.
  [[nodiscard]] explicit operator bool() const noexcept { return group_ != nullptr; }
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// The transports that carry its messages, the best first: "tcp" or "shm,tcp".
  [[nodiscard]] std::string_view transport() const;
  /// The name of the host on which `rank` runs; valid while this communicator exists. Throws
  /// InvalidArgument if there is no such rank.
  [[nodiscard]] std::string_view host(int rank) const;
  /// Of the ranks of this communicator on this host, in their order: which this one is, and how
  /// many there are.
  [[nodiscard]] int local_rank() const;
  [[nodiscard]] int local_size() const;
  /// The number in `other` of the process that is `rank` here; -1 if it is not in `other`. Throws
  /// InvalidArgument if there is no such rank, or if `other` belongs to another world.
  [[nodiscard]] int rank_in(const Communicator& other, int rank) const;

  // These throw if an argument is wrong, or if the communicator has failed. The first operation of
  // a communicator on device memory waits, in run and start, until all ranks have come to it.
  /// Runs the operation until it is over, and throws if it failed. If it has a stream
  /// (OperationOptions), this puts it into the stream and returns at once, unless it is staged
  /// (docs/device.md); a failure does not stop the stream, and the communicator's next operation
  /// throws it.
  void run(const Collective& operation);
  /// Starts it. It makes progress by itself from 0.1 to 1 ms after the last start, or sooner while
  /// some thread waits. If it has a stream, it begins behind what is in the stream now; what is put
  /// there later waits for it only after Work::wait(Stream).
  [[nodiscard]] Work start(const Collective& operation);
  /// Plans it, so that it can be run or started many times.
  [[nodiscard]] Prepared prepare(const Collective& operation);

  /// Starts collectives and messages of any kinds and types, in this order, as one operation. It
  /// has ended when all of them have, and it fails if one of them fails. Other ranks may start the
  /// same operations one by one. All memory is on the host. If an argument is wrong, it throws, and
  /// nothing has begun. Of `options` only queue, queue_tag, on_end and on_end_context are used;
  /// each operation has its own timeout. received() does not work on this Work.
  [[nodiscard]] Work start_many(std::span<const AnyOperation> operations,
                                const OperationOptions& options = {});

  // Messages from rank to rank, in any order with the operations above, and apart from those of
  // other communicators.
  /// Sends or receives the message and waits for its end. Returns what was received; after a send,
  /// peer, tag and count of the message itself.
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
  /// with code aborted and the reason; on other ranks they name this rank as peer(). Any thread may
  /// call this, also while others wait. It returns at once and takes effect here within about a
  /// millisecond, on other ranks some 30 ms later; until then an operation may still succeed. Only
  /// the first reason counts, and a communicator that has failed keeps its first error. Does
  /// nothing in a child made by fork().
  void abort(std::string_view reason = {}) noexcept;

  /// Makes a communicator of these ranks, in this order. Each of them calls it with the same ranks,
  /// order and name. Other ranks need not call it; if they do, they get an empty communicator at
  /// once. It waits until all members have called it, at most `timeout` (no value: the
  /// communicator's; zero: all others must have called it already). If some have not, it throws
  /// Timeout, which names them, on every member, also on those that call later. If two members give
  /// different orders, all get Mismatch; if a member dies, PeerLost; if a member fails by itself,
  /// Aborted. After such a failure, all members that are left must call it again. If
  /// the store does not answer, this rank alone fails. A rank that does not exist, or is named
  /// twice, is InvalidArgument. This communicator never fails by it.
  ///
  /// The nth call with the same ranks and name on one rank meets the nth on the others. Calls with
  /// other ranks or another name do not wait for each other, so threads that make communicators of
  /// the same ranks at the same time give each a name: at most 64 letters, digits, '.', '_', '-'.
  ///
  /// It may be called in any order with operations. It goes through the store, and the new
  /// communicator shares this one's threads and adapters. This one may have failed: those that are
  /// left after a death may go on together, while the store is there.
  [[nodiscard]] Communicator group(std::span<const int> ranks, std::string_view name = {},
                                   std::optional<std::chrono::nanoseconds> timeout = {});

  // All ranks of this communicator call these, in the same order as its operations.
  /// Makes a communicator for each color, of the ranks that give it, ordered by key and then by
  /// rank. A rank with a negative color gets none.
  [[nodiscard]] Communicator split(int color, int key = 0);
  /// Makes another one of the same ranks, whose operations never meet those of this one.
  [[nodiscard]] Communicator dup();

  // Shorthand: each of these runs the Collective or Message of the same name and waits for its end;
  // collective.hpp has the contracts. Ranges of a size that does not fit the world are refused. The
  // forms with `values` alone are in place: this rank's part is at its own place within `values`.
  template <ElementRange In, OutputFor<In> Out>
  void all_reduce(const In& in, Out&& out, Reduction reduction = {},
                  const OperationOptions& options = {}) {
    run(Collective::all_reduce(in, out, reduction, options));
  }
  template <WritableElementRange Values>
  void all_reduce(Values&& values, Reduction reduction = {}, const OperationOptions& options = {}) {
    run(Collective::all_reduce(values, reduction, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void reduce_scatter(const In& in, Out&& out, Reduction reduction = {},
                      const OperationOptions& options = {}) {
    check_whole(in, out, "reduce_scatter");
    run(Collective::reduce_scatter(in, out, reduction, options));
  }
  template <WritableElementRange Values>
  void reduce_scatter(Values&& values, Reduction reduction = {},
                      const OperationOptions& options = {}) {
    run(Collective::reduce_scatter(values, own_part(values), reduction, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void reduce_scatter_v(const In& in, Out&& out, std::span<const std::size_t> counts,
                        Reduction reduction = {}, const OperationOptions& options = {}) {
    check_counts(counts, std::ranges::size(in), std::ranges::size(out), "reduce_scatter_v");
    run(Collective::reduce_scatter_v(in, out, counts, reduction, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void all_gather(const In& in, Out&& out, const OperationOptions& options = {}) {
    check_whole(out, in, "all_gather");
    run(Collective::all_gather(in, out, options));
  }
  template <WritableElementRange Values>
  void all_gather(Values&& values, const OperationOptions& options = {}) {
    run(Collective::all_gather(own_part(values), values, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void all_gather_v(const In& in, Out&& out, std::span<const std::size_t> counts,
                    const OperationOptions& options = {}) {
    check_counts(counts, std::ranges::size(out), std::ranges::size(in), "all_gather_v");
    run(Collective::all_gather_v(in, out, counts, options));
  }
  template <WritableElementRange Values>
  void broadcast(Values&& values, int root = 0, const OperationOptions& options = {}) {
    run(Collective::broadcast(values, root, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void reduce(const In& in, Out&& out, Reduction reduction = {}, int root = 0,
              const OperationOptions& options = {}) {
    if (rank() == root) {
      detail::check_size(std::ranges::size(out), std::ranges::size(in), "reduce");
    }
    run(Collective::reduce(in, out, reduction, root, options));
  }
  template <WritableElementRange Values>
  void reduce(Values&& values, Reduction reduction = {}, int root = 0,
              const OperationOptions& options = {}) {
    run(Collective::reduce(values, reduction, root, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void gather(const In& in, Out&& out, int root = 0, const OperationOptions& options = {}) {
    if (rank() == root) check_whole(out, in, "gather");
    run(Collective::gather(in, out, root, options));
  }
  /// In place: the whole on the root, else this rank's part.
  template <WritableElementRange Values>
  void gather(Values&& values, int root = 0, const OperationOptions& options = {}) {
    const auto all = std::span(values);
    run(rank() == root ? Collective::gather(own_part(values), all, root, options)
                       : Collective::gather(all, all.first(0), root, options));
  }

  /// Of parts of different sizes.
  template <ElementRange In, OutputFor<In> Out>
  void gather_v(const In& in, Out&& out, std::span<const std::size_t> counts, int root = 0,
                const OperationOptions& options = {}) {
    check_counts(counts, rank() == root ? std::ranges::size(out) : detail::sum(counts),
                 std::ranges::size(in), "gather_v");
    run(Collective::gather_v(in, out, counts, root, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void scatter(const In& in, Out&& out, int root = 0, const OperationOptions& options = {}) {
    if (rank() == root) check_whole(in, out, "scatter");
    run(Collective::scatter(in, out, root, options));
  }
  /// In place: the whole on the root, else this rank's part.
  template <WritableElementRange Values>
  void scatter(Values&& values, int root = 0, const OperationOptions& options = {}) {
    const auto all = std::span(values);
    run(rank() == root ? Collective::scatter(all, own_part(values), root, options)
                       : Collective::scatter(all.first(0), all, root, options));
  }

  /// Of parts of different sizes.
  template <ElementRange In, OutputFor<In> Out>
  void scatter_v(const In& in, Out&& out, std::span<const std::size_t> counts, int root = 0,
                 const OperationOptions& options = {}) {
    check_counts(counts, rank() == root ? std::ranges::size(in) : detail::sum(counts),
                 std::ranges::size(out), "scatter_v");
    run(Collective::scatter_v(in, out, counts, root, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void all_to_all(const In& in, Out&& out, const OperationOptions& options = {}) {
    const std::size_t whole = std::ranges::size(in);
    run(Collective::all_to_all(in, out, detail::part_of(whole, size(), "all_to_all"), options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void all_to_all_v(const In& in, Out&& out, std::span<const std::size_t> counts_to,
                    std::span<const std::size_t> counts_from,
                    const OperationOptions& options = {}) {
    check_counts(counts_to, std::ranges::size(in), {}, "all_to_all_v");
    check_counts(counts_from, std::ranges::size(out), {}, "all_to_all_v");
    run(Collective::all_to_all_v(in, out, counts_to, counts_from, options));
  }
  void barrier(const OperationOptions& options = {}) { run(Collective::barrier(options)); }
  template <ElementRange In, OutputFor<In> Out>
  void scan(const In& in, Out&& out, Reduction reduction = {},
            const OperationOptions& options = {}) {
    run(Collective::scan(in, out, reduction, options));
  }
  template <WritableElementRange Values>
  void scan(Values&& values, Reduction reduction = {}, const OperationOptions& options = {}) {
    run(Collective::scan(values, reduction, options));
  }
  template <ElementRange In, OutputFor<In> Out>
  void exscan(const In& in, Out&& out, Reduction reduction = {},
              const OperationOptions& options = {}) {
    if (rank() > 0) detail::check_size(std::ranges::size(out), std::ranges::size(in), "exscan");
    run(Collective::exscan(in, out, reduction, options));
  }
  template <WritableElementRange Values>
  void exscan(Values&& values, Reduction reduction = {}, const OperationOptions& options = {}) {
    run(Collective::exscan(values, reduction, options));
  }
  template <ElementRange Values>
  void send(const Values& values, int peer, int tag = 0, const OperationOptions& options = {}) {
    run(Message::send(values, peer, tag, options));
  }
  template <WritableElementRange Values>
  Received recv(Values&& values, int peer = any_rank, int tag = any_tag,
                const OperationOptions& options = {}) {
    return run(Message::recv(values, peer, tag, options));
  }
  /// Sends `sent` and receives into `received` at the same time, so ranks may send around a circle.
  /// Both are checked before either begins. Returns what was received.
  Received sendrecv(const Message& sent, const Message& received);

 private:
  friend Memory allocate(const Communicator& communicator, std::size_t bytes);
  /// Of as many parts as there are ranks, this rank's.
  template <class Values>
  [[nodiscard]] auto own_part(Values& values) const {
    const std::size_t part = detail::part_of(std::ranges::size(values), size(), "in place");
    return std::span(values).subspan(static_cast<std::size_t>(rank()) * part, part);
  }

  /// The whole is a part for each rank.
  template <class Whole, class Part>
  void check_whole(const Whole& whole, const Part& part, std::string_view what) const {
    detail::check_size(std::ranges::size(whole),
                       std::ranges::size(part) * static_cast<std::size_t>(size()), what);
  }
  /// The whole is parts of these counts, this rank's among them.
  void check_counts(std::span<const std::size_t> counts, std::size_t whole,
                    std::optional<std::size_t> own, std::string_view what) const {
    detail::check_size(whole, detail::sum(counts), what);
    const auto place = static_cast<std::size_t>(rank());
    if (own && place < counts.size()) detail::check_size(*own, counts[place], what);
  }

  std::shared_ptr<comm::Group> group_;
};

struct JoinOptions {
  /// The store in which the ranks meet, in place of a URL; HOCKET_RENDEZVOUS is ignored then. The
  /// world shares it until its last communicator is gone; join(), group(), split(), dup() and
  /// monitored_barrier() call it. The world's keys begin with "hocket/" and stay in the store.
  /// Ranks that are all started again with the same store meet there again; two jobs at a time each
  /// need a part of it (make_prefix_store) or a `name`. If no secret is set, the ranks agree on one
  /// in the store: whoever can read it can join the world.
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

/// Says good-bye to the other ranks of all worlds of this process, so that they don't take its end
/// for a death. exit() and the return from main() do it by themselves: this is for programs that
/// end by _exit() or quick_exit(). Nothing of these worlds may be used afterwards.
HOCKET_API void leave_all_worlds() noexcept;

/// The ranks of a launch, and a store that they share.
struct Meeting {
  int rank = 0;
  int size = 1;
  /// Empty at first. If rank 0 serves it (docs/rendezvous.md), rank 0's process must run until the
  /// others no longer need it. The server stops when that process ends, or after rank 0 has
  /// released all copies of this pointer and no other rank is connected.
  std::shared_ptr<Store> store = {};
};

/// Meets the other ranks as join() does, without connections between them: for programs that
/// communicate by other means, such as another library, and only need to find each other. The n-th
/// call of a rank meets the n-th of the others.
[[nodiscard]] HOCKET_API Meeting meet(const JoinOptions& options = {});

}  // namespace hocket::inline v1
