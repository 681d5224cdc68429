#include "comm/planner.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/limits.hpp"
#include "comm/kinds.hpp"
#include "plan/catalog.hpp"
#include "plan/renumber.hpp"

namespace hocket::comm {
namespace {

/// The number of elements, where all ranks must give the same; else 0.
std::uint64_t common_count(const Signature& signature) noexcept {
  if (signature.operation == plan::Operation::all_to_all ||
      signature.operation == plan::Operation::barrier) {
    return 0;
  }
  const std::vector<std::uint64_t>& counts = signature.counts;
  if (counts.empty()) return signature.count;
  // Equal parts given as a list are the same call as one count.
  const bool are_alike =
      std::ranges::all_of(counts, [&](std::uint64_t each) { return each == counts.front(); });
  return are_alike ? counts.front()
                   : std::accumulate(counts.begin(), counts.end(), std::uint64_t{});
}

}  // namespace

engine::Tag tag_of(const Collective& collective, engine::Tag of_plan) noexcept {
  if (collective.kind == CollectiveKind::barrier) return of_plan;
  const engine::Tag tag = of_plan.with(collective.type);
  return plan::reduces(operation_of(collective.kind)) ? tag.with(collective.reduction.op) : tag;
}

engine::Tag tag_of(const Collective& collective, Signature& signature) {
  write_signature(collective, signature);
  const auto algorithm =
      std::ranges::find(plan::catalog(), signature.operation, &plan::Algorithm::operation);
  return tag_of(collective, {*algorithm, signature.root, common_count(signature)});
}

Planner::Planner(const Position& position, HostOrder order, const choose::Selector& selector,
                 std::uint32_t overlap, OpenChannel open)
    : position_(position),
      own_{.ranks_per_host = order.ranks.empty() ? order.ranks_per_host : 1, .selector = selector},
      by_host_{.ranks_per_host = order.ranks_per_host,
               .selector = selector,
               .ranks = std::move(order.ranks)},
      overlap_(overlap),
      open_(std::move(open)) {
  for (Numbering* const each : {&own_, &by_host_}) {
    each->selector = selector.with_ranks_per_host(each->ranks_per_host);
    each->places.resize(each->ranks.size());
    for (std::uint32_t place = 0; place < each->ranks.size(); ++place) {
      each->places[each->ranks[place]] = place;
    }
  }
}

Result<std::shared_ptr<const BoundPlan>> Planner::find(const Collective& collective) {
  write_signature(collective, wanted_);
  const auto found =
      std::ranges::find_if(plans_, [&](const auto& each) { return each->signature == wanted_; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front();
  }
  auto made = make();
  if (!made.ok()) return made;
  plans_.push_front(*made);
  if (plans_.size() > limits::plans_kept_max) plans_.pop_back();
  return made;
}

/// By host, if the operation at hand does not depend on the order of the ranks.
const Planner::Numbering& Planner::numbering() const noexcept {
  return plan::is_of_whole_vectors(wanted_.operation) && !wanted_.keeps_order ? by_host_ : own_;
}

choose::Choice Planner::choose(const Numbering& numbers) const {
  const plan::Problem problem{.operation = wanted_.operation,
                              .size = position_.size,
                              .root = wanted_.root,
                              .ranks_per_host = numbers.ranks_per_host};
  return numbers.selector.choose(problem, vector_bytes(wanted_, position_.size),
                                 {.is_uneven = !wanted_.counts.empty(),
                                  .only_moves = wanted_.is_of_device,
                                  .keeps_order = wanted_.keeps_order});
}

engine::Program Planner::program_of(const choose::Choice& choice, const Numbering& numbers) const {
  const auto place_of = [&](std::uint32_t rank) {
    return numbers.places.empty() ? rank : numbers.places[rank];
  };
  const plan::Problem problem{.operation = wanted_.operation,
                              .size = position_.size,
                              .root = place_of(wanted_.root),
                              .pieces = choice.pieces,
                              .ranks_per_host = numbers.ranks_per_host};
  plan::Plan plan = plan::build(*choice.algorithm, problem, place_of(position_.rank));
  if (!numbers.ranks.empty()) plan::renumber(plan, numbers.ranks);
  return engine::Program(std::move(plan));
}

Result<std::shared_ptr<const BoundPlan>> Planner::make() {
  auto result = std::make_shared<BoundPlan>();
  result->signature = wanted_;
  const Numbering* numbers = &numbering();
  result->choice = choose(*numbers);
  // The bits of a canonical one are those of the ranks' own order.
  if (result->choice.algorithm != nullptr && result->choice.algorithm->is_canonical) {
    numbers = &own_;
    result->choice = choose(*numbers);
  }
  if (result->choice.algorithm == nullptr) {
    return Status(StatusCode::unsupported, "no algorithm can do it with this memory and this op");
  }
  const plan::Problem solved{.operation = wanted_.operation,
                             .size = position_.size,
                             .root = wanted_.root,
                             .pieces = result->choice.pieces,
                             .ranks_per_host = numbers->ranks_per_host};
  const auto same = std::ranges::find_if(plans_, [&](const auto& each) {
    return each->choice.algorithm == result->choice.algorithm &&
           each->program->plan().problem == solved;
  });
  result->program =
      same != plans_.end()
          ? (*same)->program
          : std::make_shared<const engine::Program>(program_of(result->choice, *numbers));
  for (std::uint32_t bank = 0; bank < overlap_; ++bank) {
    auto channels = channels_of(*result->program, bank);
    if (!channels.ok()) return channels.status();
    result->banks.emplace_back(*result->program, chunk_sizes(), wanted_.element_bytes,
                               std::move(*channels));
  }
  result->tag = engine::Tag(*result->choice.algorithm, wanted_.root, common_count(wanted_));
  return std::shared_ptr<const BoundPlan>(std::move(result));
}

Result<std::vector<ChannelId>> Planner::channels_of(const engine::Program& program,
                                                    std::uint32_t bank) const {
  std::vector<ChannelId> channels;
  for (const engine::Port& port : program.ports()) {
    const auto channel = open_(port, bank);
    if (!channel.ok()) return channel.status();
    channels.push_back(*channel);
  }
  return channels;
}

std::vector<std::uint64_t> Planner::chunk_sizes() const {
  const plan::Problem problem{.operation = wanted_.operation, .size = position_.size};
  if (wanted_.counts.empty()) return plan::even_sizes(problem, wanted_.count);
  if (wanted_.operation != plan::Operation::all_to_all) return wanted_.counts;
  // By rank and rank, of which only what this one has and gets is known and looked at.
  const std::size_t size = position_.size;
  std::vector<std::uint64_t> sizes(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    sizes[position_.rank * size + i] = wanted_.counts[i];
    sizes[i * size + position_.rank] = wanted_.counts[size + i];
  }
  return sizes;
}

}  // namespace hocket::comm
