#include "plan/builders/team.hpp"

#include <algorithm>

namespace hocket::plan {

template <typename Use>
void Team::each_stretch(std::uint32_t first, std::uint32_t count, Use use) const {
  const bool has_all_blocks = size() == plan_.shape().vector_blocks();  // ranges go round as we do
  while (count > 0) {
    std::uint32_t taken = 1;
    if (places_.block_step == 1) taken = has_all_blocks ? count : std::min(count, size() - first);
    use(places_.first_block + first * places_.block_step, taken);
    first = (first + taken) % size();
    count -= taken;
  }
}

void Team::send(std::uint32_t peer, Buffer from, std::uint32_t first, std::uint32_t count) {
  each_stretch(first, count, [&](std::uint32_t block, std::uint32_t blocks) {
    plan_.send(rank_of(peer), {from, block, blocks});
  });
}

void Team::recv(std::uint32_t peer, Buffer to, std::uint32_t first, std::uint32_t count) {
  each_stretch(first, count, [&](std::uint32_t block, std::uint32_t blocks) {
    plan_.recv(rank_of(peer), {to, block, blocks});
  });
}

void Team::recv_reduce(std::uint32_t peer, Buffer from, Buffer to, std::uint32_t first,
                       std::uint32_t count) {
  each_stretch(first, count, [&](std::uint32_t block, std::uint32_t blocks) {
    plan_.recv_reduce(rank_of(peer), {from, block, blocks}, {to, block, blocks});
  });
}

void Team::recv_reduce(std::uint32_t peer, Buffer from, const Range& to) {
  plan_.recv_reduce(rank_of(peer), own_block(from), to);
}

void Team::copy(Buffer from, const Range& to) { plan_.copy(own_block(from), to); }

void Team::copy(Buffer from, Buffer to, std::uint32_t member) {
  each_stretch(member, 1, [&](std::uint32_t block, std::uint32_t blocks) {
    plan_.copy({from, block, blocks}, {to, block, blocks});
  });
}

}  // namespace hocket::plan
