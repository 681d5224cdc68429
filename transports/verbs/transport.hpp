// Channels over InfiniBand verbs: reliable queue pairs, one to each peer and rail, made when there
// is first something to post, and set up over authenticated connections (common::Links).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hocket/transport.hpp"

#include "transports/common/links.hpp"
#include "transports/common/poller.hpp"
#include "transports/verbs/contact.hpp"
#include "transports/verbs/port.hpp"
#include "transports/verbs/rail.hpp"
#include "transports/verbs/traffic.hpp"

namespace hocket::verbs {

struct VerbsOptions {
  std::string devices = {};  // HOCKET_IB_HCA
  std::int64_t gid_index = -1;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
};

class VerbsTransport final : public Transport {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Transport>> make(const TransportOptions& options,
                                                               const VerbsOptions& ours);
  /// Waits until what was sent has arrived, but not for long.
  ~VerbsTransport() override;

  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return links_.address(); }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override;
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override;
  [[nodiscard]] Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override;
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override;
  void give_back(const std::byte* lent) noexcept override { traffic_.give_back(lent); }
  [[nodiscard]] int descriptor() const noexcept override { return poller_.descriptor(); }
  [[nodiscard]] bool prepare_to_sleep() noexcept override;
  void close(ChannelId channel, const Status& reason) noexcept override;
  void close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) noexcept override;
  void register_memory(const RegisteredMemory& memory) noexcept override {
    traffic_.regions().add(memory);
  }
  void deregister_memory(const RegisteredMemory& memory) noexcept override {
    traffic_.regions().remove(memory);
  }
  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                              std::span<const std::uint32_t> peers) override;

  /// As an adapter does after an error of its own; for tests.
  void break_pairs(std::uint32_t peer) noexcept;

 private:
  /// All that there is with another rank.
  struct Partner {
    explicit Partner(std::uint32_t rank) : peer(rank), contact(rank) {}
    Peer peer;
    Contact contact;
    bool has_dialled = false;
  };

  VerbsTransport() : links_(poller_), traffic_(rails_) {}
  [[nodiscard]] Status open_rails(const TransportOptions& options, const VerbsOptions& ours);
  [[nodiscard]] Partner& partner(std::uint32_t rank) { return *partners_[rank]; }

  /// Asks the system what has happened; true when there may be more to ask for.
  bool look();
  void look_at(const Watch& watch);
  void look_at_adapter(std::uint32_t rail);
  void take_news();
  void expire();
  void dial(Partner& partner);
  [[nodiscard]] Status meet(Partner& partner, link::Link link);
  /// Goes on with a connection that something happened to.
  [[nodiscard]] Status advance(Partner& partner);
  [[nodiscard]] Status connect_pairs(Partner& partner);

  /// What the adapters have done; true when it was anything.
  bool take_completions();
  void take_completion(std::uint32_t rail, const ibv_wc& completion);
  void take_send(std::uint32_t rail, const ibv_wc& completion);
  void take_receive(std::uint32_t rail, const ibv_wc& completion);
  [[nodiscard]] Status describe(const Peer& peer, std::uint32_t rail, const ibv_wc& completion);
  /// Ends what there is with those who are doomed.
  void settle();
  void end(Partner& partner, const Status& why);
  void say_goodbye();
  [[nodiscard]] Deadline next() const noexcept;

  TransportCaps caps_ = {.small_bytes_max = 1024, .segment_bytes = piece_bytes};
  std::uint32_t rank_ = 0;
  Duration connect_timeout_ = Duration::zero();

  // In the order in which they may be made: each is used by those behind it.
  common::Poller poller_ = {};
  common::Links links_;
  std::vector<common::LinkNews> news_ = {};
  Traffic::Rails rails_ = {};
  Traffic traffic_;
  std::vector<std::unique_ptr<Watch>> watches_ = {};
  std::vector<std::unique_ptr<Partner>> partners_ = {};  // by rank

  std::vector<std::unordered_map<std::uint32_t, Peer*>> by_pair_ = {};  // of each rail
  std::vector<Partner*> meeting_ = {};                                  // not linked yet
  unsigned polls_ = 0;
};

}  // namespace hocket::verbs
