#include "comm/host_path.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/card.hpp"
#include "comm/reports.hpp"

namespace hocket::comm {
namespace {

/// How many ranks of the communicator each host has (card.hpp).
std::uint32_t ranks_per_host(const Context& context, const Membership& members) {
  std::vector<std::uint32_t> hosts;
  hosts.reserve(members.members().size());
  for (const std::uint32_t each : members.members()) hosts.push_back(context.hosts[each]);
  return comm::ranks_per_host(hosts);
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

  [[nodiscard]] Status set_up(const Place& place) {
    if (Status status = path_.set_up(collective(), call_); !status.ok()) return status;
    memory_ = lasting_memory(collective(), place);
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
      planner_(core.place(), ranks_per_host(*core.context(), core.members()),
               core.context()->selector,
               [&core](const engine::Port& port) { return core.open(port); }) {}

Status HostPath::set_up(const Collective& collective, HostCall& call) {
  return core_.guarded(collective.kind, [&] { return plan(collective, call); });
}

Status HostPath::plan(const Collective& collective, HostCall& call) {
  const auto refused = [&](Status why) {
    return std::move(why).with_operation(std::string(name(collective.kind)));
  };
  const Place& place = core_.place();
  if (Status status = check(collective, place); !status.ok()) return refused(status);
  auto plan = planner_.find(collective);
  if (!plan.ok()) return refused(core_.cause_of(plan.status()));
  call.plan = std::move(*plan);
  const bool is_barrier = collective.kind == CollectiveKind::barrier;
  call.task = {
      .binding = call.plan->binding.get(),
      .in = is_barrier ? &token_[0] : static_cast<const std::byte*>(collective.in),
      .out = is_barrier ? &token_[1] : static_cast<std::byte*>(collective.out),
      .pieces = collective.pieces,
      .tag = is_barrier ? call.plan->tag : call.plan->tag.with(collective.type),
      .group = &core_.group(),
  };
  if (!is_barrier && !plan::reduces(call.plan->signature.operation)) return {};
  auto reduction = is_barrier
                       ? reduce::Reduction::make({.type = DataType::u8, .op = ReduceOp::bit_or})
                       : make_reduction(collective, place.size);
  if (!reduction.ok()) return refused(reduction.status());
  call.task.reduction = *reduction;
  if (!is_barrier) call.task.tag = call.task.tag.with(collective.reduction.op);
  return {};
}

/// Gives the operation its number, its start time and its work.
void HostPath::number(HostCall& call, engine::Work& work) {
  call.task.number = ++begun_;
  call.task.begun = monotonic_clock().now();
  call.task.work = &work;
}

Status HostPath::run(const Collective& collective, int /*device*/) {
  HostCall call;
  if (Status status = set_up(collective, call); !status.ok()) return status;
  return run(collective, call);
}

Status HostPath::run(const Collective& collective, HostCall& call) {
  engine::Work work;
  number(call, work);
  call.task.deadline = core_.deadline_of(collective.options, call.task.begun);
  core_.engine().start(call.task);
  core_.engine().wait(work);
  call.task.work = nullptr;  // it ends with this call
  Callbacks::call(collective.options, work.status().code());
  return work.status().ok() ? Status() : explain(call, work.status());
}

Status HostPath::start(const Collective& collective, int /*device*/, Operation& operation) {
  HostCall call;
  if (Status status = set_up(collective, call); !status.ok()) return status;
  start(collective, call, operation);
  return {};
}

void HostPath::start(const Collective& collective, const HostCall& call, Operation& operation) {
  operation.pieces.assign(collective.pieces.begin(), collective.pieces.end());
  operation.call = call;
  operation.work = &operation.own_work;
  const Callbacks::Note note = note_of(*core_.context(), &operation, collective.options);
  operation.own_work.call_at_end(note.function, note.context);
  number(operation.call, operation.own_work);
  engine::Task& task = operation.call.task;
  task.deadline = core_.deadline_of(collective.options, task.begun);
  task.pieces = operation.pieces;
  core_.engine().start_in_background(task);
}

Status HostPath::begin(const Collective& collective, HostCall& call, engine::Work& work,
                       Deadline deadline) {
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
  if (Status status = prepared->set_up(core_.place()); !status.ok()) return status;
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
