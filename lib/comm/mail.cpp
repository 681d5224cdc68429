#include "comm/mail.hpp"

#include <utility>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/find_device.hpp"
#include "comm/reports.hpp"

namespace hocket::comm {
namespace {

std::string describe(const Message& message) {
  const std::string peer = message.peer == any_rank ? "any rank" : std::to_string(message.peer);
  const std::string tag = message.tag == any_tag ? "any tag" : fmt::format("tag {}", message.tag);
  return fmt::format("{} {} with {}", is_send(message) ? "send to" : "recv from", peer, tag);
}

}  // namespace

std::string describe(const engine::Parcel& parcel) {
  return describe(
      Message{.kind = parcel.sends ? MessageKind::send : MessageKind::recv,
              .peer = parcel.peer == engine::any_rank ? any_rank : static_cast<int>(parcel.peer),
              .tag = parcel.tag == engine::any_tag ? any_tag : static_cast<int>(parcel.tag)});
}

Status check(const Message& message, const Position& position) {
  const auto wrong = [&](std::string what) {
    return Status(StatusCode::invalid_argument, std::move(what)).with_operation(describe(message));
  };
  if (message.kind != MessageKind::send && message.kind != MessageKind::recv) {
    return wrong("unknown kind");
  }
  const std::uint64_t element_bytes = size_of(message.type);
  if (element_bytes == 0) return wrong("unknown data type");
  if (message.count > INT64_MAX / element_bytes) {
    return wrong(fmt::format("{} elements do not fit in memory", message.count));
  }
  if (message.count > 0 && message.data == nullptr) {
    return wrong(fmt::format("a null pointer for {} elements", message.count));
  }
  const bool may_be_any = !is_send(message);
  if ((message.peer != any_rank || !may_be_any) &&
      static_cast<std::uint32_t>(message.peer) >= position.size) {
    return wrong(fmt::format("rank {} is none of {} ranks", message.peer, position.size));
  }
  if (message.tag < 0 && !(message.tag == any_tag && may_be_any)) return wrong("a tag below zero");
  const OperationOptions& options = message.options;
  if (Status status = comm::check(options); !status.ok()) {
    return std::move(status).with_operation(describe(message));
  }
  if (is_of_device(options.memory)) return wrong("messages take memory of the host only");
  if (options.stream) return wrong("messages take memory of the host only, and no stream");
  if (message.fails_alone && is_send(message)) {
    return wrong("a send can't fail alone, because its receiver may have got word of it");
  }
  return {};
}

Result<engine::Parcel> Mail::parcel_of(const Message& message) {
  return core_.guarded(is_send(message) ? "send" : "recv", [&] { return make_parcel(message); });
}

Result<engine::Parcel> Mail::make_parcel(const Message& message) {
  if (Status status = check(message, core_.position()); !status.ok()) return status;
  const bool is_any = message.peer == any_rank;
  const auto peer = static_cast<std::uint32_t>(message.peer);
  for (std::uint32_t each = 0; each < core_.position().size; ++each) {
    if (!is_any && each != peer) continue;
    if (Status status = core_.open_mail(each); !status.ok()) return explain(message, status);
  }
  const Instant now = monotonic_clock().now();
  return engine::Parcel{
      .sends = is_send(message),
      .peer = is_any ? engine::any_rank : peer,
      .tag = message.tag == any_tag ? engine::any_tag : static_cast<std::uint32_t>(message.tag),
      .type = message.type,
      .memory = static_cast<std::byte*>(message.data),
      .bytes = message.count * size_of(message.type),
      .fails_alone = message.fails_alone,
      .begun = now,
      .deadline = core_.deadline_of(message.options, now)};
}

Result<Received> Mail::run(const Message& message) {
  engine::Work work;
  engine::Received received;
  {
    const auto lock = core_.lock();
    auto parcel = parcel_of(message);
    if (!parcel.ok()) return parcel.status();
    parcel->work = &work;
    parcel->received = &received;
    core_.engine().start(core_.group(), *parcel);
  }
  core_.engine().wait(work);
  Callbacks::call(message.options, work.status().code());
  if (!work.status().ok()) return explain(message, work.status());
  return received_of(message, received);
}

Status Mail::start(const Message& message, Operation& operation) {
  const auto lock = core_.lock();
  auto parcel = parcel_of(message);
  if (!parcel.ok()) return parcel.status();
  operation.work = parcel->work = &operation.own_work;
  operation.own_work.call_at_end(note_of(*core_.context(), &operation, message.options));
  operation.message = message;
  parcel->received = &operation.received;
  core_.engine().start_in_background(core_.group(), *parcel);
  return {};
}

Received received_of(const Message& message, const engine::Received& received) noexcept {
  if (is_send(message)) return {message.peer, message.tag, message.count};
  return {static_cast<int>(received.peer), static_cast<int>(received.tag),
          received.bytes / size_of(message.type)};
}

Status Mail::explain(const Message& message, const Status& first) const noexcept {
  // A rank that has left said so; of one that has died the monitor hears soon.
  const bool may_have_died =
      first.code() == StatusCode::peer_lost && first.peer() >= 0 && !engine::is_told_by_peer(first);
  if (may_have_died) {
    static_cast<void>(described([&] {
      core_.mention(static_cast<std::uint32_t>(first.peer()), describe(message));
      return Status();
    }));
  }
  const Status why = core_.cause_of(first, may_have_died);
  return core_
      .failure(why,
               [&] {
                 std::string text = describe(message);
                 return std::pair(text, text);
               })
      .with_step(-1);  // that of the cause is of another operation
}

}  // namespace hocket::comm
