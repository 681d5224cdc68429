#include "plan/builders/canonical.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "plan/builders/phases.hpp"

namespace hocket::plan {
namespace {

/// So many contributions from the first on, a power of two, or as many of them as there are.
struct Node {
  std::uint64_t first = 0;
  std::uint64_t width = 1;

  [[nodiscard]] bool is_left() const noexcept { return (first & width) == 0; }
  [[nodiscard]] Node sibling() const noexcept { return {first ^ width, width}; }
  friend bool operator==(const Node&, const Node&) = default;
};

class CanonicalTree {
 public:
  explicit CanonicalTree(const Problem& problem) noexcept : all_(all_contributions(problem)) {}

  /// The highest node that begins as this one does, and has no contribution from `end` on. What has
  /// no sibling is its parent.
  [[nodiscard]] Node highest(Node node, std::uint64_t end) const noexcept {
    const std::uint64_t begin = node.first;
    while (node.width < all_ && node.is_left() && end_of({begin, 2 * node.width}) <= end) {
      node.width *= 2;
    }
    return node;
  }
  [[nodiscard]] Node parent(const Node& node) const noexcept {
    const Node above{node.first & ~node.width, 2 * node.width};
    return highest(above, end_of(above));
  }
  /// The fewest that these contributions are.
  [[nodiscard]] std::vector<Node> nodes(const Contributions& of) const {
    std::vector<Node> nodes;
    for (std::uint64_t begin = of.begin; begin < of.end; begin = end_of(nodes.back())) {
      nodes.push_back(highest({begin}, of.end));
    }
    return nodes;
  }

 private:
  [[nodiscard]] std::uint64_t end_of(const Node& node) const noexcept {
    return std::min(node.first + node.width, all_);
  }

  std::uint64_t all_;
};

/// What each rank sends, when it has combined all that it can: the fewest nodes that its
/// contributions are.
class SentNodes {
 public:
  explicit SentNodes(const Problem& problem) {
    const CanonicalTree tree(problem);
    for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
      const std::vector<Node> nodes = tree.nodes(contributions_of(problem, rank));
      nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
      ends_.push_back(nodes_.size());
    }
  }

  [[nodiscard]] std::span<const Node> of(std::uint32_t rank) const noexcept {
    const std::size_t begin = rank == 0 ? 0 : ends_[rank - 1];
    return std::span(nodes_).subspan(begin, ends_[rank] - begin);
  }

 private:
  std::vector<Node> nodes_;  // rank by rank
  std::vector<std::size_t> ends_;
};

/// A vector of a buffer.
struct Place {
  Buffer buffer = Buffer::in;
  std::uint32_t vector = 0;
};

/// What a rank has of the sum, in the blocks that it is at. Two children become their parent as
/// soon as both are there, so that there are few nodes at any time, in whichever order they come.
class CanonicalSum {
 public:
  explicit CanonicalSum(PlanWriter& plan)
      : plan_(plan), tree_(plan.problem()), block_count_(plan.shape().vector_blocks()) {}

  /// From now on it is at this block only. All that was had stays where it is in the others.
  void narrow_to(std::uint32_t block) noexcept {
    first_block_ = block;
    block_count_ = 1;
  }
  /// The next contribution of the rank.
  void add(std::uint32_t number, std::uint32_t vector) {
    hold(tree_.highest({number}, std::uint64_t{number} + 1), {Buffer::in, vector});
  }
  void receive(std::uint32_t peer, const Node& node);

  /// Where the nodes are, in the order of the contributions while there are only those of the rank.
  [[nodiscard]] std::vector<Place> places() const {
    std::vector<Place> places;
    for (const Held& each : held_) places.push_back(each.place);
    return places;
  }

 private:
  struct Held {
    Node node;
    Place place;
  };

  void hold(Node node, Place place);
  [[nodiscard]] std::optional<Place> take(const Node& node);
  [[nodiscard]] Place combine(Place one, Place other, bool other_is_left);
  [[nodiscard]] Place free_place();
  [[nodiscard]] Range at(const Place& place) const noexcept {
    return {place.buffer, place.vector * plan_.shape().vector_blocks() + first_block_,
            block_count_};
  }

  PlanWriter& plan_;
  CanonicalTree tree_;
  std::uint32_t first_block_ = 0;
  std::uint32_t block_count_;
  std::vector<Held> held_;
  std::vector<std::uint32_t> free_;  // vectors of scratch that were used, the oldest first
  std::uint32_t used_ = 0;           // of scratch
};

void CanonicalSum::receive(std::uint32_t peer, const Node& node) {
  const std::optional<Place> sibling = take(node.sibling());
  const Place place = sibling && sibling->buffer == Buffer::scratch ? *sibling : free_place();
  if (!sibling) {
    plan_.recv(peer, at(place));
    return hold(node, place);
  }
  if (node.is_left()) {
    plan_.recv_reduce_left(peer, at(*sibling), at(place));
  } else {
    plan_.recv_reduce(peer, at(*sibling), at(place));
  }
  hold(tree_.parent(node), place);
}

void CanonicalSum::hold(Node node, Place place) {
  while (const std::optional<Place> sibling = take(node.sibling())) {
    place = combine(*sibling, place, node.is_left());
    node = tree_.parent(node);
  }
  held_.push_back({node, place});
}

std::optional<Place> CanonicalSum::take(const Node& node) {
  for (std::size_t i = held_.size(); i-- > 0;) {  // the last one mostly
    if (held_[i].node != node) continue;
    const Place place = held_[i].place;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    return place;
  }
  return std::nullopt;
}

/// In the place of either, if that may be written.
Place CanonicalSum::combine(Place one, Place other, bool other_is_left) {
  if (one.buffer == Buffer::in) {
    std::swap(one, other);
    other_is_left = !other_is_left;
  }
  if (one.buffer == Buffer::in) {
    const Place copy = free_place();
    plan_.copy(at(one), at(copy));
    one = copy;
  }
  other_is_left ? plan_.reduce_left(at(other), at(one)) : plan_.reduce(at(other), at(one));
  if (other.buffer == Buffer::scratch) free_.push_back(other.vector);
  return one;
}

/// The one that has been free for longest: what still reads it is the sooner over. Some are left
/// alone, so that what comes need not wait for its place: simulated with 48 ranks and 32 MB, with
/// none or two of them it took 1.5 times as long as with four, and with more no less.
Place CanonicalSum::free_place() {
  constexpr std::size_t left_alone = 4;
  if (free_.size() <= left_alone) return {Buffer::scratch, used_++};
  const Place place{Buffer::scratch, free_.front()};
  free_.erase(free_.begin());
  return place;
}

/// Each rank gives all others their block of its nodes, and of its own block makes the sum. Returns
/// where that is.
Range make_own_block(PlanWriter& plan) {
  const Problem& problem = plan.problem();
  const auto& sent = plan.common<SentNodes>(problem);
  const Contributions own = contributions_of(problem, plan.rank());
  CanonicalSum sum(plan);
  for (std::uint32_t i = own.begin; i < own.end; ++i) sum.add(i, i - own.begin);
  const std::vector<Place> nodes = sum.places();
  sum.narrow_to(plan.rank());
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    for (const Place& node : nodes) {
      const std::uint32_t block = node.vector * plan.shape().vector_blocks() + plan.ahead(i);
      plan.send(plan.ahead(i), {node.buffer, block, 1});
    }
    for (const Node& node : sent.of(plan.behind(i))) sum.receive(plan.behind(i), node);
  }
  const Place all = sum.places().front();
  return {all.buffer, all.vector * plan.shape().vector_blocks() + plan.rank(), 1};
}

}  // namespace

void canonical_all_reduce(PlanWriter& plan) {
  plan.copy(make_own_block(plan), {Buffer::out, plan.rank(), 1});
  direct_all_gather(plan, {Buffer::out, plan.rank(), 1});
}

void canonical_reduce_scatter(PlanWriter& plan) {
  plan.copy(make_own_block(plan), {Buffer::out, 0, 1});
}

void canonical_reduce(PlanWriter& plan) {
  const std::uint32_t root = plan.problem().root;
  const Range own = make_own_block(plan);
  if (plan.rank() != root) return plan.send(root, own);
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    plan.recv(plan.ahead(i), {Buffer::out, plan.ahead(i), 1});
  }
  plan.copy(own, {Buffer::out, root, 1});
}

Bound canonical_bound(const Problem& problem) {
  std::uint64_t most = 1;  // nodes of a rank
  if (problem.contributions > 0) {
    const CanonicalTree tree(problem);
    for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
      most = std::max<std::uint64_t>(most, tree.nodes(contributions_of(problem, rank)).size());
    }
  }
  const std::uint64_t each = (most + 1) * (problem.size - 1);
  return {.rounds = each, .blocks_sent = each, .hops = 2};
}

}  // namespace hocket::plan
