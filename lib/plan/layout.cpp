#include "plan/layout.hpp"

#include <algorithm>

namespace hocket::plan {
namespace {

/// Of a chunk in the vector of this rank.
std::uint64_t chunk_elements(const Plan& plan, Buffer buffer, ChunkSizes sizes,
                             std::uint32_t chunk) {
  if (plan.problem.operation != Operation::all_to_all) return sizes[chunk];
  const std::size_t size = plan.problem.size;
  if (buffer == Buffer::in) return sizes[plan.rank * size + chunk];
  if (buffer == Buffer::out) return sizes[chunk * size + plan.rank];
  return *std::ranges::max_element(sizes);
}

}  // namespace

std::vector<std::uint64_t> even_sizes(const Problem& problem, std::uint64_t count) {
  const std::size_t chunks = shape_of(problem, 1).chunks;
  const bool has_rows = problem.operation == Operation::all_to_all;
  return std::vector<std::uint64_t>(has_rows ? chunks * chunks : chunks, count);
}

std::vector<std::uint64_t> uneven_sizes(const Problem& problem, std::uint64_t most) {
  std::vector<std::uint64_t> sizes = even_sizes(problem, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = i * 7 % (most + 1);
  return sizes;
}

Layout::Layout(const Plan& plan, ChunkSizes sizes) {
  const std::uint32_t blocks = plan.shape.blocks_per_chunk;
  for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::scratch}) {
    const std::uint32_t place = buffer == Buffer::scratch
                                    ? 0
                                    : place_in_vector(plan.problem, plan.shape, plan.rank, buffer);
    for (std::uint32_t chunk = 0; chunk < place / blocks; ++chunk) {
      offset_[static_cast<std::size_t>(buffer)] += chunk_elements(plan, buffer, sizes, chunk);
    }
    std::vector<std::uint64_t>& begin = begin_[static_cast<std::size_t>(buffer)];
    begin.push_back(0);
    for (std::uint32_t block = 0; block < plan.blocks(buffer); ++block) {
      const std::uint32_t position = (place + block) % plan.shape.vector_blocks();
      const std::uint64_t elements = chunk_elements(plan, buffer, sizes, position / blocks);
      begin.push_back(begin.back() + first_element(elements, blocks, position % blocks + 1) -
                      first_element(elements, blocks, position % blocks));
    }
  }
}

Layout::Elements Layout::elements(Buffer buffer, std::uint32_t block) const noexcept {
  const std::vector<std::uint64_t>& begin = begin_[static_cast<std::size_t>(buffer)];
  return {begin[block], begin[block + 1]};
}

std::uint64_t Layout::size(Buffer buffer) const noexcept {
  return begin_[static_cast<std::size_t>(buffer)].back();
}

std::uint64_t Layout::offset(Buffer buffer) const noexcept {
  return offset_[static_cast<std::size_t>(buffer)];
}

}  // namespace hocket::plan
