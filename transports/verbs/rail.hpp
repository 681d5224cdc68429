// A port of an adapter in use: protection domain, completion queue with its channel, and the shared
// receive queue of all queue pairs on it. The objects of verbs, each with its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <infiniband/verbs.h>

#include "hocket/status.hpp"

#include "transports/verbs/port.hpp"

namespace hocket::verbs {

struct Release {
  void operator()(ibv_context* object) const noexcept;
  void operator()(ibv_pd* object) const noexcept;
  void operator()(ibv_comp_channel* object) const noexcept;
  void operator()(ibv_cq* object) const noexcept;
  void operator()(ibv_srq* object) const noexcept;
  void operator()(ibv_qp* object) const noexcept;
};
template <class Object>
using Owned = std::unique_ptr<Object, Release>;

struct RailOptions {
  ChosenPort chosen = {};
  std::uint8_t number = 0;  // of the rail
  std::uint32_t receives = 0;
  std::uint32_t sends = 0;  // under way, of all queue pairs together
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
};

class Rail {
 public:
  /// Fails with unsupported or limit_exceeded.
  [[nodiscard]] static Result<std::unique_ptr<Rail>> open(const RailOptions& options);

  [[nodiscard]] const RailOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Port& port() const noexcept { return options_.chosen.port; }
  [[nodiscard]] ibv_pd* domain() const noexcept { return domain_.get(); }

  /// Connected to nothing yet. So many sends under way at most.
  [[nodiscard]] Result<Owned<ibv_qp>> make_queue_pair(std::uint32_t sends, std::uint32_t inlined);
  /// Puts a receive into the shared queue; into `bytes` at an address, or of no bytes.
  [[nodiscard]] Status post_receive(std::uint64_t id, const std::byte* to, std::uint32_t bytes,
                                    std::uint32_t key) noexcept;

  /// What is over, at most so many.
  [[nodiscard]] std::size_t poll(std::span<ibv_wc> completions) noexcept;
  /// The next completion makes the descriptor readable.
  void arm() noexcept;
  /// Forgets that it was readable.
  void take_events() noexcept;
  [[nodiscard]] int completion_descriptor() const noexcept { return channel_->fd; }

  /// What happened to the adapter, in words; empty when there is nothing more. `is_fatal` when it
  /// is of no use any more.
  [[nodiscard]] std::string take_async_event(bool& is_fatal);
  [[nodiscard]] int async_descriptor() const noexcept { return context_->async_fd; }
  /// As it is now.
  [[nodiscard]] bool is_port_active() const noexcept;

  /// Sends that may be begun; whoever begins one counts it here. Each may have a completion, those
  /// that were not signalled when they fail: so the completion queue has room for all of them.
  std::uint32_t sends_left = 0;
  /// There are fewer of them than was wished: none may wait for another one's signal.
  [[nodiscard]] bool is_short_of_sends() const noexcept { return is_short_of_sends_; }

 private:
  explicit Rail(const RailOptions& options) : options_(options) {}
  [[nodiscard]] Status make_all();
  [[nodiscard]] Status check_limits();

  RailOptions options_;
  bool is_short_of_sends_ = false;
  Owned<ibv_context> context_ = {};
  Owned<ibv_pd> domain_ = {};
  Owned<ibv_comp_channel> channel_ = {};
  Owned<ibv_cq> completions_ = {};
  Owned<ibv_srq> receives_ = {};
};

}  // namespace hocket::verbs
