// A library with NCCL's binary interface over the fake device, for the control flow of whoever
// calls it: it proves logic, and has no speed. Ranks are processes of one machine, which meet in
// shared memory that the unique id names.
//
// FAKE_NCCL in the environment, a list with commas of what goes wrong:
//   version=N            ncclGetVersion says so
//   slow                 calls are in progress for a while, as non-blocking ones may be
//   hang=R:N             rank R's N-th collective never ends
//   error=R:N            it raises an asynchronous error
//   stuck-init=R         rank R never comes
//   log                  each call is written to stderr
// FAKE_NCCL_VERSION of the build: what it says without the above. Before 22800 there are no
// ncclAlltoAll, ncclGather and ncclScatter, before 21900 no ncclCommRegister.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hocket/types.hpp"

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "fake_device.hpp"
#include "transports/nccl/abi.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace hocket::nccl {

constexpr std::size_t ranks_max = 16;
constexpr std::size_t box_bytes = 16 << 10;

/// One way between two ranks: a ring of bytes.
struct Box {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  std::array<std::byte, box_bytes> bytes;
};

/// What the ranks of a communicator share.
struct Shared {
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> splits;                        // ranks that have said what they want
  std::atomic<std::uint32_t> reads;                         // and have seen what all want
  std::array<std::atomic<std::int64_t>, ranks_max> colors;  // of a split: 1 + what each rank says
  std::array<std::atomic<std::int64_t>, ranks_max> keys;
  std::array<std::array<Box, ranks_max>, ranks_max> boxes;  // from, to
  /// Of each rank, which collectives had registered memory: the sum of their numbers.
  std::array<std::atomic<std::uint64_t>, ranks_max> registered;
};

struct Comm {
  std::string name;
  int rank = 0;
  int size = 1;
  Shared* shared = nullptr;
  std::atomic<Outcome> state = success;
  std::atomic<bool> is_aborted = false;
  std::atomic<int> busy = 0;  // polls that it goes on saying in_progress
  int collectives = 0;
  int splits = 0;
  std::atomic<int> tasks = 0;  // in streams
  std::vector<std::thread> starters;
  std::map<int, double> factors;                                    // of ops that were made
  std::map<std::uintptr_t, std::span<const std::byte>> registered;  // by handle
  std::uintptr_t handles = 0;
  std::uint64_t uses = 0;  // collectives that may have registered memory
};

namespace {

std::string_view wish(std::string_view name) {
  std::string_view list = process_environment().get("FAKE_NCCL");
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    if (item == name) return "1";
    if (item.starts_with(name) && item.size() > name.size() && item[name.size()] == '=') {
      return item.substr(name.size() + 1);
    }
  }
  return {};
}

int number(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_wished(std::string_view name, const Comm& comm) {
  const std::string_view text = wish(name);
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && number(text.substr(0, colon)) == comm.rank &&
         number(text.substr(colon + 1)) == comm.collectives;
}

void note(const char* call, const Comm* comm) {
  if (wish("log").empty()) return;
  std::fprintf(stderr, "nccl %s rank=%d of=%s\n", call, comm == nullptr ? -1 : comm->rank,
               comm == nullptr ? "-" : comm->name.c_str());
}

/// What NCCL leaves undefined ends a test.
[[noreturn]] void complain(const char* what, const Comm& comm) {
  std::fprintf(stderr, "WRONG: %s on rank %d\n", what, comm.rank);
  ::_exit(3);
}

bool is_registered(const Comm& comm, const void* memory) {
  const auto* const at = static_cast<const std::byte*>(memory);
  return std::any_of(comm.registered.begin(), comm.registered.end(), [&](const auto& each) {
    return at >= each.second.data() && at < each.second.data() + each.second.size();
  });
}

void note_use(Comm& comm, const void* in, const void* out) {
  ++comm.uses;
  if (!is_registered(comm, in) || !is_registered(comm, out)) return;
  comm.shared->registered[static_cast<std::size_t>(comm.rank)] += comm.uses;
}

/// All ranks have called all that they ever call.
void check_uses(const Comm& comm) {
  const auto& sums = comm.shared->registered;
  for (std::size_t i = 1; i < static_cast<std::size_t>(comm.size); ++i) {
    if (sums[i] != sums[0]) complain("some ranks have registered memory, and some have not", comm);
  }
}

Shared* map_shared(const std::string& name) {
  const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) return nullptr;
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
}

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

/// All ranks have come; the file is not needed then.
void arrive(Comm& comm) {
  if (number(wish("stuck-init")) == comm.rank) {
    while (!comm.is_aborted) rest();
    return;
  }
  ++comm.shared->arrived;
  while (comm.shared->arrived < static_cast<std::uint32_t>(comm.size)) {
    if (comm.is_aborted) return;
    rest();
  }
  ::shm_unlink(comm.name.c_str());
  comm.state = success;
}

std::size_t size_of_type(Type type) {
  constexpr std::array<std::size_t, 10> sizes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes.at(static_cast<std::size_t>(type));
}

double load(const std::byte* from, Type type) {
  const auto get = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  switch (type) {
    case int8:
      return get(std::int8_t{});
    case uint8:
      return get(std::uint8_t{});
    case int32:
      return get(std::int32_t{});
    case uint32:
      return get(std::uint32_t{});
    case int64:
      return static_cast<double>(get(std::int64_t{}));
    case uint64:
      return static_cast<double>(get(std::uint64_t{}));
    case float16:
      return static_cast<float>(get(hocket::float16{}));
    case bfloat16:
      return static_cast<float>(get(hocket::bfloat16{}));
    case float32:
      return get(float{});
    case float64:
      break;
  }
  return get(double{});
}

void store(std::byte* to, Type type, double value) {
  const auto put = [&](auto as) { std::memcpy(to, &as, sizeof as); };
  switch (type) {
    case int8:
      return put(static_cast<std::int8_t>(static_cast<std::int64_t>(value)));
    case uint8:
      return put(static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
    case int32:
      return put(static_cast<std::int32_t>(static_cast<std::int64_t>(value)));
    case uint32:
      return put(static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
    case int64:
      return put(static_cast<std::int64_t>(value));
    case uint64:
      return put(static_cast<std::uint64_t>(value));
    case float16:
      return put(hocket::float16(static_cast<float>(value)));
    case bfloat16:
      return put(hocket::bfloat16(static_cast<float>(value)));
    case float32:
      return put(static_cast<float>(value));
    case float64:
      return put(value);
  }
}

double combine(double a, double b, Op op) {
  switch (op) {
    case prod:
      return a * b;
    case max:
      return std::max(a, b);
    case min:
      return std::min(a, b);
    default:
      return a + b;
  }
}

/// Bytes to or from another rank, as far as its box has room or content.
struct Flow {
  int peer = 0;
  bool is_sent = false;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::size_t done = 0;
};

/// A kernel: moves its bytes, and then does what is left to do here.
class Kernel : public fake::Task {
 public:
  explicit Kernel(Comm& comm) : comm_(comm) {
    ++comm_.tasks;
    ++comm_.collectives;
    hangs_ = is_wished("hang", comm);
    if (is_wished("error", comm)) comm.state = remote_error;
    hangs_ = hangs_ || comm.state == remote_error;
  }
  ~Kernel() override { --comm_.tasks; }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  void add(Flow flow) { flows_.push_back(flow); }
  bool is_over() override {
    if (comm_.is_aborted) return true;
    if (hangs_) return false;
    bool is_left = false;
    for (Flow& each : flows_) {
      // One after the other between two ranks, as the boxes know no others.
      const auto is_same = [&](const Flow& before) {
        return before.peer == each.peer && before.is_sent == each.is_sent &&
               before.done < before.bytes;
      };
      const auto end = flows_.begin() + (&each - flows_.data());
      if (each.done < each.bytes && std::find_if(flows_.begin(), end, is_same) == end) move(each);
      is_left = is_left || each.done < each.bytes;
    }
    if (is_left) return false;
    finish();
    return true;
  }

 protected:
  virtual void finish() {}
  Comm& comm_;

 private:
  void move(Flow& flow) {
    const auto us = static_cast<std::size_t>(comm_.rank);
    const auto them = static_cast<std::size_t>(flow.peer);
    Box& box = flow.is_sent ? comm_.shared->boxes[us][them] : comm_.shared->boxes[them][us];
    while (flow.done < flow.bytes) {
      const std::uint64_t written = box.written.load(std::memory_order_acquire);
      const std::uint64_t read = box.read.load(std::memory_order_acquire);
      const std::size_t at = (flow.is_sent ? written : read) % box_bytes;
      std::size_t chunk = flow.is_sent ? box_bytes - (written - read) : written - read;
      chunk = std::min({chunk, box_bytes - at, flow.bytes - flow.done});
      if (chunk == 0) return;
      if (flow.is_sent) {
        std::memcpy(&box.bytes[at], flow.memory + flow.done, chunk);
        box.written.store(written + chunk, std::memory_order_release);
      } else {
        std::memcpy(flow.memory + flow.done, &box.bytes[at], chunk);
        box.read.store(read + chunk, std::memory_order_release);
      }
      flow.done += chunk;
    }
  }

  std::vector<Flow> flows_;
  bool hangs_ = false;
};

/// What each rank has goes to all; those that want it reduce it in the order of ranks.
class Reduction final : public Kernel {
 public:
  struct What {
    const std::byte* in = nullptr;
    std::size_t count = 0;
    std::byte* out = nullptr;  // null: it is not for this rank
    std::size_t out_first = 0;
    std::size_t out_count = 0;
    Type type = uint8;
    Op op = sum;
    int root = -1;  // alone gets all
  };
  Reduction(Comm& comm, const What& what) : Kernel(comm), what_(what) {
    const std::size_t bytes = what.count * size_of_type(what.type);
    ours_.resize(bytes);
    const auto made = comm.factors.find(what.op);
    if (made != comm.factors.end()) factor_ = made->second;
    theirs_.resize(what.out == nullptr ? 0 : static_cast<std::size_t>(comm.size));
  }
  bool is_over() override {
    if (!is_prepared_) prepare();
    return Kernel::is_over();
  }

 private:
  /// Once it is its turn: then `in` has what comes before in the stream.
  void prepare() {
    is_prepared_ = true;
    std::copy(what_.in, what_.in + ours_.size(), ours_.begin());
    for (int peer = 0; peer < comm_.size; ++peer) {
      if (peer == comm_.rank) continue;
      if (what_.root < 0 || what_.root == peer) add({peer, true, ours_.data(), ours_.size()});
      if (what_.out == nullptr) continue;
      auto& theirs = theirs_[static_cast<std::size_t>(peer)];
      theirs.resize(ours_.size());
      add({peer, false, theirs.data(), theirs.size()});
    }
  }
  void finish() override {
    if (what_.out == nullptr) return;
    theirs_[static_cast<std::size_t>(comm_.rank)] = ours_;
    const std::size_t each = size_of_type(what_.type);
    for (std::size_t i = 0; i < what_.out_count; ++i) {
      const std::size_t at = (what_.out_first + i) * each;
      double value = load(&theirs_[0][at], what_.type) * factor_;
      for (std::size_t rank = 1; rank < theirs_.size(); ++rank) {
        value = combine(value, load(&theirs_[rank][at], what_.type) * factor_, what_.op);
      }
      if (what_.op == avg) value /= comm_.size;
      store(what_.out + i * each, what_.type, value);
    }
  }

  What what_;
  double factor_ = 1;
  bool is_prepared_ = false;
  std::vector<std::byte> ours_;
  std::vector<std::vector<std::byte>> theirs_;
};

/// Bytes between ranks; those to oneself are copied.
class Moves final : public Kernel {
 public:
  using Kernel::Kernel;
  void send(const void* from, std::size_t bytes, int peer) {
    std::byte* const memory = fake::as_device(from);
    if (peer == comm_.rank) {
      own_sent_.push_back({peer, true, memory, bytes});
    } else {
      add({peer, true, memory, bytes});
    }
  }
  void receive(void* to, std::size_t bytes, int peer) {
    std::byte* const memory = fake::as_device(to);
    if (peer == comm_.rank) {
      own_received_.push_back({peer, false, memory, bytes});
    } else {
      add({peer, false, memory, bytes});
    }
  }

 private:
  void finish() override {
    for (std::size_t i = 0; i < std::min(own_sent_.size(), own_received_.size()); ++i) {
      std::memmove(own_received_[i].memory, own_sent_[i].memory, own_sent_[i].bytes);
    }
  }
  std::vector<Flow> own_sent_;
  std::vector<Flow> own_received_;
};

/// The calls between ncclGroupStart and ncclGroupEnd of a thread, which are one for the streams.
struct Pending {
  int depth = 0;
  Moves* moves = nullptr;
  StreamHandle stream = nullptr;
  Comm* comm = nullptr;
  std::vector<std::pair<StreamHandle, Kernel*>> kernels;
};
thread_local Pending pending;

Outcome outcome_of(Comm& comm) {
  if (comm.is_aborted) return invalid_usage;
  if (wish("slow").empty()) return success;
  comm.busy = 5;
  return in_progress;
}

Outcome launch(Comm& comm, Kernel* kernel, StreamHandle stream) {
  if (comm.busy > 0) {
    delete kernel;
    return invalid_usage;  // the last call was not waited for
  }
  if (pending.depth > 0) {
    pending.kernels.emplace_back(stream, kernel);
    pending.comm = &comm;
    return success;
  }
  fake::enqueue(stream, kernel);
  return outcome_of(comm);
}

template <class Add>
Outcome move(Comm& comm, StreamHandle stream, Add&& add) {
  note("p2p", &comm);
  if (pending.depth == 0) {
    auto* const moves = new Moves(comm);
    add(*moves);
    return launch(comm, moves, stream);
  }
  if (comm.busy > 0) return invalid_usage;
  if (pending.moves == nullptr) {
    pending.moves = new Moves(comm);
    pending.stream = stream;
    pending.comm = &comm;
  }
  add(*pending.moves);
  return success;
}

Outcome reduce(Comm& comm, StreamHandle stream, const Reduction::What& what) {
  return launch(comm, new Reduction(comm, what), stream);
}

bool is_sane(const Config& config) {
  return config.magic == 0xcafebeef && config.size >= sizeof(Config) &&
         config.version >= static_cast<unsigned>(oldest);
}

std::mutex& names_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace
}  // namespace hocket::nccl

using namespace hocket::nccl;
namespace fake = hocket::fake;

EXPORTED Outcome ncclGetVersion(int* version) {
  const int wished = number(wish("version"));
  *version = wished > 0 ? wished : FAKE_NCCL_VERSION;
  return success;
}

EXPORTED const char* ncclGetErrorString(Outcome outcome) {
  switch (outcome) {
    case success:
      return "no error";
    case remote_error:
      return "remote process exited or there was a network error";
    case in_progress:
      return "operation in progress";
    case invalid_usage:
      return "invalid usage";
    default:
      return "error";
  }
}

EXPORTED const char* ncclGetLastError(Handle) { return "the fake's last error"; }

EXPORTED Outcome ncclGetUniqueId(UniqueId* id) {
  static int made = 0;
  const std::lock_guard lock(names_mutex());
  note("ncclGetUniqueId", nullptr);
  std::snprintf(id->bytes.data(), id->bytes.size(), "/fake_nccl.%d.%d", static_cast<int>(getpid()),
                ++made);
  return success;
}

EXPORTED Outcome ncclCommInitRankConfig(Handle* comm, int size, UniqueId id, int rank,
                                        Config* config) {
  if (!is_sane(*config) || size > static_cast<int>(ranks_max)) return invalid_argument;
  auto* const made = new Comm;
  made->name = id.bytes.data();
  made->rank = rank;
  made->size = size;
  made->shared = map_shared(made->name);
  if (made->shared == nullptr) return system_error;
  note("ncclCommInitRankConfig", made);
  *comm = made;
  made->state = in_progress;
  if (config->blocking != 0) {
    arrive(*made);
    return made->state;
  }
  made->starters.emplace_back([made] { arrive(*made); });
  return in_progress;
}

EXPORTED Outcome ncclCommSplit(Handle comm, int color, int key, Handle* part, Config*) {
  note("ncclCommSplit", comm);
  if (comm->tasks > 0) return invalid_usage;
  const int number = ++comm->splits;
  // This fake waits for all ranks here, in a thread of its own as the real one does.
  comm->state = in_progress;
  comm->starters.emplace_back([=] {
    Shared& shared = *comm->shared;
    const auto us = static_cast<std::size_t>(comm->rank);
    shared.keys[us] = key;
    shared.colors[us] = (std::int64_t{number} << 32) + color + 1;
    ++shared.splits;
    const auto all = static_cast<std::uint32_t>(comm->size * number);
    while (shared.splits < all) {
      if (comm->is_aborted) return;
      rest();
    }
    std::vector<int> members;
    for (int i = 0; i < comm->size; ++i) {
      const auto said = shared.colors[static_cast<std::size_t>(i)].load() & 0xffffffff;
      if (said == color + 1) members.push_back(i);
    }
    ++shared.reads;
    while (shared.reads < all) {
      if (comm->is_aborted) return;
      rest();
    }
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return shared.keys[static_cast<std::size_t>(a)] < shared.keys[static_cast<std::size_t>(b)];
    });
    if (color >= 0) {
      auto* const made = new Comm;
      made->name = comm->name + "." + std::to_string(number) + "." + std::to_string(color);
      made->rank =
          static_cast<int>(std::find(members.begin(), members.end(), comm->rank) - members.begin());
      made->size = static_cast<int>(members.size());
      made->shared = map_shared(made->name);
      made->state = in_progress;
      made->starters.emplace_back([made] { arrive(*made); });
      std::atomic_ref(*part).store(made);
    }
    comm->state = success;
  });
  return in_progress;
}

EXPORTED Outcome ncclCommFinalize(Handle comm) {
  note("ncclCommFinalize", comm);
  return outcome_of(*comm);
}

namespace {

void end(Handle comm) {
  comm->is_aborted = true;
  for (std::thread& each : comm->starters) each.join();
  ::shm_unlink(comm->name.c_str());
  while (comm->tasks > 0) rest();  // also for what they are behind in their streams
  ::munmap(comm->shared, sizeof(Shared));
  delete comm;
}

}  // namespace

EXPORTED Outcome ncclCommDestroy(Handle comm) {
  note("ncclCommDestroy", comm);
  check_uses(*comm);
  end(comm);
  return success;
}

EXPORTED Outcome ncclCommAbort(Handle comm) {
  note("ncclCommAbort", comm);
  end(comm);
  return success;
}

EXPORTED Outcome ncclCommGetAsyncError(Handle comm, Outcome* outcome) {
  if (comm->busy > 0 && comm->busy-- > 1) {
    *outcome = in_progress;
    return success;
  }
  *outcome = comm->state;
  return success;
}

EXPORTED Outcome ncclGroupStart() {
  ++pending.depth;
  return success;
}

EXPORTED Outcome ncclGroupEnd() {
  if (pending.depth == 0) return invalid_usage;
  if (--pending.depth > 0) return success;
  Comm* const comm = pending.comm;
  if (pending.moves != nullptr) fake::enqueue(pending.stream, pending.moves);
  for (const auto& [stream, kernel] : pending.kernels) fake::enqueue(stream, kernel);
  pending = {};
  return comm == nullptr ? success : outcome_of(*comm);
}

EXPORTED Outcome ncclAllReduce(const void* in, void* out, std::size_t count, Type type, Op op,
                               Handle comm, StreamHandle stream) {
  note("ncclAllReduce", comm);
  note_use(*comm, in, out);
  return reduce(*comm, stream,
                {fake::as_device(in), count, fake::as_device(out), 0, count, type, op});
}

EXPORTED Outcome ncclReduce(const void* in, void* out, std::size_t count, Type type, Op op,
                            int root, Handle comm, StreamHandle stream) {
  note("ncclReduce", comm);
  std::byte* const to = comm->rank == root ? fake::as_device(out) : nullptr;
  return reduce(*comm, stream, {fake::as_device(in), count, to, 0, count, type, op, root});
}

EXPORTED Outcome ncclReduceScatter(const void* in, void* out, std::size_t count, Type type, Op op,
                                   Handle comm, StreamHandle stream) {
  note("ncclReduceScatter", comm);
  note_use(*comm, in, out);
  const auto size = static_cast<std::size_t>(comm->size);
  return reduce(*comm, stream,
                {fake::as_device(in), count * size, fake::as_device(out),
                 static_cast<std::size_t>(comm->rank) * count, count, type, op});
}

EXPORTED Outcome ncclBroadcast(const void* in, void* out, std::size_t count, Type type, int root,
                               Handle comm, StreamHandle stream) {
  note("ncclBroadcast", comm);
  note_use(*comm, in, out);
  auto* const kernel = new Moves(*comm);
  const std::size_t bytes = count * size_of_type(type);
  for (int peer = 0; comm->rank == root && peer < comm->size; ++peer) {
    kernel->send(in, bytes, peer);
  }
  kernel->receive(out, bytes, root);
  return launch(*comm, kernel, stream);
}

EXPORTED Outcome ncclAllGather(const void* in, void* out, std::size_t count, Type type, Handle comm,
                               StreamHandle stream) {
  note("ncclAllGather", comm);
  note_use(*comm, in, out);
  auto* const kernel = new Moves(*comm);
  const std::size_t bytes = count * size_of_type(type);
  for (int peer = 0; peer < comm->size; ++peer) {
    kernel->send(in, bytes, peer);
    kernel->receive(static_cast<std::byte*>(out) + static_cast<std::size_t>(peer) * bytes, bytes,
                    peer);
  }
  return launch(*comm, kernel, stream);
}

EXPORTED Outcome ncclSend(const void* in, std::size_t count, Type type, int peer, Handle comm,
                          StreamHandle stream) {
  return move(*comm, stream,
              [&](Moves& moves) { moves.send(in, count * size_of_type(type), peer); });
}

EXPORTED Outcome ncclRecv(void* out, std::size_t count, Type type, int peer, Handle comm,
                          StreamHandle stream) {
  return move(*comm, stream,
              [&](Moves& moves) { moves.receive(out, count * size_of_type(type), peer); });
}

EXPORTED Outcome ncclRedOpCreatePreMulSum(Op* op, void* scalar, Type type, Residence, Handle comm) {
  note("ncclRedOpCreatePreMulSum", comm);
  const int made = 5 + static_cast<int>(comm->factors.size());
  comm->factors[made] = load(static_cast<std::byte*>(scalar), type);
  *op = static_cast<Op>(made);
  return success;
}

EXPORTED Outcome ncclRedOpDestroy(Op, Handle comm) {
  note("ncclRedOpDestroy", comm);
  return success;
}

#if FAKE_NCCL_VERSION >= 21900
EXPORTED Outcome ncclCommRegister(Handle comm, void* memory, std::size_t bytes, void** handle) {
  note("ncclCommRegister", comm);
  *handle = reinterpret_cast<void*>(++comm->handles);
  comm->registered[comm->handles] = {static_cast<std::byte*>(memory), bytes};
  return success;
}

EXPORTED Outcome ncclCommDeregister(Handle comm, void* handle) {
  note("ncclCommDeregister", comm);
  if (comm->tasks > 0) complain("memory is deregistered while kernels run", *comm);
  return comm->registered.erase(reinterpret_cast<std::uintptr_t>(handle)) == 1 ? success
                                                                               : invalid_argument;
}
#endif

#if FAKE_NCCL_VERSION >= 22800
EXPORTED Outcome ncclAlltoAll(const void* in, void* out, std::size_t count, Type type, Handle comm,
                              StreamHandle stream) {
  note("ncclAlltoAll", comm);
  note_use(*comm, in, out);
  auto* const kernel = new Moves(*comm);
  const std::size_t bytes = count * size_of_type(type);
  for (int peer = 0; peer < comm->size; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * bytes;
    kernel->send(static_cast<const std::byte*>(in) + at, bytes, peer);
    kernel->receive(static_cast<std::byte*>(out) + at, bytes, peer);
  }
  return launch(*comm, kernel, stream);
}

EXPORTED Outcome ncclGather(const void* in, void* out, std::size_t count, Type type, int root,
                            Handle comm, StreamHandle stream) {
  note("ncclGather", comm);
  auto* const kernel = new Moves(*comm);
  const std::size_t bytes = count * size_of_type(type);
  kernel->send(in, bytes, root);
  for (int peer = 0; comm->rank == root && peer < comm->size; ++peer) {
    kernel->receive(static_cast<std::byte*>(out) + static_cast<std::size_t>(peer) * bytes, bytes,
                    peer);
  }
  return launch(*comm, kernel, stream);
}

EXPORTED Outcome ncclScatter(const void* in, void* out, std::size_t count, Type type, int root,
                             Handle comm, StreamHandle stream) {
  note("ncclScatter", comm);
  auto* const kernel = new Moves(*comm);
  const std::size_t bytes = count * size_of_type(type);
  for (int peer = 0; comm->rank == root && peer < comm->size; ++peer) {
    kernel->send(static_cast<const std::byte*>(in) + static_cast<std::size_t>(peer) * bytes, bytes,
                 peer);
  }
  kernel->receive(out, bytes, root);
  return launch(*comm, kernel, stream);
}
#endif
