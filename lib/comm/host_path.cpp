#include "comm/host_path.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/card.hpp"
#include "comm/reports.hpp"

namespace hocket::comm {
namespace {

HostOrder order_by_host(const Context& context, const Membership& members) {
  std::vector<std::uint32_t> hosts;
  hosts.reserve(members.members().size());
  for (const std::uint32_t each : members.members()) hosts.push_back(context.hosts[each]);
  return comm::order_by_host(hosts);
}

/// Returns where the pieces begin, if each lies right behind the one before it; else null.
std::byte* in_a_row(std::span<const Piece> pieces, std::uint64_t element_bytes) noexcept {
  auto* const first = static_cast<std::byte*>(pieces.front().data);
  std::byte* next = first;
  for (const Piece& each : pieces) {
    if (each.data != next) return nullptr;
    next += each.count * element_bytes;
  }
  return first;
}

/// Whether a piece of one side overlaps the other side. True also if there are too many to compare.
bool pieces_overlap(const engine::Task& task) noexcept {
  constexpr std::size_t compared_max = 1 << 16;
  const std::uint64_t element_bytes = task.binding->element_bytes();
  const Piece in_row = {const_cast<std::byte*>(task.in), task.binding->in_bytes() / element_bytes};
  const Piece out_row = {task.out, task.binding->out_bytes() / element_bytes};
  const auto in = task.in_pieces.empty() ? std::span(&in_row, 1) : task.in_pieces;
  const auto out = task.out_pieces.empty() ? std::span(&out_row, 1) : task.out_pieces;
  if (in.size() * out.size() > compared_max) return true;
  return std::ranges::any_of(in, [&](const Piece& one) {
    return std::ranges::any_of(out, [&](const Piece& other) {
      return one.count > 0 && other.count > 0 &&
             ranges_overlap(one.data, one.count * element_bytes, other.data,
                            other.count * element_bytes);
    });
  });
}

/// Gives the task the collective's pieces. Pieces that lie in a row become its buffer, unless that
/// would overlap the other side.
void take_pieces(const Collective& collective, engine::Task& task) noexcept {
  const bool is_in_place = !collective.pieces.empty();
  const std::uint64_t element_bytes = size_of(collective.type);
  const std::uint64_t in_bytes = task.binding->in_bytes();
  const std::uint64_t out_bytes = task.binding->out_bytes();
  if (in_bytes > 0) task.in_pieces = is_in_place ? collective.pieces : collective.in_pieces;
  if (out_bytes > 0) task.out_pieces = is_in_place ? collective.pieces : collective.out_pieces;
  task.has_pieces_in_place = is_in_place && !task.in_pieces.empty() && !task.out_pieces.empty();
  if (!task.out_pieces.empty()) {
    if (auto* const row = in_a_row(task.out_pieces, element_bytes)) {
      task.out = row;
      task.out_pieces = {};
    }
  }
  const std::byte* const row =
      task.in_pieces.empty() ? nullptr : in_a_row(task.in_pieces, element_bytes);
  const bool may_be = task.has_pieces_in_place || task.out == nullptr ||
                      !ranges_overlap(row, in_bytes, task.out, out_bytes);
  if (row != nullptr && may_be) {
    task.in = row;
    task.in_pieces = {};
    task.has_pieces_in_place = false;
  }
  const bool has_pieces = !task.in_pieces.empty() || !task.out_pieces.empty();
  task.pieces_are_apart = has_pieces && (task.has_pieces_in_place || !pieces_overlap(task));
}

/// Copies the lists into the operation, whose memory is used again and again.
void keep_pieces(engine::Task& task, Operation& operation) {
  operation.in_pieces.assign(task.in_pieces.begin(), task.in_pieces.end());
  task.in_pieces = operation.in_pieces;
  if (task.has_pieces_in_place) {
    task.out_pieces = task.in_pieces;
  } else {
    operation.out_pieces.assign(task.out_pieces.begin(), task.out_pieces.end());
    task.out_pieces = operation.out_pieces;
  }
}

/// Registers the buffers for as long as it lives.
class PreparedOnHost final : public PreparedCollective {
 public:
  PreparedOnHost(HostPath& path, GroupCore& core, std::shared_ptr<Group> group,
                 const Collective& collective)
      : PreparedCollective(std::move(group), path, collective),
        path_(path),
        engine_(core.engine()) {}
  PreparedOnHost(const PreparedOnHost&) = delete;
  PreparedOnHost& operator=(const PreparedOnHost&) = delete;
  ~PreparedOnHost() override {
    for (const RegisteredMemory& each : memory_) engine_.deregister_memory(each);
  }

  [[nodiscard]] Status set_up(const Position& position) {
    if (Status status = path_.prepare(collective(), call_); !status.ok()) return status;
    memory_ = lasting_memory(collective(), position);
    for (const RegisteredMemory& each : memory_) engine_.register_memory(each);
    return {};
  }
  [[nodiscard]] Status run() override { return path_.run(collective(), call_); }
  [[nodiscard]] Status start(Operation& operation) override {
    path_.start(collective(), call_, operation);
    return {};
  }

 private:
  HostPath& path_;
  engine::Engine& engine_;
  HostCall call_;
  std::vector<RegisteredMemory> memory_;
};

}  // namespace

HostPath::HostPath(GroupCore& core)
    : CollectivePath(core.engine()),
      core_(core),
      planner_(
          core.position(), order_by_host(*core.context(), core.members()), core.context()->selector,
          core.overlap(),
          [&core](const engine::Port& port, std::uint32_t bank) { return core.open(port, bank); }) {
}

Status HostPath::set_up(const Collective& collective, HostCall& call) {
  return core_.guarded(collective.kind, [&] { return plan(collective, call); });
}

Status HostPath::plan(const Collective& collective, HostCall& call) {
  const auto refused = [&](Status why) {
    return std::move(why).with_operation(std::string(name(collective.kind)));
  };
  const Position& position = core_.position();
  if (Status status = check(collective, position); !status.ok()) return refused(status);
  auto plan = planner_.find(collective);
  if (!plan.ok()) {
    const bool is_refusal = plan.status().code() == StatusCode::unsupported;
    return is_refusal ? refused(plan.status())
                      : core_.failure_before(name(collective.kind), plan.status());
  }
  call.plan = std::move(*plan);
  const bool is_barrier = collective.kind == CollectiveKind::barrier;
  call.task = {
      .binding = call.plan->banks.data(),
      .in = is_barrier ? &token_[0] : static_cast<const std::byte*>(collective.in),
      .out = is_barrier ? &token_[1] : static_cast<std::byte*>(collective.out),
      .tag = tag_of(collective, call.plan->tag),
      .group = &core_.group(),
  };
  if (!is_barrier) take_pieces(collective, call.task);
  if (!is_barrier && !plan::reduces(call.plan->signature.operation)) return {};
  auto reduction = is_barrier
                       ? reduce::Reduction::make({.type = DataType::u8, .op = ReduceOp::bit_or})
                       : make_reduction(collective, position.size);
  if (!reduction.ok()) return refused(reduction.status());
  call.task.reduction = *reduction;
  return {};
}

/// Gives the operation its number, its channels, its start time and its work. After this it must
/// begin, because other ranks count it too.
void HostPath::number(HostCall& call, engine::Work& work) noexcept {
  call.task.number = ++begun_;
  call.task.binding = &call.plan->banks[bank_];
  if (++bank_ == call.plan->banks.size()) bank_ = 0;
  call.task.begun = monotonic_clock().now();
  call.task.work = &work;
}

Status HostPath::prepare(const Collective& collective, HostCall& call) {
  const auto lock = core_.lock();
  return set_up(collective, call);
}

void HostPath::begin(const Collective& collective, HostCall& call, engine::Work& work) {
  number(call, work);
  call.task.deadline = core_.deadline_of(collective.options, call.task.begun);
  core_.engine().start(call.task);
}

Status HostPath::run(const Collective& collective, int /*device*/) {
  HostCall call;
  engine::Work work;
  {
    const auto lock = core_.lock();
    if (Status status = set_up(collective, call); !status.ok()) return status;
    begin(collective, call, work);
  }
  return finish(collective, call, work);
}

Status HostPath::run(const Collective& collective, HostCall& call) {
  engine::Work work;
  {
    const auto lock = core_.lock();
    begin(collective, call, work);
  }
  return finish(collective, call, work);
}

Status HostPath::finish(const Collective& collective, HostCall& call, engine::Work& work) {
  core_.engine().wait(work);
  call.task.work = nullptr;  // it ends with this call
  Callbacks::call(collective.options, work.status().code());
  return work.status().ok() ? Status() : explain(call, work.status());
}

Status HostPath::start(const Collective& collective, int /*device*/, Operation& operation) {
  HostCall call;
  const auto lock = core_.lock();
  if (Status status = set_up(collective, call); !status.ok()) return status;
  begin_in_background(collective, call, operation);
  return {};
}

void HostPath::start(const Collective& collective, const HostCall& call, Operation& operation) {
  const auto lock = core_.lock();
  begin_in_background(collective, call, operation);
}

void HostPath::begin_in_background(const Collective& collective, const HostCall& call,
                                   Operation& operation) {
  operation.call = call;
  operation.work = &operation.own_work;
  engine::Task& task = operation.call.task;
  keep_pieces(task, operation);
  operation.own_work.call_at_end(note_of(*core_.context(), &operation, collective.options));
  number(operation.call, operation.own_work);
  task.deadline = core_.deadline_of(collective.options, task.begun);
  core_.engine().start_in_background(task);
}

Status HostPath::begin(const Collective& collective, HostCall& call, engine::Work& work,
                       Deadline deadline) {
  const auto lock = core_.lock();
  if (Status status = set_up(collective, call); !status.ok()) return status;
  number(call, work);
  call.task.deadline = deadline;
  core_.engine().start(call.task);
  return {};
}

Result<std::unique_ptr<PreparedCollective>> HostPath::prepare(std::shared_ptr<Group> group,
                                                              const Collective& collective,
                                                              int /*device*/) {
  auto prepared = std::make_unique<PreparedOnHost>(*this, core_, std::move(group), collective);
  if (Status status = prepared->set_up(core_.position()); !status.ok()) return status;
  return std::unique_ptr<PreparedCollective>(std::move(prepared));
}

Status HostPath::explain(const HostCall& call, const Status& first) const noexcept {
  return core_.failure(core_.cause_of(first), [&] {
    const std::string_view kind = plan::name(call.plan->signature.operation);
    return std::pair(fmt::format("{} by {}", kind, call.plan->choice.algorithm->name),
                     fmt::format("{} #{}", kind, call.task.number));
  });
}

}  // namespace hocket::comm
