#include "engine/run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/group.hpp"

namespace hocket::engine {
namespace {

using plan::StepKind;

/// Below this, copying is faster than looking pieces up.
constexpr std::uint64_t scattered_bytes_min = 4096;
/// Of a piece, on average: an op is called for each.
constexpr std::uint64_t piece_bytes_min = 512;

bool is_worth_it(std::span<const Piece> pieces, std::uint64_t bytes) noexcept {
  return bytes >= scattered_bytes_min && bytes >= pieces.size() * piece_bytes_min;
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

}  // namespace

void Run::begin(const Task& new_task, std::uint64_t segment_most) {
  task = new_task;
  is_cause = false;  // first, as memory may run out below
  failed_step = -1;
  meets_later_call = false;
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
  std::byte* const scratch = scratch_.of(binding.scratch_bytes());
  const bool has_pieces = !task.in_pieces.empty() || !task.out_pieces.empty();
  if (has_pieces || is_scattered) take_pieces();  // also to forget those of the last operation
  memory_ = {const_cast<std::byte*>(task.in), task.out, scratch};  // which no step writes
  if (task.reduction && task.reduction->prepares()) prepare();
  steps_left = code.size();
  under_way = 0;
  failure = {};
}

/// Leaves pieces where they are, if no message is of more than two of them. Else it gathers them.
void Run::take_pieces() {
  const Binding& binding = *task.binding;
  const std::uint64_t element_bytes = binding.element_bytes();
  is_scattered = true;  // memory may run out below: then the next operation comes here as well
  scattered_[0].clear();
  scattered_[1].clear();
  const bool is_prepared = task.reduction && task.reduction->prepares();
  if (task.pieces_are_apart && is_worth_it(task.in_pieces, binding.in_bytes()) && !is_prepared) {
    scattered_[0].assign(task.in_pieces, element_bytes);
  }
  if (task.pieces_are_apart && is_worth_it(task.out_pieces, binding.out_bytes())) {
    scattered_[1].assign(task.out_pieces, element_bytes);
  }
  const bool in_fits = stays_in_pieces(plan::Buffer::in);
  const bool out_fits = stays_in_pieces(plan::Buffer::out);
  if (!in_fits || (task.has_pieces_in_place && !out_fits)) scattered_[0].clear();
  if (!out_fits || (task.has_pieces_in_place && !in_fits)) scattered_[1].clear();
  is_scattered = !scattered_[0].empty() || !scattered_[1].empty();
  const bool gathers_out = !task.out_pieces.empty() && scattered_[1].empty();
  const bool gathers_in = !task.in_pieces.empty() && scattered_[0].empty();
  if (gathers_out) task.out = gathered_out_.of(binding.out_bytes());
  if (!gathers_in) return;
  std::byte* const in = task.has_pieces_in_place ? task.out : gathered_in_.of(binding.in_bytes());
  task.in = in;
  if (binding.in_bytes() == 0) return;  // it gives nothing
  for_each_piece(task.in_pieces, element_bytes, in,
                 [](const std::byte* piece, std::byte* gathered, std::size_t bytes) {
                   std::memcpy(gathered, piece, bytes);
                 });
}

/// Whether the buffer is in pieces, and no message of more than two of them.
bool Run::stays_in_pieces(plan::Buffer buffer) const noexcept {
  if (scattered_[static_cast<std::size_t>(buffer)].empty()) return false;
  for (std::uint32_t step = 0; step < code.size(); ++step) {
    const Instruction& it = code[step];
    const bool is_on_buffer =
        it.is_message && it.kind != StepKind::recv_reduce && it.from_buffer == buffer;
    if (!is_on_buffer) continue;
    const std::uint64_t first = stretch_of_message(step, 0, it.bytes).bytes;
    if (first == it.bytes) continue;
    const std::uint64_t second = stretch_of_message(step, first, it.bytes - first).bytes;
    if (first + second < it.bytes) return false;
  }
  return true;
}

void Run::prepare() {
  const Binding& binding = *task.binding;
  std::byte* const prepared = prepared_.of(binding.in_bytes());
  task.reduction->prepare(prepared, task.in, binding.in_bytes() / binding.element_bytes());
  memory_[0] = prepared;
}

void Run::finish_out() const {
  const Binding& binding = *task.binding;
  const std::uint64_t element_bytes = binding.element_bytes();
  const bool is_out_in_pieces = !scattered_[1].empty();
  if (binding.out_bytes() > 0 && task.reduction && task.reduction->finishes()) {
    if (is_out_in_pieces) {
      for (const Piece& each : task.out_pieces) {
        if (each.count > 0) task.reduction->finish(each.data, each.data, each.count);
      }
    } else {
      task.reduction->finish(task.out, task.out, binding.out_bytes() / element_bytes);
    }
  }
  const bool are_as_given = task.has_pieces_in_place && !task.reduction && binding.in_bytes() > 0;
  if (is_out_in_pieces || are_as_given) return;
  for_each_piece(task.out_pieces, element_bytes, task.out,
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

MemoryPart Run::stretch(plan::Buffer buffer, const ByteRange& range, std::uint64_t position,
                        std::uint64_t most) const noexcept {
  const std::uint64_t offset = range.at(position);
  const std::uint64_t bytes = range.in_a_row(position, most);
  const auto which = static_cast<std::size_t>(buffer);
  if (which < scattered_.size() && !scattered_[which].empty()) {
    return scattered_[which].at(offset, bytes);
  }
  return {memory_of(buffer) + offset, bytes};
}

MemoryPart Run::stretch_of_message(std::uint32_t step, std::uint64_t position,
                                   std::uint64_t most) const noexcept {
  const Extent& extent = task.binding->extent(step);
  const ByteRange& range = code[step].kind == StepKind::send ? extent.from : extent.to;
  return stretch(code[step].from_buffer, range, position, most);
}

void Run::fill_both_parts(TransportOp& op, std::uint32_t step, std::uint64_t begin,
                          std::uint64_t bytes) const noexcept {
  op.first = stretch_of_message(step, begin, bytes);
  const std::uint64_t first = op.first.bytes;
  if (first < bytes) op.rest = stretch_of_message(step, begin + first, bytes - first);
}

/// Calls work(from, to, done, bytes) for bytes of a step that lie in a row at both ends.
template <class Work>
void Run::for_each_row(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                       const Work& work) const {
  const Extent& extent = task.binding->extent(step);
  const Instruction& it = code[step];
  for (std::uint64_t done = 0; done < bytes;) {
    const MemoryPart from = stretch(it.from_buffer, extent.from, begin + done, bytes - done);
    const MemoryPart to = stretch(it.to_buffer, extent.to, begin + done, from.bytes);
    work(from.data, to.data, done, to.bytes);
    done += to.bytes;
  }
}

inline void Run::combine(const Instruction& it, std::byte* to, const std::byte* own,
                         const std::byte* read, std::uint64_t bytes) const {
  const std::uint64_t count = bytes / task.binding->element_bytes();
  if (it.is_reversed) return task.reduction->combine(to, read, own, count);
  task.reduction->combine(to, own, read, count);
}

void Run::reduce_message(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                         const std::byte* message) const {
  const Instruction& it = code[step];
  if (it.wraps || is_scattered) return reduce_message_in_rows(step, begin, bytes, message);
  combine(it, memory_of(it.to_buffer) + it.to + begin, memory_of(it.from_buffer) + it.from + begin,
          message, bytes);
}

void Run::reduce_message_in_rows(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                                 const std::byte* message) const {
  for_each_row(step, begin, bytes,
               [&](const std::byte* from, std::byte* to, std::uint64_t done, std::uint64_t row) {
                 combine(code[step], to, from, message + done, row);
               });
}

void Run::work_on(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes) const {
  const Instruction& it = code[step];
  if (it.wraps || is_scattered) {
    return for_each_row(step, begin, bytes,
                        [&](const std::byte* from, std::byte* to, std::uint64_t /*done*/,
                            std::uint64_t row) { work_on_row(it, from, to, row); });
  }
  if (bytes == 0) return;  // of a buffer that may be null
  work_on_row(it, memory_of(it.from_buffer) + it.from + begin,
              memory_of(it.to_buffer) + it.to + begin, bytes);
}

void Run::work_on_row(const Instruction& it, const std::byte* from, std::byte* to,
                      std::uint64_t bytes) const {
  if (it.kind == StepKind::reduce) return combine(it, to, to, from, bytes);
  if (to != from) std::memcpy(to, from, bytes);  // in place, a copy may be of a block to itself
}

}  // namespace hocket::engine
