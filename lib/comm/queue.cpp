#include "hocket/queue.hpp"

#include <utility>

#include "base/exception.hpp"
#include "comm/mail.hpp"
#include "comm/path.hpp"
#include "comm/reports.hpp"

namespace hocket::inline v1 {

CompletionQueue::CompletionQueue() {
  as_errors([&] {
    auto reports = comm::Reports::make();
    if (!reports.ok()) throw_error(reports.status());
    reports_ = std::move(*reports);
  });
}

CompletionQueue::~CompletionQueue() {
  if (reports_->is_inherited()) {
    abandon(reports_);
    return;
  }
  while (reports_->expects_any()) comm::let_go(reports_->take({}));
}

std::optional<Completion> CompletionQueue::next(std::optional<std::chrono::nanoseconds> timeout) {
  if (reports_->is_inherited()) throw_error(comm::Reports::inherited());
  return as_errors([&]() -> std::optional<Completion> {
    const Deadline deadline =
        timeout ? Deadline::after(monotonic_clock(), *timeout) : Deadline::never();
    comm::Operation* const operation = reports_->take(deadline);
    if (operation == nullptr) return std::nullopt;
    Completion completion = {.tag = operation->tag, .status = comm::status_of(*operation)};
    const std::optional<Message>& message = operation->message;
    if (message && message->kind == MessageKind::recv && completion.status.ok()) {
      completion.received = comm::received_of(*message, operation->received);
    }
    comm::let_go(operation);
    return completion;
  });
}

int CompletionQueue::fd() const noexcept { return reports_->fd(); }

}  // namespace hocket::inline v1
