// From an operation to what the engine runs: chosen, built and bound once, and kept.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "hocket/status.hpp"

#include "choose/selector.hpp"
#include "comm/arguments.hpp"
#include "comm/card.hpp"
#include "engine/binding.hpp"
#include "engine/program.hpp"
#include "engine/tag.hpp"

namespace hocket::comm {

/// What the engine runs for operations of one signature.
struct BoundPlan {
  Signature signature = {};
  choose::Choice choice = {};
  std::shared_ptr<const engine::Program> program = {};
  std::vector<engine::Binding> banks = {};  // for operations that are under way together
  engine::Tag tag = {};                     // but for type and op
};

/// A plan's tag, with the type and the op of a call.
[[nodiscard]] engine::Tag tag_of(const Collective& collective, engine::Tag of_plan) noexcept;
/// The tag of a call that none of our algorithms carries out, as if the first of them did. Writes
/// into `signature`, whose memory it uses again.
[[nodiscard]] engine::Tag tag_of(const Collective& collective, Signature& signature);

/// Opens the channel of a port in a bank, the first time, and then knows it.
using OpenChannel = std::function<Result<ChannelId>(const engine::Port& port, std::uint32_t bank)>;

class Planner {
 public:
  /// For so many operations under way together as `overlap` says.
  Planner(const Position& position, HostOrder order, const choose::Selector& selector,
          std::uint32_t overlap, OpenChannel open);

  /// The plan for a collective that passed check(): the one used last time if it fits, which takes
  /// no memory. Whoever uses it keeps it alive.
  [[nodiscard]] Result<std::shared_ptr<const BoundPlan>> find(const Collective& collective);

 private:
  [[nodiscard]] Result<std::shared_ptr<const BoundPlan>> make();
  /// How ranks are numbered in plans.
  struct Numbering {
    std::uint32_t ranks_per_host = 1;
    choose::Selector selector;
    std::vector<std::uint32_t> ranks = {};   // by place; empty if each has its own number
    std::vector<std::uint32_t> places = {};  // by rank, likewise
  };
  [[nodiscard]] const Numbering& numbering() const noexcept;
  [[nodiscard]] choose::Choice choose(const Numbering& numbers) const;
  [[nodiscard]] engine::Program program_of(const choose::Choice& choice,
                                           const Numbering& numbers) const;
  [[nodiscard]] Result<std::vector<ChannelId>> channels_of(const engine::Program& program,
                                                           std::uint32_t bank) const;
  [[nodiscard]] std::vector<std::uint64_t> chunk_sizes() const;

  Position position_;
  Numbering own_;
  Numbering by_host_;
  std::uint32_t overlap_;
  OpenChannel open_;
  Signature wanted_;                                   // of the operation at hand
  std::list<std::shared_ptr<const BoundPlan>> plans_;  // those used last come first
};

}  // namespace hocket::comm
