// PyTorch's process groups over Hocket. One source for torch 1.13 and all of 2.x.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>

#include "version.hpp"
#if HOCKET_TORCH_FROM(2, 0)
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include "device.hpp"
#include "errors.hpp"
#include "joint_work.hpp"
#include "sends.hpp"
#include "store.hpp"
#include "tensors.hpp"
#include "time.hpp"
#include "work.hpp"

namespace hocket_torch {
namespace {

using std::chrono::milliseconds;
using Comm = std::shared_ptr<hocket_comm>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<std::vector<at::Tensor>>;

#if HOCKET_TORCH_FROM(2, 0)
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

constexpr milliseconds unset{-1};

const at::Tensor& only(const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "hocket: one tensor was expected, not ", tensors.size());
  return tensors.front();
}

const Tensors& only(const TensorLists& lists, int size) {
  TORCH_CHECK_VALUE(lists.size() == 1, "hocket: one list of tensors was expected, not ",
                    lists.size());
  TORCH_CHECK_VALUE(lists.front().size() == static_cast<std::size_t>(size),
                    "hocket: one tensor for each of the ", size, " ranks was expected, not ",
                    lists.front().size());
  return lists.front();
}

std::size_t elements(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

/// A collective that is being put together: what it uses, and what is to be said of it.
struct Call {
  explicit Call(hocket_kind kind) {
    what.struct_size = sizeof what;
    what.kind = kind;
  }

  hocket_collective what = {};
  Borrowed borrowed = {};
  Tensors inputs = {};
  Tensors outputs = {};
  std::vector<hocket_piece> in_pieces = {};
  std::vector<hocket_piece> out_pieces = {};
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_from = {};

  void move(const at::Tensor& like) { what.dtype = dtype_to_move(like); }
  /// After the outputs, which it may only overlap if `is_in_place`.
  void add_input(const at::Tensor& tensor, bool is_in_place = false) {
    what.in = borrowed.input(is_in_place ? tensor : apart(tensor)).data_ptr();
    inputs.push_back(tensor);
  }
  void add_output(const at::Tensor& tensor) {
    what.out = borrowed.output(tensor).data_ptr();
    outputs.push_back(tensor);
  }
  /// Memory of a device has to be in one piece.
  void add_inputs(const Tensors& tensors) {
    inputs = tensors;
    for (const at::Tensor& each : tensors) check_type(each, tensors.front());
    if (!tensors.front().is_cpu()) {
      what.in = borrowed.joined_inputs(tensors).data_ptr();
      return;
    }
    for (const at::Tensor& each : tensors) {
      const at::Tensor& memory = borrowed.input(apart(each));
      in_pieces.push_back({memory.data_ptr(), elements(memory)});
    }
  }
  void add_outputs(const Tensors& tensors) {
    outputs = tensors;
    for (const at::Tensor& each : tensors) check_type(each, tensors.front());
    if (!tensors.front().is_cpu()) {
      what.out = borrowed.joined_outputs(tensors).data_ptr();
      return;
    }
    for (const at::Tensor& each : tensors) {
      const at::Tensor& memory = borrowed.output(each);
      out_pieces.push_back({memory.data_ptr(), elements(memory)});
    }
  }
  void add_in_place(const at::Tensor& tensor) {
    what.out = borrowed.both(tensor).data_ptr();
    what.in = what.out;
    what.count = elements(tensor);
    inputs.push_back(tensor);
    outputs.push_back(tensor);
  }
  /// The parts of the ranks have the sizes of these.
  void count_each(const Tensors& tensors) {
    for (const at::Tensor& each : tensors) counts.push_back(elements(each));
  }
  /// As the C ABI wants it. Stays valid while this does.
  const hocket_collective& ready() {
    if (borrowed.is_on_device()) {
      what.memory = HOCKET_MEMORY_DEVICE;
      what.has_stream = 1;
      what.stream = native(current_stream(borrowed.place));
    }
    what.in_pieces = in_pieces.data();
    what.in_piece_count = in_pieces.size();
    what.out_pieces = out_pieces.data();
    what.out_piece_count = out_pieces.size();
    const auto is_first = [&](std::size_t each) { return each == counts.front(); };
    // All ranks must do the same, and of all_to_all each knows only its own counts.
    const bool is_even = counts_from.empty() && std::all_of(counts.begin(), counts.end(), is_first);
    if (counts.empty()) return what;
    if (is_even) {
      what.count = counts.front();
    } else {
      what.counts = counts.data();
      what.counts_from = counts_from.empty() ? nullptr : counts_from.data();
    }
    return what;
  }

  [[nodiscard]] at::Tensor apart(const at::Tensor& tensor) const {
    const auto shares = [&](const at::Tensor& output) { return output.is_alias_of(tensor); };
    return std::any_of(outputs.begin(), outputs.end(), shares) ? tensor.clone() : tensor;
  }

  static void check_type(const at::Tensor& tensor, const at::Tensor& like) {
    TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type(), "hocket: ", tensor.scalar_type(),
                     " and ", like.scalar_type(), " in one operation");
  }
};

/// Elements in each part of a tensor that is cut along its first dimension.
std::vector<std::size_t> parts_of(const at::Tensor& tensor, const std::vector<std::int64_t>& sizes,
                                  int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (sizes.empty()) {
    TORCH_CHECK_VALUE(rows % ranks == 0, "hocket: ", rows, " rows can't be divided among ", ranks,
                      " ranks");
    return std::vector<std::size_t>(count, elements(tensor) / count);
  }
  const bool are_sizes =
      std::all_of(sizes.begin(), sizes.end(), [](std::int64_t each) { return each >= 0; });
  TORCH_CHECK_VALUE(are_sizes, "hocket: a part can't have less than 0 rows");
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  TORCH_CHECK_VALUE(sizes.size() == count && sum == rows, "hocket: ", sizes.size(), " parts of ",
                    sum, " rows for ", ranks, " ranks and ", rows, " rows");
  const std::size_t row = rows == 0 ? 0 : elements(tensor) / static_cast<std::size_t>(rows);
  std::vector<std::size_t> parts;
  for (const std::int64_t each : sizes) parts.push_back(static_cast<std::size_t>(each) * row);
  return parts;
}

Comm take(hocket_comm* comm) { return Comm(comm, hocket_comm_free); }

/// Makes a group of these ranks of `whole`. Each of them has to call it.
Comm part_of(const Comm& whole, const std::vector<std::int32_t>& ranks, std::int64_t timeout_ns) {
  hocket_comm* comm = nullptr;
  check(hocket_comm_group(whole.get(), ranks.data(), ranks.size(), "torch", timeout_ns, &comm));
  return take(comm);
}

class Backend final : public Base {
 public:
  Backend(Comm comm, int rank, int size, milliseconds timeout, std::shared_ptr<Sends> sends)
      : Base(rank, size), comm_(std::move(comm)), timeout_(timeout), sends_(std::move(sends)) {}

  const std::string getBackendName() const override { return "hocket"; }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    Call call(HOCKET_KIND_BROADCAST);
    call.move(only(tensors));
    call.add_in_place(only(tensors));
    call.what.root = static_cast<std::int32_t>(options.rootRank);
    return start(call, c10d::OpType::BROADCAST, "hocket:broadcast", options.timeout);
  }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    if (only(tensors).is_sparse()) return reduce_sparse(only(tensors), options);
    Call call = reduced(only(tensors), options.reduceOp);
    return start(call, c10d::OpType::ALLREDUCE, "hocket:all_reduce", options.timeout);
  }

  WorkPointer allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override {
    std::vector<Call> calls;
    for (const at::Tensor& each : tensors) calls.push_back(reduced(each, options.reduceOp));
    return start(calls, c10d::OpType::ALLREDUCE_COALESCED, "hocket:all_reduce_coalesced",
                 options.timeout);
  }

  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    Call call(HOCKET_KIND_REDUCE);
    const at::Tensor& tensor = only(tensors);
    call.what.root = static_cast<std::int32_t>(options.rootRank);
    set_reduction(call.what, options.reduceOp, tensor);
    if (getRank() == call.what.root) {
      call.add_in_place(tensor);
    } else {
      call.add_input(tensor);
      call.what.count = elements(tensor);
      call.outputs.push_back(tensor);  // of the work, as it is
    }
    return start(call, c10d::OpType::REDUCE, "hocket:reduce", options.timeout);
  }

  WorkPointer allgather(TensorLists& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    Call call = gathered(only(outputs, getSize()), only(inputs));
    return start(call, c10d::OpType::ALLGATHER, "hocket:all_gather", options.timeout);
  }

  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    Call call = gathered(output, input);
    return start(call, c10d::OpType::_ALLGATHER_BASE, "hocket:_all_gather_base", options.timeout);
  }

  /// `outputs` has a list for each rank, which has a tensor for each input.
  WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override {
    TORCH_CHECK_VALUE(outputs.size() == static_cast<std::size_t>(getSize()), "hocket: lists for ",
                      outputs.size(), " ranks of ", getSize());
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensors parts;
      for (const Tensors& of_rank : outputs) {
        TORCH_CHECK_VALUE(of_rank.size() == inputs.size(), "hocket: ", of_rank.size(),
                          " outputs of a rank, and ", inputs.size(), " inputs");
        parts.push_back(of_rank[i]);
      }
      calls.push_back(gathered(parts, inputs[i]));
    }
    return start(calls, c10d::OpType::ALLGATHER_COALESCED, "hocket:all_gather_coalesced",
                 options.timeout);
  }

#if HOCKET_TORCH_FROM(2, 1)
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override {
    check_pairs(outputs, inputs);
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      calls.push_back(gathered(outputs[i], inputs[i]));
    }
    return start(calls, c10d::OpType::COALESCED, "hocket:all_gather_into_tensor_coalesced",
                 options.timeout);
  }

  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override {
    check_pairs(outputs, inputs);
    std::vector<Call> calls;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      calls.push_back(scattered(outputs[i], inputs[i], options.reduceOp));
    }
    return start(calls, c10d::OpType::COALESCED, "hocket:reduce_scatter_tensor_coalesced",
                 options.timeout);
  }
#endif

  WorkPointer gather(TensorLists& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override {
    Call call(HOCKET_KIND_GATHER);
    const at::Tensor& input = only(inputs);
    call.move(input);
    call.what.count = elements(input);
    call.what.root = static_cast<std::int32_t>(options.rootRank);
    if (getRank() == call.what.root) {
      const Tensors& parts = only(outputs, getSize());
      check_same_size(parts, input);
      call.add_outputs(parts);
    } else {
      TORCH_CHECK_VALUE(outputs.empty(), "hocket: only the root of gather has outputs");
    }
    call.add_input(input);
    if (call.outputs.empty()) call.outputs.push_back(input);  // of the work, as it is
    return start(call, c10d::OpType::GATHER, "hocket:gather", options.timeout);
  }

  WorkPointer scatter(Tensors& outputs, TensorLists& inputs,
                      const c10d::ScatterOptions& options) override {
    Call call(HOCKET_KIND_SCATTER);
    const at::Tensor& output = only(outputs);
    call.move(output);
    call.add_output(output);
    call.what.count = elements(output);
    call.what.root = static_cast<std::int32_t>(options.rootRank);
    if (getRank() == call.what.root) {
      const Tensors& parts = only(inputs, getSize());
      check_same_size(parts, output);
      call.add_inputs(parts);
    } else {
      TORCH_CHECK_VALUE(inputs.empty(), "hocket: only the root of scatter has inputs");
    }
    return start(call, c10d::OpType::SCATTER, "hocket:scatter", options.timeout);
  }

  WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs,
                             const c10d::ReduceScatterOptions& options) override {
    const Tensors& parts = only(inputs, getSize());
    const at::Tensor& output = only(outputs);
    Call call(HOCKET_KIND_REDUCE_SCATTER);
    set_reduction(call.what, options.reduceOp, output);
    Call::check_type(parts.front(), output);
    call.add_output(output);
    call.add_inputs(parts);
    call.count_each(parts);
    check_count(elements(output), call.counts[static_cast<std::size_t>(getRank())]);
    return start(call, c10d::OpType::REDUCE_SCATTER, "hocket:reduce_scatter", options.timeout);
  }

  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    Call call = scattered(output, input, options.reduceOp);
    return start(call, c10d::OpType::_REDUCE_SCATTER_BASE, "hocket:_reduce_scatter_base",
                 options.timeout);
  }

  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<std::int64_t>& output_sizes,
                            std::vector<std::int64_t>& input_sizes,
                            const c10d::AllToAllOptions& options) override {
    Call call(HOCKET_KIND_ALL_TO_ALL);
    Call::check_type(input, output);
    call.move(input);
    call.counts = parts_of(input, input_sizes, getSize());
    call.counts_from = parts_of(output, output_sizes, getSize());
    call.add_output(output);
    call.add_input(input);
    return start(call, c10d::OpType::ALLTOALL_BASE, "hocket:all_to_all", options.timeout);
  }

  WorkPointer alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override {
    Call call(HOCKET_KIND_ALL_TO_ALL);
    const auto size = static_cast<std::size_t>(getSize());
    TORCH_CHECK_VALUE(outputs.size() == size && inputs.size() == size, "hocket: ", inputs.size(),
                      " inputs and ", outputs.size(), " outputs for ", size, " ranks");
    Call::check_type(inputs.front(), outputs.front());
    call.move(inputs.front());
    call.count_each(inputs);
    for (const at::Tensor& each : outputs) call.counts_from.push_back(elements(each));
    call.add_outputs(outputs);
    call.add_inputs(inputs);
    return start(call, c10d::OpType::ALLTOALL, "hocket:all_to_all", options.timeout);
  }

  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    Call call(HOCKET_KIND_BARRIER);
    return start(call, c10d::OpType::BARRIER, "hocket:barrier", options.timeout);
  }

  void monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_all_ranks*/) override {
    check(hocket_monitored_barrier(comm_.get(), time_of(options.timeout)));
  }

  WorkPointer send(Tensors& tensors, int peer, int tag) override {
    return message(only(tensors), HOCKET_MESSAGE_SEND, peer, tag, c10d::OpType::SEND,
                   "hocket:send");
  }
  WorkPointer recv(Tensors& tensors, int peer, int tag) override {
    return message(only(tensors), HOCKET_MESSAGE_RECV, peer, tag, c10d::OpType::RECV,
                   "hocket:recv");
  }
  WorkPointer recvAnysource(Tensors& tensors, int tag) override {
    return message(only(tensors), HOCKET_MESSAGE_RECV, HOCKET_ANY_RANK, tag,
                   c10d::OpType::RECVANYSOURCE, "hocket:recvAnySource");
  }

  void setSequenceNumberForGroup() override {}  // all ranks begin with 0
  std::uint64_t getSequenceNumberForGroup() override { return begun_; }

  // The public functions below have no `override`, as older versions of torch lack them.
  /// Ends what is in flight, on all ranks.
  void abort() { hocket_comm_abort(comm_.get(), "torch.distributed aborted the process group"); }

  /// Of operations and messages that begin afterwards.
  void setTimeout(milliseconds timeout) { timeout_ = timeout; }

#if HOCKET_TORCH_FROM(2, 1)
  bool supportsCoalescing() const { return true; }
  /// What this thread begins from here to endCoalescing() is also part of one work.
  void startCoalescing() {
    const std::lock_guard lock(coalesced_mutex_);
    coalesced_[std::this_thread::get_id()].clear();
    is_coalescing_ = true;
  }
  WorkPointer endCoalescing() {
    std::vector<WorkPointer> works;
    const std::lock_guard lock(coalesced_mutex_);
    if (auto found = coalesced_.extract(std::this_thread::get_id())) {
      works = std::move(found.mapped());
    }
    is_coalescing_ = !coalesced_.empty();
    return c10::make_intrusive<JointWork>(getRank(), std::move(works));
  }

  bool supportsSplitting() const { return true; }
  c10::intrusive_ptr<Base::Options> getBackendOptions() {
    return c10::make_intrusive<Base::Options>(getBackendName(), timeout_);
  }
  /// All ranks of this group call it. Returns null on a rank that is not among `ranks`.
  c10::intrusive_ptr<Base> split(const StorePointer& /*store*/, const std::vector<int>& ranks,
                                 const c10::intrusive_ptr<Base::Options>& options) {
    const auto me = std::find(ranks.begin(), ranks.end(), getRank());
    if (me == ranks.end()) return nullptr;
    return c10::make_intrusive<Backend>(
        part_of(comm_, {ranks.begin(), ranks.end()}, nanoseconds_of(options->timeout)),
        static_cast<int>(me - ranks.begin()), static_cast<int>(ranks.size()), options->timeout,
        sends_);
  }
#endif

 private:
  [[nodiscard]] std::int64_t time_of(milliseconds given) const {
    return nanoseconds_of(given == unset ? timeout_.load() : given);
  }

  [[nodiscard]] static Call reduced(const at::Tensor& tensor, const c10d::ReduceOp& reduction) {
    Call call(HOCKET_KIND_ALL_REDUCE);
    set_reduction(call.what, reduction, tensor);
    call.add_in_place(tensor);
    return call;
  }

  [[nodiscard]] Call gathered(const at::Tensor& output, const at::Tensor& input) const {
    Call call(HOCKET_KIND_ALL_GATHER);
    Call::check_type(output, input);
    check_count(elements(output), elements(input) * static_cast<std::size_t>(getSize()));
    call.move(input);
    call.add_output(output);
    call.add_input(input, is_part_of(input, output));
    call.what.count = elements(input);
    return call;
  }
  [[nodiscard]] Call gathered(const Tensors& outputs, const at::Tensor& input) const {
    Call call(HOCKET_KIND_ALL_GATHER);
    Call::check_type(outputs.front(), input);
    call.move(input);
    call.add_outputs(outputs);
    call.add_input(input);
    call.count_each(outputs);
    check_count(elements(input), call.counts[static_cast<std::size_t>(getRank())]);
    return call;
  }
  [[nodiscard]] Call scattered(const at::Tensor& output, const at::Tensor& input,
                               const c10d::ReduceOp& reduction) const {
    Call call(HOCKET_KIND_REDUCE_SCATTER);
    Call::check_type(output, input);
    check_count(elements(input), elements(output) * static_cast<std::size_t>(getSize()));
    set_reduction(call.what, reduction, input);
    call.add_output(output);
    call.add_input(input, is_part_of(output, input));
    call.what.count = elements(output);
    return call;
  }

  /// Whether it is this rank's part of the whole, where an operation is in place.
  [[nodiscard]] bool is_part_of(const at::Tensor& part, const at::Tensor& whole) const {
    if (!part.is_contiguous() || !whole.is_contiguous()) return false;
    const auto* const first = static_cast<const std::byte*>(whole.data_ptr());
    return part.data_ptr() == first + part.nbytes() * static_cast<std::size_t>(getRank());
  }

  static void check_count(std::size_t given, std::size_t wanted) {
    TORCH_CHECK_VALUE(given == wanted, "hocket: a tensor has ", given, " elements instead of ",
                      wanted);
  }
  static void check_same_size(const Tensors& tensors, const at::Tensor& like) {
    for (const at::Tensor& each : tensors) {
      Call::check_type(each, like);
      check_count(elements(each), elements(like));
    }
  }
  static void check_pairs(const Tensors& outputs, const Tensors& inputs) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size() && !inputs.empty(),
                      "hocket: ", outputs.size(), " outputs and ", inputs.size(), " inputs");
  }

  /// Between startCoalescing() and endCoalescing(), adds it to the works of this thread.
  [[nodiscard]] WorkPointer noted(WorkPointer work) {
    if (!is_coalescing_) return work;
    const std::lock_guard lock(coalesced_mutex_);
    const auto found = coalesced_.find(std::this_thread::get_id());
    if (found != coalesced_.end()) found->second.push_back(work);
    return work;
  }

  [[nodiscard]] WorkPointer start(Call& call, c10d::OpType type, const char* title,
                                  milliseconds timeout) {
    call.what.timeout_ns = time_of(timeout);
    auto work = c10::make_intrusive<Work>(getRank(), type, title, std::move(call.inputs),
                                          std::move(call.borrowed), std::move(call.outputs));
    ++begun_;
    const OnDevice here(call.borrowed.place);
    work->begin(
        [&](hocket_work** handle) { return hocket_start(comm_.get(), &call.ready(), handle); });
    return noted(std::move(work));
  }

  /// As one operation. On a device: the last begins behind the others in the stream.
  [[nodiscard]] WorkPointer start(std::vector<Call>& calls, c10d::OpType type, const char* title,
                                  milliseconds timeout) {
    Borrowed borrowed;
    Tensors inputs;
    Tensors outputs;
    std::vector<const hocket_collective*> collectives;
    const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (Call& each : calls) {
      if (&each == &calls.front()) borrowed.place = each.borrowed.place;
      TORCH_CHECK_VALUE(borrowed.place == each.borrowed.place, "hocket: tensors on ",
                        borrowed.place, " and ", each.borrowed.place, " in one operation");
      each.what.timeout_ns = time_of(timeout);
      collectives.push_back(&each.ready());
      append(borrowed.tensors, each.borrowed.tensors);
      append(borrowed.copies, each.borrowed.copies);
      append(inputs, each.inputs);
      append(outputs, each.outputs);
    }
    const OnDevice here(borrowed.place);
    const bool is_on_device = borrowed.is_on_device();
    auto work = c10::make_intrusive<Work>(getRank(), type, title, std::move(inputs),
                                          std::move(borrowed), std::move(outputs));
    ++begun_;
    work->begin([&](hocket_work** handle) {
      if (is_on_device) {
        for (std::size_t i = 0; i + 1 < collectives.size(); ++i) {
          check(hocket_run(comm_.get(), collectives[i]));
        }
        return hocket_start(comm_.get(), collectives.back(), handle);
      }
      return hocket_start_many(comm_.get(), collectives.data(), nullptr, collectives.size(),
                               nullptr, 0, handle);
    });
    return noted(std::move(work));
  }

  [[nodiscard]] WorkPointer message(const at::Tensor& tensor, hocket_message_kind kind, int peer,
                                    int tag, c10d::OpType type, const char* title) {
    Borrowed borrowed;
    const bool is_sent = kind == HOCKET_MESSAGE_SEND;
    const at::Tensor host = tensor.cpu();  // messages are of the host
    const at::Tensor& memory = is_sent ? borrowed.input(host) : borrowed.both(host);
    if (!is_sent && !tensor.is_cpu()) borrowed.copies.emplace_back(tensor, memory);
    hocket_message message = {};
    message.struct_size = sizeof message;
    message.kind = kind;
    message.dtype = dtype_to_move(tensor);
    message.data = memory.data_ptr();
    message.count = elements(tensor);
    message.peer = peer;
    message.tag = tag;
    message.timeout_ns = time_of(unset);
    message.fails_alone = is_sent ? 0 : 1;
    auto work = c10::make_intrusive<Work>(getRank(), type, title, Tensors{tensor},
                                          std::move(borrowed), Tensors{tensor});
    const auto start = [&](hocket_work** handle) {
      return hocket_start_message(comm_.get(), &message, handle);
    };
    if (is_sent) {
      work->begin_send(sends_, start);
    } else {
      work->begin(start);
    }
    return noted(std::move(work));
  }

  /// Gathers the indices and values of all ranks, and adds them up. Waits for it.
  [[nodiscard]] WorkPointer reduce_sparse(const at::Tensor& tensor,
                                          const c10d::AllreduceOptions& options) {
    const auto reduction = static_cast<c10d::ReduceOp::RedOpType>(options.reduceOp);
    TORCH_CHECK_VALUE(reduction == c10d::ReduceOp::SUM,
                      "hocket: sparse tensors can only be summed");
    const at::NoGradGuard guard;
    const at::Tensor mine = tensor.coalesce();
    const auto size = static_cast<std::size_t>(getSize());
    at::Tensor lengths = at::empty({getSize()}, at::kLong);
    at::Tensor length = at::full({1}, mine._nnz(), at::kLong);
    _allgather_base(lengths, length, {options.timeout})->wait(milliseconds(0));
    const auto gather = [&](const at::Tensor& part) {
      TensorLists parts(1);
      for (std::size_t rank = 0; rank < size; ++rank) {
        std::vector<std::int64_t> shape = part.sizes().vec();
        shape.front() = lengths[static_cast<std::int64_t>(rank)].item<std::int64_t>();
        parts.front().push_back(at::empty(shape, part.options()));
      }
      Tensors given = {part};
      allgather(parts, given, {options.timeout})->wait(milliseconds(0));
      return at::cat(parts.front());
    };
    const at::Tensor indices = gather(mine._indices().t().contiguous()).t();
    const at::Tensor values = gather(mine._values());
    const at::Tensor sum = at::sparse_coo_tensor(indices, values, tensor.sizes()).coalesce();
    tensor.copy_(sum);
    if (!tensor.is_cpu()) current_stream(tensor.device()).synchronize();
    const auto work =
        c10::make_intrusive<Work>(getRank(), c10d::OpType::ALLREDUCE, "hocket:all_reduce",
                                  Tensors{tensor}, Borrowed{}, Tensors{tensor});
    work->end();
    return work;
  }

  const Comm comm_;
  std::atomic<milliseconds> timeout_;
  const std::shared_ptr<Sends> sends_;
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<bool> is_coalescing_ = false;
  std::mutex coalesced_mutex_;
  std::unordered_map<std::thread::id, std::vector<WorkPointer>> coalesced_;
};

/// That of the default process group, of which the other groups are parts.
std::mutex world_mutex;
std::weak_ptr<hocket_comm> world;

Comm the_world() {
  const std::lock_guard lock(world_mutex);
  return world.lock();
}

void set_world(const Comm& comm) {
  const std::lock_guard lock(world_mutex);
  world = comm;
}

Comm join(StorePointer store, int rank, int size, std::int64_t timeout_ns) {
  // Makes the file of a FileStore, for which its other functions wait.
  store->add("hocket/came", 1);
  const HocketStore meeting = StoreFunctions::make(std::move(store));
  if (meeting == nullptr) raise(HOCKET_INVALID_ARGUMENT, hocket_last_error());
  hocket_join_options options = {};
  options.struct_size = sizeof options;
  options.timeout_ns = timeout_ns;
  options.operation_timeout_ns = timeout_ns;
  options.name = "torch";
  options.store = meeting.get();
  options.rank = rank;
  options.size = size;
  hocket_comm* comm = nullptr;
  check(hocket_join(&options, &comm));
  return take(comm);
}

/// `ranks` are those of the default group, if that is Hocket's; otherwise empty.
c10::intrusive_ptr<Base> create(const StorePointer& store, int rank, int size, milliseconds timeout,
                                const std::vector<std::int64_t>& ranks, bool is_default,
                                std::shared_ptr<Sends> sends) {
  const std::int64_t timeout_ns = nanoseconds_of(timeout);
  const Comm whole = the_world();
  if (ranks.empty() || whole == nullptr) {
    Comm comm = join(store, rank, size, timeout_ns);
    if (is_default) set_world(comm);
    return c10::make_intrusive<Backend>(std::move(comm), rank, size, timeout, std::move(sends));
  }
  return c10::make_intrusive<Backend>(part_of(whole, {ranks.begin(), ranks.end()}, timeout_ns),
                                      rank, size, timeout, std::move(sends));
}

}  // namespace
}  // namespace hocket_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  namespace py = pybind11;
  using hocket_torch::Sends;
  py::class_<Sends, std::shared_ptr<Sends>>(module, "Sends", py::module_local())
      .def(py::init<>())
      .def("count", &Sends::count, py::call_guard<py::gil_scoped_release>());
  module.def("create", &hocket_torch::create, py::call_guard<py::gil_scoped_release>());
}
