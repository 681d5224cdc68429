#include "engine/run.hpp"

#include <algorithm>
#include <cstring>

#include "engine/group.hpp"

namespace hocket::engine {
namespace {

using plan::StepKind;

/// Calls work(from, to, done, bytes) for bytes of a step that lie in a row at both ends.
template <class Work>
void for_each_row(const Extent& extent, std::uint64_t begin, std::uint64_t bytes, Work work) {
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = begin + done;
    const std::uint64_t row = extent.to.in_a_row(at, extent.from.in_a_row(at, bytes - done));
    work(extent.from.at(at), extent.to.at(at), done, row);
    done += row;
  }
}

/// Calls work(piece, where it is gathered, bytes) for all of a task that are not empty.
template <class Work>
void for_each_piece(std::span<const Piece> pieces, std::uint64_t element_bytes, std::byte* gathered,
                    const Work& work) {
  for (const Piece& each : pieces) {
    const std::size_t bytes = each.count * element_bytes;
    if (bytes > 0) work(static_cast<std::byte*>(each.data), gathered, bytes);
    gathered += bytes;
  }
}

/// Memory for so many bytes, which is never null.
std::byte* room_in(std::vector<std::byte>& memory, std::uint64_t bytes) {
  if (memory.size() < bytes || memory.empty()) memory.resize(std::max<std::uint64_t>(bytes, 1));
  return memory.data();
}

}  // namespace

void Run::begin(const Task& new_task, std::uint64_t segment_most) {
  task = new_task;
  failed_step = -1;  // first, as memory may run out below
  tag = task.tag.after(task.group->history);
  task.group->history.add(task.tag);
  index = task.group->calls.add(tag);
  has_arrived = false;
  looked_at = UINT64_MAX;
  next_look = {};
  const Binding& binding = *task.binding;
  code = binding.code();
  followers_ = binding.program().followers().data();
  segment_bytes = segment_most;
  if (binding.step_bytes_max() + HOCKET_BYTES_MAX > segment_most) {  // else nothing is cut
    segment_bytes -= segment_most % binding.element_bytes();
  }
  cuts_through = binding.step_bytes_max() > segment_bytes;
  const auto waits_at_first = binding.program().waits(cuts_through);
  waits.assign(waits_at_first.begin(), waits_at_first.end());
  paces.assign(cuts_through ? code.size() : 0, {});
  if (scratch_.size() < binding.scratch_bytes()) scratch_.resize(binding.scratch_bytes());
  if (!task.in_pieces.empty() || !task.out_pieces.empty()) gather();
  memory_ = {const_cast<std::byte*>(task.in), task.out, scratch_.data()};  // which no step writes
  prepare();
  steps_left = code.size();
  under_way = 0;
  failure = {};
}

void Run::gather() {
  const Binding& binding = *task.binding;
  if (!task.out_pieces.empty()) task.out = room_in(gathered_out_, binding.out_bytes());
  if (task.in_pieces.empty()) return;
  std::byte* const in =
      task.has_pieces_in_place ? task.out : room_in(gathered_in_, binding.in_bytes());
  task.in = in;
  if (binding.in_bytes() == 0) return;  // it gives nothing
  for_each_piece(task.in_pieces, binding.element_bytes(), in,
                 [](const std::byte* piece, std::byte* gathered, std::size_t bytes) {
                   std::memcpy(gathered, piece, bytes);
                 });
}

void Run::prepare() {
  if (!task.reduction || !task.reduction->prepares()) return;
  const Binding& binding = *task.binding;
  if (prepared_.size() < binding.in_bytes()) prepared_.resize(binding.in_bytes());
  task.reduction->prepare(prepared_.data(), task.in, binding.in_bytes() / binding.element_bytes());
  memory_[0] = prepared_.data();
}

void Run::finish() const {
  const Binding& binding = *task.binding;
  if (binding.out_bytes() > 0 && task.reduction && task.reduction->finishes()) {
    task.reduction->finish(task.out, task.out, binding.out_bytes() / binding.element_bytes());
  }
  const bool are_as_given = task.has_pieces_in_place && !task.reduction && binding.in_bytes() > 0;
  if (are_as_given) return;
  for_each_piece(task.out_pieces, binding.element_bytes(), task.out,
                 [](std::byte* piece, const std::byte* gathered, std::size_t bytes) {
                   std::memcpy(piece, gathered, bytes);
                 });
}

std::uint64_t Run::limit_of(std::uint32_t step) const noexcept {
  std::uint64_t limit = code[step].bytes;
  for (const std::uint32_t other : task.binding->program().abreast_of(step)) {
    limit = std::min(limit, paces[other].done);
  }
  return limit;
}

void Run::fill_wrapped_parts(TransportOp& op, std::uint32_t step, std::uint64_t begin,
                             std::uint64_t bytes) const noexcept {
  const Extent& extent = task.binding->extent(step);
  const ByteRange& range = code[step].kind == StepKind::send ? extent.from : extent.to;
  std::byte* const memory = memory_of(code[step].from_buffer);
  const std::uint64_t in_a_row = range.in_a_row(begin, bytes);
  op.first = {memory + range.at(begin), in_a_row};
  if (in_a_row < bytes) op.rest = {memory + range.wrap, bytes - in_a_row};
}

void Run::reduce_message(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                         const std::byte* message) const {
  const Instruction& it = code[step];
  const std::byte* const from = memory_of(it.from_buffer);
  std::byte* const to = memory_of(it.to_buffer);
  const std::uint64_t element = task.binding->element_bytes();
  const auto reduce = [&](std::uint64_t source, std::uint64_t target, std::uint64_t done,
                          std::uint64_t row) {
    task.reduction->combine(to + target, from + source, message + done, row / element);
  };
  if (!it.wraps) return reduce(it.from + begin, it.to + begin, 0, bytes);
  for_each_row(task.binding->extent(step), begin, bytes, reduce);
}

void Run::work_on(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes) const {
  const Instruction& it = code[step];
  if (!it.wraps) return work_on_row(it, it.from + begin, it.to + begin, bytes);
  for_each_row(task.binding->extent(step), begin, bytes,
               [&](std::uint64_t from, std::uint64_t to, std::uint64_t /*done*/,
                   std::uint64_t row) { work_on_row(it, from, to, row); });
}

void Run::work_on_row(const Instruction& it, std::uint64_t from, std::uint64_t to,
                      std::uint64_t bytes) const {
  if (bytes == 0) return;  // of a buffer that may be null
  const std::byte* const source = memory_of(it.from_buffer) + from;
  std::byte* const target = memory_of(it.to_buffer) + to;
  if (it.kind == StepKind::reduce) {
    task.reduction->combine(target, target, source, bytes / task.binding->element_bytes());
  } else if (target != source) {  // in place, a copy may be of a block to itself
    std::memcpy(target, source, bytes);
  }
}

}  // namespace hocket::engine
