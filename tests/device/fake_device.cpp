#include "fake_device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "device/table.hpp"

namespace hocket::fake {
namespace {

// Those of MemoryKind.
constexpr std::int32_t host_kind = 1;
constexpr std::int32_t device_kind = 3;

constexpr int wrong_value = 1;
constexpr int out_of_memory = 2;
constexpr int broken = 214;
constexpr int copy_failed = 700;
constexpr int stale = 701;
constexpr int no_dma_buf = 801;

constexpr int devices = 2;

struct Allocation {
  std::size_t bytes = 0;
  std::int32_t kind = 0;
  int device = 0;
  std::byte* alias = nullptr;  // of device memory: where it may be touched
  bool is_open = false;        // may be touched where the user has it
};

struct Memories {
  std::mutex mutex;
  std::map<const std::byte*, Allocation> by_address;

  /// The allocation that a pointer is in, and where that begins.
  std::pair<const std::byte*, Allocation> find(const void* memory) {
    const std::lock_guard lock(mutex);
    const auto* const at = static_cast<const std::byte*>(memory);
    auto found = by_address.upper_bound(at);
    if (found == by_address.begin()) return {};
    --found;
    if (at >= found->first + found->second.bytes) return {};
    return {found->first, found->second};
  }
};

Memories& memories() {
  static Memories& all = *new Memories;
  return all;
}

/// What adapters have written, and the device does not see yet.
struct Unsettled {
  std::mutex mutex;
  std::vector<std::pair<const std::byte*, std::size_t>> all;

  bool has(const std::byte* from, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(all, [&](const auto& each) {
      return from < each.first + each.second && each.first < from + bytes;
    });
  }
};
Unsettled& unsettled() {
  static Unsettled& all = *new Unsettled;
  return all;
}

std::atomic<unsigned> allocated = 0;
thread_local int current_device = 0;
std::array<std::atomic<bool>, devices> begun = {};

/// Of calls that fail from some time on.
struct Fuse {
  std::atomic<unsigned> left = 0;  // until then; 0: never
  std::atomic<bool> is_blown = false;

  bool fails() {
    if (left > 0 && --left == 0) is_blown = true;
    return is_blown;
  }
};
std::array<Fuse, 3> fuses;
bool fails(Call call) { return fuses.at(static_cast<std::size_t>(call)).fails(); }

bool is_wished(std::string_view name) { return process_environment().get("FAKE_DEVICE") == name; }

class Stream;
struct Streams {
  std::mutex mutex;
  std::set<Stream*> all;
};
Streams& streams() {
  static Streams& all = *new Streams;
  return all;
}

class Stream {
 public:
  Stream() : thread_([this] { run(); }) {
    const std::lock_guard lock(streams().mutex);
    streams().all.insert(this);
  }
  ~Stream() {
    {
      const std::lock_guard lock(streams().mutex);
      streams().all.erase(this);
    }
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  void push(std::unique_ptr<Task> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      std::unique_ptr<Task> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      while (!task->is_over()) {
        if (is_ending_) return;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Task>> tasks_;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

Stream& stream_of(void* handle) {
  static Stream& default_stream = *new Stream;
  return handle == nullptr ? default_stream : *static_cast<Stream*>(handle);
}

/// What an event was recorded for last. Who waits for it waits for that record, and no later one.
struct Moment {
  std::atomic<bool> is_over = false;
  std::atomic<std::int64_t> nanoseconds = 0;
};
using Event = std::shared_ptr<Moment>;  // null: never recorded

struct Record final : Task {
  explicit Record(Event of) : moment(std::move(of)) {}
  bool is_over() override {
    moment->nanoseconds = monotonic_clock().now().time_since_epoch().count();
    moment->is_over = true;
    return true;
  }
  Event moment;
};

/// All that streams have until now is over, or was given up with its stream.
void wait_for_streams() {
  std::vector<Event> moments;
  {
    const std::lock_guard lock(streams().mutex);
    for (Stream* const each : streams().all) {
      moments.push_back(std::make_shared<Moment>());
      each->push(std::make_unique<Record>(moments.back()));
    }
  }
  for (const Event& each : moments) {
    while (!each->is_over && each.use_count() > 1) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

struct WaitForEvent final : Task {
  explicit WaitForEvent(Event of) : moment(std::move(of)) {}
  bool is_over() override { return moment == nullptr || moment->is_over; }
  Event moment;
};

struct Copy final : Task {
  bool is_over() override {
    for (std::size_t i = 0; i < rows; ++i) {
      std::memcpy(to + i * to_pitch, from + i * from_pitch, row_bytes);
    }
    return true;
  }
  std::byte* to = nullptr;
  std::size_t to_pitch = 0;
  const std::byte* from = nullptr;
  std::size_t from_pitch = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 1;
};

Event& event_of(void* handle) { return *static_cast<Event*>(handle); }

int available(char* why, std::size_t bytes) {
  if (!is_wished("none")) return 0;
  std::snprintf(why, bytes, "there is no fake driver");
  return 1;
}
void describe(char* text, std::size_t bytes) { std::snprintf(text, bytes, "1 of Fake"); }
const char* error_text(int error) {
  switch (error) {
    case copy_failed:
      return "an illegal address";
    case out_of_memory:
      return "out of memory";
    case stale:
      return "what an adapter has written is not seen yet";
    case no_dma_buf:
      return "there are no dma-bufs";
    case broken:
      return "an uncorrectable error";
    default:
      return "an invalid value";
  }
}
int get_device(int* device) {
  *device = current_device;
  return 0;
}
int set_device(int device) {
  if (device < 0 || device >= devices) return wrong_value;
  current_device = device;
  begun.at(static_cast<std::size_t>(device)) = true;
  return 0;
}
/// As if each process had one of its own.
int identify(int device, char* text, std::size_t bytes) {
  std::snprintf(text, bytes, "fake:%d:%d", static_cast<int>(getpid()), device);
  return 0;
}

int facts_of(const void* memory, device::MemoryFacts* facts) {
  if (is_wished("broken")) return broken;
  const auto [begin, allocation] = memories().find(memory);
  facts->kind = begin == nullptr ? host_kind : allocation.kind;
  facts->device = begin == nullptr ? -1 : allocation.device;
  return 0;
}

/// Device memory is mapped twice: where the user has it, nobody may touch it.
int allocate(std::int32_t kind, std::size_t bytes, void** memory) {
  if (kind == host_kind) return wrong_value;
  if (fails(Call::allocate)) return out_of_memory;
  ++allocated;
  const int file = ::memfd_create("fake device memory", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return wrong_value;
  const bool is_hidden = kind == device_kind;
  void* const seen =
      ::mmap(nullptr, bytes, is_hidden ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const alias =
      is_hidden ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : seen;
  ::close(file);
  if (seen == MAP_FAILED || alias == MAP_FAILED) return wrong_value;
  const std::lock_guard lock(memories().mutex);
  memories().by_address[static_cast<const std::byte*>(seen)] = {
      .bytes = bytes,
      .kind = kind,
      .device = current_device,
      .alias = static_cast<std::byte*>(alias)};
  *memory = seen;
  return 0;
}

/// Waits for what streams still do with memory, as CUDA does.
int release(std::int32_t /*kind*/, void* memory) {
  wait_for_streams();
  const std::lock_guard lock(memories().mutex);
  const auto found = memories().by_address.find(static_cast<std::byte*>(memory));
  if (found == memories().by_address.end()) return wrong_value;
  const Allocation it = found->second;
  if (it.alias != memory) ::munmap(it.alias, it.bytes);
  ::munmap(memory, it.bytes);
  memories().by_address.erase(found);
  return 0;
}

/// There is no dma-buf here. For those who go by the address, as drivers of devices have it, it is
/// mapped until it is copied from or to: who has its pages by then keeps them.
int share(const void* memory, std::size_t bytes, int* /*dma_buf*/) {
  const std::lock_guard lock(memories().mutex);
  const auto found = memories().by_address.find(static_cast<const std::byte*>(memory));
  if (found == memories().by_address.end() || found->second.bytes != bytes) return wrong_value;
  found->second.is_open = true;
  (void)::mprotect(const_cast<void*>(memory), bytes, PROT_READ | PROT_WRITE);
  return no_dma_buf;
}
void hide(const void* part) {
  const std::lock_guard lock(memories().mutex);
  const auto* const byte = static_cast<const std::byte*>(part);
  for (auto& [memory, allocation] : memories().by_address) {
    if (!allocation.is_open || byte < memory || byte >= memory + allocation.bytes) continue;
    allocation.is_open = false;
    (void)::mprotect(const_cast<std::byte*>(memory), allocation.bytes, PROT_NONE);
  }
}
int settle_writes() {
  const std::lock_guard lock(unsettled().mutex);
  unsettled().all.clear();
  return 0;
}

int make_stream(void** stream) {
  *stream = new Stream;
  return 0;
}
int destroy_stream(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
int make_event(int /*is_timed*/, void** event) {
  if (fails(Call::make_event)) return out_of_memory;
  *event = new Event;
  return 0;
}
int destroy_event(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
int record(void* event, void* stream) {
  event_of(event) = std::make_shared<Moment>();
  stream_of(stream).push(std::make_unique<Record>(event_of(event)));
  return 0;
}
int wait_for_event(void* stream, void* event) {
  stream_of(stream).push(std::make_unique<WaitForEvent>(event_of(event)));
  return 0;
}
int query(void* event, int* is_over) {
  const Event& it = event_of(event);
  *is_over = it == nullptr || it->is_over ? 1 : 0;
  return 0;
}
int elapsed(void* begin, void* end, float* milliseconds) {
  const std::int64_t time = event_of(end)->nanoseconds - event_of(begin)->nanoseconds;
  *milliseconds = static_cast<float>(time) * 1e-6F;
  return 0;
}

int copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
              std::size_t row_bytes, std::size_t rows, void* stream) {
  hide(to);
  hide(from);
  const std::size_t read_bytes = rows == 0 ? 0 : (rows - 1) * from_pitch + row_bytes;
  if (unsettled().has(static_cast<const std::byte*>(from), read_bytes)) return stale;
  if (fails(Call::copy)) return copy_failed;
  auto task = std::make_unique<Copy>();
  task->to = as_device(to);
  task->to_pitch = to_pitch;
  task->from = as_device(from);
  task->from_pitch = from_pitch;
  task->row_bytes = row_bytes;
  task->rows = rows;
  if (task->to == nullptr || task->from == nullptr) return wrong_value;
  if (rows > 1 && (to_pitch < row_bytes || from_pitch < row_bytes)) return wrong_value;
  stream_of(stream).push(std::move(task));
  return 0;
}
int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  return copy_rows(to, bytes, from, bytes, bytes, 1, stream);
}
constexpr device::Table table = {
    .version = device::table_version,
    .name = "fake",
    .available = available,
    .describe = describe,
    .error_text = error_text,
    .get_device = get_device,
    .set_device = set_device,
    .identify = identify,
    .facts_of = facts_of,
    .allocate = allocate,
    .release = release,
    .make_stream = make_stream,
    .destroy_stream = destroy_stream,
    .make_event = make_event,
    .destroy_event = destroy_event,
    .record = record,
    .wait_for_event = wait_for_event,
    .query = query,
    .elapsed = elapsed,
    .copy = copy,
    .copy_rows = copy_rows,
    .share = share,
    .settle_writes = settle_writes,
};

}  // namespace

std::byte* as_device(const void* memory) {
  const auto* const at = static_cast<const std::byte*>(memory);
  const auto [begin, allocation] = memories().find(memory);
  if (begin == nullptr) return const_cast<std::byte*>(at);
  return allocation.alias + (at - begin);
}

void enqueue(void* stream, Task* task) { stream_of(stream).push(std::unique_ptr<Task>(task)); }
void fail(Call call, unsigned n) {
  Fuse& fuse = fuses.at(static_cast<std::size_t>(call));
  fuse.left = n;
  fuse.is_blown = false;
}
bool has_failed(Call call) { return fuses.at(static_cast<std::size_t>(call)).is_blown; }
void adapter_writes(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(unsettled().mutex);
  unsettled().all.emplace_back(static_cast<const std::byte*>(memory), bytes);
}
unsigned allocations() { return allocated; }
bool is_begun(int device) { return begun.at(static_cast<std::size_t>(device)); }

}  // namespace hocket::fake

extern "C" FAKE_DEVICE_API const hocket::device::Table* hocket_device_v0() {
  return &hocket::fake::table;
}
