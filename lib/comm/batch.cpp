#include "comm/batch.hpp"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/find_device.hpp"
#include "comm/group.hpp"
#include "comm/kinds.hpp"
#include "comm/mail.hpp"
#include "comm/reports.hpp"

namespace hocket::comm {
namespace {

const OperationOptions& options_of(const AnyOperation& operation) {
  return std::visit([](const auto& each) -> const OperationOptions& { return each.options; },
                    operation);
}

/// One part of a whole is over, or all have been started. May be called under the engine's lock.
void end_part(void* context, StatusCode /*status*/) noexcept {
  auto& whole = *static_cast<Operation*>(context);
  if (whole.parts_left.fetch_sub(1) > 1) return;
  Status failure = std::move(whole.start_failure);
  for (const auto& part : whole.parts) {
    if (failure.ok()) failure = part->work->status();
  }
  whole.own_work.finish(std::move(failure));
}

}  // namespace

Batch::Batch(Group& group) noexcept : Path(group.engine()), group_(group) {}

Status Batch::check(const AnyOperation& operation) {
  const OperationOptions& options = options_of(operation);
  if (options.queue != nullptr || options.on_end != nullptr) {
    return Status(StatusCode::invalid_argument,
                  "an operation of start_many can't have a queue or on_end of its own")
        .with_hint("give the queue to start_many");
  }
  Status device_memory(StatusCode::unsupported,
                       "start_many takes memory of the host only, and no stream");
  if (options.stream || is_of_device(options.memory)) return device_memory;
  const auto* const collective = std::get_if<Collective>(&operation);
  if (collective == nullptr) return comm::check(std::get<Message>(operation), group_.position());
  if (Status status = comm::check(*collective, group_.position()); !status.ok()) return status;
  if (plan::reduces(operation_of(collective->kind))) {
    const auto reduction = make_reduction(*collective, group_.position().size);
    if (!reduction.ok()) return reduction.status();
  }
  const auto route = group_.route_of(*collective);
  if (!route.ok()) return route.status();
  return route->device < 0 ? Status() : device_memory;
}

Status Batch::start_part(const AnyOperation& operation, Operation& part) {
  if (const auto* const message = std::get_if<Message>(&operation)) {
    part.path = &group_.mail();
    return group_.mail().start(*message, part);
  }
  part.path = &group_.host_path();
  return group_.host_path().start(std::get<Collective>(operation), -1, part);
}

Status Batch::start(std::span<const AnyOperation> operations, const OperationOptions& options,
                    Operation& whole) {
  if (Status status = comm::check(options); !status.ok()) return status;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    Status status = check(operations[i]);
    if (!status.ok()) return std::move(status).with_operation(fmt::format("start_many, {}", i));
  }
  whole.parts.clear();  // where memory ran out at its last use, some were left
  whole.parts.reserve(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    whole.parts.push_back(group_.operation_pool().take());
  }
  whole.work = &whole.own_work;
  whole.own_work.begin();
  whole.own_work.call_at_end(note_of(*group_.core().context(), &whole, options));
  whole.parts_left = static_cast<int>(operations.size()) + 1;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    Operation& part = *whole.parts[i];
    Status status =
        whole.start_failure.ok()
            ? group_.core().guarded("start_many", [&] { return start_part(operations[i], part); })
            : Status(whole.start_failure);
    if (!status.ok()) {
      if (whole.start_failure.ok()) whole.start_failure = std::move(status);
      part.work = &part.own_work;  // it is over, and went well: the failure is the whole's
      part.path = nullptr;
      end_part(&whole, StatusCode::ok);
      continue;
    }
    engine::EndNote none;
    const engine::EndNote note = {.function = end_part, .context = &whole};
    if (!part.path->call_at_end(part, note, none)) end_part(&whole, StatusCode::ok);
  }
  end_part(&whole, StatusCode::ok);
  return {};
}

Status Batch::explain(const Operation& whole, const Status& why) const noexcept {
  for (const auto& part : whole.parts) {
    if (part->path != nullptr && !part->work->status().ok()) {
      return part->path->explain(*part, part->work->status());
    }
  }
  return why;  // the first that could not begin
}

void Batch::let_go(Operation& whole) noexcept {
  for (auto& part : whole.parts) {
    if (part->path != nullptr) part->path->let_go(*part);
    group_.operation_pool().give_back(std::move(part));
  }
  whole.parts.clear();
}

}  // namespace hocket::comm
