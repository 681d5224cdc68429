// MPI, as a peer (contest.hpp): whichever library it is built and run with.
#include <mpi.h>

#include "contest.hpp"

namespace peers {
namespace {

class Mpi final : public Contestant {
 public:
  Mpi() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  [[nodiscard]] double max(double value) override {
    double all = value;
    MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
  }

  [[nodiscard]] bool prepare(Work& work) override {
    work_ = &work;
    count_ = static_cast<int>(work.count);
    requests_.resize(work.window);
    call_ = find_call<Mpi>(work.operation, {{"all_reduce", &Mpi::all_reduce},
                                            {"reduce_scatter", &Mpi::reduce_scatter},
                                            {"all_gather", &Mpi::all_gather},
                                            {"broadcast", &Mpi::broadcast},
                                            {"barrier", &Mpi::barrier},
                                            {"sendrecv", &Mpi::trip}});
    if (call_ == nullptr) return false;
    if (work.operation == "broadcast" && rank_ == 0) work.out = work.in;
    return true;
  }
  void call() override { (this->*call_)(); }

  void stream() override {
    if (rank_ > 1) return;
    float* to = out();
    for (MPI_Request& each : requests_) {
      if (rank_ == 0) MPI_Isend(in(), count_, MPI_FLOAT, 1, 1, MPI_COMM_WORLD, &each);
      if (rank_ == 1) MPI_Irecv(to, count_, MPI_FLOAT, 0, 1, MPI_COMM_WORLD, &each);
      to += count_;
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (rank_ == 0) receive(1, 1);
    if (rank_ == 1) send(0, 1);
  }

 private:
  void all_reduce() { MPI_Allreduce(in(), out(), count_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
  void reduce_scatter() {
    MPI_Reduce_scatter_block(in(), out(), count_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void all_gather() {
    MPI_Allgather(in(), count_, MPI_FLOAT, out(), count_, MPI_FLOAT, MPI_COMM_WORLD);
  }
  void broadcast() { MPI_Bcast(out(), count_, MPI_FLOAT, 0, MPI_COMM_WORLD); }
  void trip() {
    if (rank_ == 0) send(1, count_);
    if (rank_ <= 1) receive(1 - rank_, count_);
    if (rank_ == 1) send(0, count_);
  }

  void send(int to, int count) { MPI_Send(in(), count, MPI_FLOAT, to, 1, MPI_COMM_WORLD); }
  void receive(int from, int count) {
    MPI_Recv(out(), count, MPI_FLOAT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  [[nodiscard]] float* in() const { return work_->in.data(); }
  [[nodiscard]] float* out() const { return work_->out.data(); }

  int rank_ = 0;
  int size_ = 1;
  Work* work_ = nullptr;
  int count_ = 0;
  Call<Mpi> call_ = nullptr;
  std::vector<MPI_Request> requests_;
};

}  // namespace
}  // namespace peers

int main(int count, char** words) {
  MPI_Init(&count, &words);
  peers::Mpi mpi;
  const int status = peers::contest(mpi, count - 1, words + 1);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  return MPI_Finalize();
}
