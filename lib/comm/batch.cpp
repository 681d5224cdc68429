#include "comm/batch.hpp"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/find_device.hpp"
#include "comm/group.hpp"
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

Status Batch::check(std::span<const AnyOperation> operations) const {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationOptions& options = options_of(operations[i]);
    const auto* const collective = std::get_if<Collective>(&operations[i]);
    Status status = collective != nullptr
                        ? comm::check(*collective, group_.place())
                        : comm::check(std::get<Message>(operations[i]), group_.place());
    if (status.ok() && (options.queue != nullptr || options.on_end != nullptr)) {
      status = Status(StatusCode::invalid_argument, "one of many can't report its end by itself")
                   .with_hint("give the queue or on_end to start_many");
    }
    if (status.ok() && (options.stream || is_of_device(options.memory))) {
      status = {StatusCode::unsupported, "many as one take memory of the host only, and no stream"};
    }
    if (!status.ok()) return std::move(status).with_operation(fmt::format("start_many, {}", i));
  }
  return {};
}

Status Batch::start_part(const AnyOperation& operation, Operation& part) {
  if (const auto* const message = std::get_if<Message>(&operation)) {
    part.path = &group_.mail();
    return group_.mail().start(*message, part);
  }
  const auto& collective = std::get<Collective>(operation);
  const auto route = group_.route_of(collective);
  if (!route.ok()) return route.status();
  if (route->device >= 0) {
    return {StatusCode::unsupported, "many as one take memory of the host only, and no stream"};
  }
  part.path = &route->path;
  return route->path.start(collective, route->device, part);
}

Status Batch::start(std::span<const AnyOperation> operations, const OperationOptions& options,
                    Operation& whole) {
  if (Status status = comm::check(options); !status.ok()) return status;
  if (Status status = check(operations); !status.ok()) return status;
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
