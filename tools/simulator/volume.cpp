#include "simulator/volume.hpp"

#include <algorithm>

namespace hocket::sim {

using plan::Buffer;
using plan::first_element;

Volume::Volume(const plan::Problem& problem, const plan::Shape& shape, std::uint64_t elements,
               plan::ChunkSizes sizes, std::uint32_t element_bytes)
    : problem_(problem), shape_(shape), element_bytes_(element_bytes) {
  if (problem.operation == plan::Operation::all_to_all && !sizes.empty()) {
    pairs_ = sizes;
    largest_pair_ = *std::ranges::max_element(sizes);
    return;
  }
  if (problem.operation == plan::Operation::barrier) elements = 0;
  begin_.reserve(shape.chunks + std::size_t{1});
  for (std::uint32_t chunk = 0; chunk <= shape.chunks; ++chunk) {
    if (sizes.empty()) {
      begin_.push_back(first_element(elements, shape.chunks, chunk));
    } else {
      begin_.push_back(chunk == 0 ? 0 : begin_.back() + sizes[chunk - 1]);
    }
  }
}

std::uint64_t Volume::bytes(std::uint32_t rank, const plan::Range& range) const noexcept {
  std::uint32_t blocks = shape_.vector_blocks();
  if (range.buffer != Buffer::scratch) {
    blocks = std::min(blocks, plan::blocks_of(problem_, shape_, rank, range.buffer));
  }
  const std::uint32_t first = range.first % blocks;
  const std::uint32_t straight = std::min(range.count, blocks - first);
  const std::uint64_t sum = elements_between(rank, range.buffer, first, first + straight) +
                            elements_between(rank, range.buffer, 0, range.count - straight);
  return sum * element_bytes_;
}

std::uint64_t Volume::elements_between(std::uint32_t rank, Buffer buffer, std::uint32_t begin,
                                       std::uint32_t end) const noexcept {
  if (begin == end) return 0;
  if (pairs_.empty()) {
    const std::uint32_t place =
        buffer == Buffer::scratch ? 0 : plan::place_in_vector(problem_, shape_, rank, buffer);
    return before(place + end) - before(place + begin);
  }
  std::uint64_t sum = 0;
  const std::uint32_t blocks = shape_.blocks_per_chunk;
  for (std::uint32_t block = begin; block < end; ++block) {
    const std::size_t chunk = block / blocks;
    const std::size_t row = buffer == Buffer::in ? rank : chunk;
    const std::size_t column = buffer == Buffer::in ? chunk : rank;
    const std::uint64_t pair =
        buffer == Buffer::scratch ? largest_pair_ : pairs_[row * problem_.size + column];
    sum += first_element(pair, blocks, block % blocks + 1) -
           first_element(pair, blocks, block % blocks);
  }
  return sum;
}

std::uint64_t Volume::before(std::uint32_t block) const noexcept {
  const std::uint32_t blocks = shape_.blocks_per_chunk;
  const std::uint32_t chunk = block / blocks;
  if (chunk == shape_.chunks) return begin_[chunk];
  return begin_[chunk] +
         first_element(begin_[chunk + std::size_t{1}] - begin_[chunk], blocks, block % blocks);
}

}  // namespace hocket::sim
