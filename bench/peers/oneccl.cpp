// Intel's oneCCL on host memory, as a peer (contest.hpp).
//
// usage: oneccl RANKS OPERATION SECONDS_PER_SIZE BYTES,BYTES...
//
// It starts the ranks itself.
#include <cstring>
#include <stdexcept>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include <oneapi/ccl.hpp>

#include "ranks.hpp"

// What its archive expects of Intel's compiler, and of a profiler, which is not there.
extern "C" {
void* _intel_fast_memcpy(void* to, const void* from, std::size_t bytes) {
  return std::memcpy(to, from, bytes);
}
void* _intel_fast_memset(void* to, int value, std::size_t bytes) {
  return std::memset(to, value, bytes);
}
void* __itt_domain_create_ptr__3_0 = nullptr;
void* __itt_event_create_ptr__3_0 = nullptr;
void* __itt_event_end_ptr__3_0 = nullptr;
void* __itt_event_start_ptr__3_0 = nullptr;
void* __itt_metadata_add_ptr__3_0 = nullptr;
void* __itt_string_handle_create_ptr__3_0 = nullptr;
void* __itt_task_begin_ptr__3_0 = nullptr;
void* __itt_task_end_ptr__3_0 = nullptr;
void* __itt_thread_set_name_ptr__3_0 = nullptr;
}

namespace peers {
namespace {

using Address = ccl::kvs::address_type;

/// Of rank 0's store, as a pipe: what is written at once is read at once.
class Addresses {
 public:
  Addresses() {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  void write(const Address& address) {
    if (::write(ends_[1], address.data(), address.size()) < 0) throw std::runtime_error("no rank");
  }
  Address read() {
    Address address;
    if (::read(ends_[0], address.data(), address.size()) < 0) throw std::runtime_error("no rank 0");
    return address;
  }

 private:
  int ends_[2] = {};
};

/// Where there is one for each, as its waits take all of a processor.
void take_processor(int rank, int size) {
  if (size > static_cast<int>(std::thread::hardware_concurrency())) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(static_cast<std::size_t>(rank), &mine);
  ::sched_setaffinity(0, sizeof mine, &mine);
}

ccl::communicator join(int rank, int size, Addresses& addresses) {
  take_processor(rank, size);
  ::setenv("CCL_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("CCL_LOCAL_SIZE", std::to_string(size).c_str(), 1);
  ccl::init();
  if (rank > 0) return ccl::create_communicator(size, rank, ccl::create_kvs(addresses.read()));
  const auto store = ccl::create_main_kvs();
  for (int other = 1; other < size; ++other) addresses.write(store->get_address());
  return ccl::create_communicator(size, rank, store);
}

class OneCcl final : public Contestant {
 public:
  OneCcl(int rank, int size, Addresses& addresses) : world_(join(rank, size, addresses)) {}

  [[nodiscard]] int rank() const override { return world_.rank(); }
  [[nodiscard]] int size() const override { return world_.size(); }
  void barrier() override { ccl::barrier(world_).wait(); }
  [[nodiscard]] double max(double value) override {
    double all = value;
    ccl::allreduce(&value, &all, 1, ccl::reduction::max, world_).wait();
    return all;
  }

  [[nodiscard]] bool prepare(Work& work) override {
    work_ = &work;
    events_.resize(work.window);
    const ccl::string id(work.operation + std::to_string(work.count));
    keep(all_reduce_, id);
    keep(reduce_scatter_, id);
    keep(all_gather_, id);
    keep(broadcast_, id);
    call_ = find_call<OneCcl>(work.operation, {{"all_reduce", &OneCcl::all_reduce},
                                               {"reduce_scatter", &OneCcl::reduce_scatter},
                                               {"all_gather", &OneCcl::all_gather},
                                               {"broadcast", &OneCcl::broadcast},
                                               {"barrier", &OneCcl::barrier},
                                               {"sendrecv", &OneCcl::trip}});
    if (call_ == nullptr) return false;
    if (work.operation == "broadcast" && rank() == 0) work.out = work.in;
    return true;
  }
  void call() override { (this->*call_)(); }

  void stream() override {
    if (rank() > 1) return;
    float* to = out();
    for (ccl::event& each : events_) {
      if (rank() == 0) each = ccl::send(in(), work_->count, 1, world_);
      if (rank() == 1) each = ccl::recv(to, work_->count, 0, world_);
      to += work_->count;
    }
    for (ccl::event& each : events_) each.wait();
    if (rank() == 0) receive(1, 1);
    if (rank() == 1) send(0, 1);
  }

 private:
  /// Calls of one work are alike, so that their schedule is made once.
  template <typename Attributes>
  void keep(Attributes& attributes, const ccl::string& id) {
    attributes.template set<ccl::operation_attr_id::to_cache>(true);
    attributes.template set<ccl::operation_attr_id::match_id>(id);
  }

  void all_reduce() {
    ccl::allreduce(in(), out(), work_->count, ccl::reduction::sum, world_, all_reduce_).wait();
  }
  void reduce_scatter() {
    ccl::reduce_scatter(in(), out(), work_->count, ccl::reduction::sum, world_, reduce_scatter_)
        .wait();
  }
  void all_gather() { ccl::allgather(in(), out(), work_->count, world_, all_gather_).wait(); }
  void broadcast() { ccl::broadcast(out(), work_->count, 0, world_, broadcast_).wait(); }
  void trip() {
    if (rank() == 0) send(1, work_->count);
    if (rank() <= 1) receive(1 - rank(), work_->count);
    if (rank() == 1) send(0, work_->count);
  }

  void send(int to, std::size_t count) { ccl::send(in(), count, to, world_).wait(); }
  void receive(int from, std::size_t count) { ccl::recv(out(), count, from, world_).wait(); }
  [[nodiscard]] float* in() const { return work_->in.data(); }
  [[nodiscard]] float* out() const { return work_->out.data(); }

  ccl::communicator world_;
  Work* work_ = nullptr;
  Call<OneCcl> call_ = nullptr;
  ccl::allreduce_attr all_reduce_ = ccl::create_operation_attr<ccl::allreduce_attr>();
  ccl::reduce_scatter_attr reduce_scatter_ = ccl::create_operation_attr<ccl::reduce_scatter_attr>();
  ccl::allgather_attr all_gather_ = ccl::create_operation_attr<ccl::allgather_attr>();
  ccl::broadcast_attr broadcast_ = ccl::create_operation_attr<ccl::broadcast_attr>();
  std::vector<ccl::event> events_;
};

}  // namespace
}  // namespace peers

int main(int count, char** words) {
  const int size = peers::read_ranks(count, words);
  if (size == 0) return 2;
  peers::Addresses addresses;
  return peers::start_ranks(size, [&](int rank) {
    const auto join = [&] { return std::make_unique<peers::OneCcl>(rank, size, addresses); };
    peers::be_rank(rank, join, count, words);
  });
}
