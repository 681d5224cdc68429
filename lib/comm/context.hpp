// What all communicators of a world share.
#pragma once

#include <memory>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "engine/engine.hpp"
#include "sim/selector.hpp"
#include "world/rendezvous.hpp"

namespace hocket::comm {

/// In the order in which they are made; the engine goes before the store that others may serve.
struct Context {
  world::World world;
  sim::Selector selector;
  std::unique_ptr<engine::Engine> engine;
};

/// Meets the others, and tells them how to reach this rank.
[[nodiscard]] Result<std::shared_ptr<Context>> make_context(const JoinOptions& options);

}  // namespace hocket::comm
