// Gloo over TCP, as a peer (contest.hpp).
//
// usage: gloo RANKS OPERATION SECONDS_PER_SIZE BYTES,BYTES...
//
// It starts the ranks itself. Where RANK says which one it is, it is that: ranks meet in the
// directory GLOO_STORE, on the interface GLOO_INTERFACE (lo). GLOO_ALGORITHM is ring or bcube.
#include <filesystem>
#include <stdexcept>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "ranks.hpp"

namespace peers {
namespace {

const char* value_of(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

void add(void* sum, const void* one, const void* other, std::size_t count) {
  gloo::sum<float>(sum, one, other, count);
}

void take_larger(void* larger, const void* one, const void* other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<double*>(larger)[i] =
        std::max(static_cast<const double*>(one)[i], static_cast<const double*>(other)[i]);
  }
}

std::shared_ptr<gloo::Context> join(int rank, int size) {
  gloo::transport::tcp::attr where;
  const std::string interface = value_of("GLOO_INTERFACE", "lo");
  (interface == "lo" ? where.hostname : where.iface) = interface == "lo" ? "127.0.0.1" : interface;
  where.ai_family = AF_INET;
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(std::chrono::seconds(60));
  gloo::rendezvous::FileStore store(value_of("GLOO_STORE", "."));
  auto device = gloo::transport::tcp::CreateDevice(where);
  context->connectFullMesh(store, device);
  return context;
}

class Gloo final : public Contestant {
 public:
  Gloo(int rank, int size) : context_(join(rank, size)) {}

  [[nodiscard]] int rank() const override { return context_->rank; }
  [[nodiscard]] int size() const override { return context_->size; }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(1);
    gloo::barrier(options);
  }
  [[nodiscard]] double max(double value) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(&value, 1);
    options.setReduceFunction(take_larger);
    options.setTag(2);
    gloo::allreduce(options);
    return value;
  }

  [[nodiscard]] bool prepare(Work& work) override {
    work_ = &work;
    ++tag_;
    if (work.operation == "all_reduce") return prepare_all_reduce();
    if (work.operation == "reduce_scatter") return prepare_reduce_scatter();
    if (work.operation == "all_gather") {
      gather_ = std::make_unique<gloo::AllgatherOptions>(context_);
      gather_->setInput(work.in.data(), work.in.size());
      gather_->setOutput(work.out.data(), work.out.size());
      gather_->setTag(tag_);
      call_ = &Gloo::all_gather;
    } else if (work.operation == "broadcast") {
      if (rank() == 0) work.out = work.in;
      broadcast_ = std::make_unique<gloo::BroadcastOptions>(context_);
      broadcast_->setOutput(work.out.data(), work.out.size());
      broadcast_->setRoot(0);
      broadcast_->setTag(tag_);
      call_ = &Gloo::broadcast;
    } else if (work.operation == "barrier") {
      call_ = &Gloo::barrier;
    } else if (work.operation == "sendrecv") {
      sent_ = context_->createUnboundBuffer(work.in.data(), work.in.size() * sizeof(float));
      received_ = context_->createUnboundBuffer(work.out.data(), work.out.size() * sizeof(float));
      call_ = &Gloo::trip;
    } else {
      return false;
    }
    return true;
  }
  void call() override { (this->*call_)(); }

  void stream() override {
    if (rank() > 1) return;
    const std::size_t bytes = work_->count * sizeof(float);
    for (std::size_t i = 0; i < work_->window; ++i) {
      if (rank() == 0) sent_->send(1, tag_, 0, bytes);
      if (rank() == 1) received_->recv(0, tag_, i * bytes, bytes);
    }
    for (std::size_t i = 0; i < work_->window; ++i) {
      if (rank() == 0) sent_->waitSend();
      if (rank() == 1) received_->waitRecv();
    }
    if (rank() == 0) receive(1, sizeof(float));
    if (rank() == 1) send(0, sizeof(float));
  }

 private:
  bool prepare_all_reduce() {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    const bool is_ring = std::string(value_of("GLOO_ALGORITHM", "ring")) == "ring";
    reduce_ = std::make_unique<gloo::AllreduceOptions>(context_);
    reduce_->setInput(work_->in.data(), work_->in.size());
    reduce_->setOutput(work_->out.data(), work_->out.size());
    reduce_->setReduceFunction(add);
    reduce_->setAlgorithm(is_ring ? Algorithm::RING : Algorithm::BCUBE);
    reduce_->setTag(tag_);
    call_ = &Gloo::all_reduce;
    return true;
  }
  /// The only one there is works in place, so that what it gets has to be put there first, and on
  /// what is there already in the calls behind that.
  bool prepare_reduce_scatter() {
    const std::vector<int> parts(static_cast<std::size_t>(size()), static_cast<int>(work_->count));
    scatter_ = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
        context_, std::vector<float*>{work_->in.data()}, static_cast<int>(work_->in.size()), parts);
    call_ = &Gloo::reduce_scatter;
    return true;
  }

  void all_reduce() { gloo::allreduce(*reduce_); }
  void all_gather() { gloo::allgather(*gather_); }
  void broadcast() { gloo::broadcast(*broadcast_); }
  void reduce_scatter() {
    scatter_->run();
    if (work_->out.front() != 0) return;  // once, to be checked; sums of zeros stay zeros
    std::copy_n(work_->in.begin(), work_->out.size(), work_->out.begin());
    std::fill(work_->in.begin(), work_->in.end(), 0.0F);
  }
  void trip() {
    const std::size_t bytes = work_->count * sizeof(float);
    if (rank() == 0) send(1, bytes);
    if (rank() <= 1) receive(1 - rank(), bytes);
    if (rank() == 1) send(0, bytes);
  }
  void send(int to, std::size_t bytes) {
    sent_->send(to, tag_, 0, bytes);
    sent_->waitSend();
  }
  void receive(int from, std::size_t bytes) {
    received_->recv(from, tag_, 0, bytes);
    received_->waitRecv();
  }

  std::shared_ptr<gloo::Context> context_;
  Work* work_ = nullptr;
  std::uint32_t tag_ = 100;
  void (Gloo::*call_)() = nullptr;
  std::unique_ptr<gloo::AllreduceOptions> reduce_;
  std::unique_ptr<gloo::AllgatherOptions> gather_;
  std::unique_ptr<gloo::BroadcastOptions> broadcast_;
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> scatter_;
  std::unique_ptr<gloo::transport::UnboundBuffer> sent_;
  std::unique_ptr<gloo::transport::UnboundBuffer> received_;
};

[[noreturn]] void be_gloo(int rank, int size, int count, char** words) {
  be_rank(
      rank, [&] { return std::make_unique<Gloo>(rank, size); }, count, words);
}

int start_all(int size, int count, char** words) {
  std::string store = std::filesystem::temp_directory_path() / "gloo-XXXXXX";
  if (::mkdtemp(store.data()) == nullptr) return 1;
  ::setenv("GLOO_STORE", store.c_str(), 1);
  const int status = start_ranks(size, [&](int rank) { be_gloo(rank, size, count, words); });
  std::filesystem::remove_all(store);
  return status;
}

}  // namespace
}  // namespace peers

int main(int count, char** words) {
  const int size = peers::read_ranks(count, words);
  if (size == 0) return 2;
  const char* rank = std::getenv("RANK");
  if (rank == nullptr) return peers::start_all(size, count, words);
  peers::be_gloo(std::atoi(rank), size, count, words);
}
