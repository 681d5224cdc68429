// What all communicators of a world share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "base/config.hpp"
#include "choose/selector.hpp"
#include "comm/callbacks.hpp"
#include "comm/membership.hpp"
#include "comm/new_group.hpp"
#include "device/runtime.hpp"
#include "engine/engine.hpp"
#include "health/monitor.hpp"
#include "record/recorder.hpp"
#include "world/rendezvous.hpp"

namespace hocket::comm {

/// In the order in which they are made; the engine goes before the store that others may serve.
struct Context {
  Context(Config its_config, world::World its_world, std::unique_ptr<record::Recorder> its_recorder,
          std::unique_ptr<health::Monitor> its_monitor, std::string its_transport,
          std::vector<std::string> its_processes, std::vector<std::string> its_host_names,
          std::vector<std::uint32_t> its_hosts, choose::Selector its_selector,
          std::unique_ptr<engine::Engine> its_engine)
      : config(std::move(its_config)),
        world(std::move(its_world)),
        recorder(std::move(its_recorder)),
        monitor(std::move(its_monitor)),
        transport(std::move(its_transport)),
        processes(std::move(its_processes)),
        host_names(std::move(its_host_names)),
        hosts(std::move(its_hosts)),
        selector(std::move(its_selector)),
        engine(std::move(its_engine)) {}

  const Config config;
  world::World world;
  std::unique_ptr<record::Recorder> recorder;  // null if it is off, or there was no memory for it
  std::unique_ptr<health::Monitor> monitor;    // null where there is nobody else
  std::string transport;                       // its name, or several
  std::vector<std::string> processes;          // of all ranks, for people: "pid 7 on node1"
  std::vector<std::string> host_names;         // of all ranks
  std::vector<std::uint32_t> hosts;            // the same, as numbers (card.hpp)
  choose::Selector selector;
  std::unique_ptr<engine::Engine> engine;
  const device::Runtime* runtime = nullptr;  // if there are devices
  Duration stall_warning = {};               // HOCKET_STALL_WARNING
  std::uint32_t overlap = 1;                 // HOCKET_OVERLAP
  CallCounter group_calls = {};
  Callbacks callbacks = {};
};

/// Ranks of a communicator, for an error: "rank 2 (pid 71 on node1), rank 5 (pid 80 on node2)".
[[nodiscard]] std::string list_ranks(const Context& context, const Membership& of,
                                     std::span<const int> ranks);

/// Meets the other ranks of the world of this name. The options say where.
[[nodiscard]] Result<world::World> find_world(const JoinOptions& options, std::string name,
                                              const Config& config);
/// Meets the others, and tells them how to reach this rank.
[[nodiscard]] Result<std::shared_ptr<Context>> make_context(const JoinOptions& options);

}  // namespace hocket::comm
