#include "comm/path.hpp"

#include <utility>

#include "comm/group.hpp"

namespace hocket::comm {

Status Path::make_wait(Operation& /*operation*/, Stream /*stream*/) {
  return Status(StatusCode::invalid_argument,
                "wait: a stream can't wait for an operation on memory of the host")
      .with_hint("wait() waits for it");
}

Status status_of(const Operation& operation) {
  const Status& status = operation.work->status();
  return status.ok() ? Status() : operation.path->explain(operation, status);
}

void call_at_end(Operation& operation, std::function<void(const Status& status)> function) {
  auto call = operation.group->core().context()->callbacks.prepare(
      [&operation, function = std::move(function)](StatusCode) {
        struct Hold {
          Operation& operation;
          ~Hold() { let_go(&operation); }
        } const hold{operation};
        function(status_of(operation));
      });
  ++operation.holders;
  engine::EndNote& former = call->former;
  const engine::EndNote note = Callbacks::note_of(std::move(call));
  if (operation.path->call_at_end(operation, note, former)) return;
  note.function(note.context, operation.work->status().code());
}

void let_go(Operation* operation) noexcept {
  if (operation->holders.fetch_sub(1) > 1) return;
  const auto group = std::exchange(operation->group, nullptr);
  operation->path->let_go(*operation);
  group->operation_pool().give_back(std::unique_ptr<Operation>(operation));
}

PreparedCollective::PreparedCollective(std::shared_ptr<Group> group, Path& path,
                                       const Collective& collective)
    : group_(std::move(group)),
      path_(path),
      pieces_(collective.pieces.begin(), collective.pieces.end()),
      in_pieces_(collective.in_pieces.begin(), collective.in_pieces.end()),
      out_pieces_(collective.out_pieces.begin(), collective.out_pieces.end()),
      counts_(collective.counts.begin(), collective.counts.end()),
      counts_from_(collective.counts_from.begin(), collective.counts_from.end()),
      collective_(collective) {
  collective_.pieces = pieces_;
  collective_.in_pieces = in_pieces_;
  collective_.out_pieces = out_pieces_;
  collective_.counts = counts_;
  collective_.counts_from = counts_from_;
}

}  // namespace hocket::comm
