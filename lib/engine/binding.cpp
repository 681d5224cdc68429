#include "engine/binding.hpp"

#include <algorithm>
#include <utility>

namespace hocket::engine {
namespace {

using plan::Buffer;
using plan::Layout;
using plan::Plan;
using plan::Range;

/// A layout in bytes.
class Bytes {
 public:
  Bytes(const Plan& plan, const Layout& layout, std::uint64_t element_bytes) noexcept
      : plan_(plan), layout_(layout), element_bytes_(element_bytes) {}

  /// Before the block's first byte; of the block behind the last, the end of the buffer.
  [[nodiscard]] std::uint64_t before(Buffer buffer, std::uint32_t block) const noexcept {
    return block == 0 ? 0 : layout_.elements(buffer, block - 1).end * element_bytes_;
  }

  [[nodiscard]] ByteRange range(const Range& range, std::uint64_t& bytes) const noexcept {
    const bool is_scratch = range.buffer == Buffer::scratch;
    const std::uint32_t turn_blocks =
        is_scratch ? plan_.shape.vector_blocks() : plan_.blocks(range.buffer);
    const std::uint32_t turn = range.first / turn_blocks * turn_blocks;
    const std::uint32_t turn_end = turn + turn_blocks;
    const std::uint32_t end = range.first + range.count;
    const ByteRange result = {.begin = before(range.buffer, range.first),
                              .before_wrap = before(range.buffer, std::min(end, turn_end)) -
                                             before(range.buffer, range.first),
                              .wrap = before(range.buffer, turn)};
    bytes = result.before_wrap;
    if (end > turn_end) bytes += before(range.buffer, end - turn_blocks) - result.wrap;
    return result;
  }

 private:
  const Plan& plan_;
  const Layout& layout_;
  std::uint64_t element_bytes_;
};

}  // namespace

Binding::Binding(const Program& program, plan::ChunkSizes sizes, std::uint64_t element_bytes,
                 std::vector<ChannelId> channels)
    : program_(program), element_bytes_(element_bytes), channels_(std::move(channels)) {
  const Plan& plan = program.plan();
  const Layout layout(plan, sizes);
  const Bytes bytes(plan, layout, element_bytes);
  in_bytes_ = layout.size(Buffer::in) * element_bytes;
  out_bytes_ = layout.size(Buffer::out) * element_bytes;
  scratch_bytes_ = layout.size(Buffer::scratch) * element_bytes;
  code_.reserve(plan.steps.size());
  extents_.reserve(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    Extent extent;
    std::uint64_t moved = 0;
    if (step.has_source()) extent.from = bytes.range(step.source(), moved);
    if (step.has_target()) extent.to = bytes.range(step.target(), moved);
    add(step, program.places()[i], extent, moved);
  }
}

void Binding::add(const plan::Step& step, const Program::Place& place, const Extent& extent,
                  std::uint64_t bytes) {
  const bool from_wraps = step.has_source() && extent.from.before_wrap < bytes;
  const bool to_wraps = step.has_target() && extent.to.before_wrap < bytes;
  code_.push_back({.bytes = bytes,
                   .from = step.has_source() ? extent.from.begin : extent.to.begin,
                   .to = extent.to.begin,
                   .channel = step.communicates() ? channels_[place.port] : 0,
                   .next_on_port = place.next_on_port,
                   .first_follower = place.first_follower,
                   .follower_count = place.follower_count,
                   .kind = step.kind,
                   .from_buffer = step.has_source() ? step.from_buffer : step.to_buffer,
                   .to_buffer = step.to_buffer,
                   .is_message = step.communicates() && bytes > 0,
                   .wraps = from_wraps || to_wraps,
                   .is_reversed = step.is_reversed});
  extents_.push_back(extent);
  step_bytes_max_ = std::max(step_bytes_max_, bytes);
}

}  // namespace hocket::engine
