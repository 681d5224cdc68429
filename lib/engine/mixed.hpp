// Several transports as one, for worlds in which not every rank has the same: each channel is on
// the first of them by which both ends can reach each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/fd.hpp"

namespace hocket::engine {

/// A rank's address is a list of those of its transports, whether it has one or several.
[[nodiscard]] std::string list_item(std::string_view name, std::string_view address);
/// The address of that name in a list; empty when it is not there.
[[nodiscard]] std::string address_in(std::string_view list, std::string_view name);

class MixedTransport final : public Transport {
 public:
  struct Part {
    std::string name = {};
    std::unique_ptr<Transport> transport = {};
  };

  /// The best one first; the last is the one that most ranks have, and says how messages are cut.
  /// Two ranks must have those that they share in the same order.
  [[nodiscard]] static Result<std::unique_ptr<Transport>> make(std::vector<Part> parts);

  [[nodiscard]] const TransportCaps& caps() const noexcept override {
    return parts_.back().transport->caps();
  }
  /// A list.
  [[nodiscard]] std::string address() const override;
  /// That of the best part, which is used wherever it reaches.
  [[nodiscard]] std::string memory_domain() const override {
    return parts_.front().transport->memory_domain();
  }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override;
  void await_peers() noexcept override;
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override;
  [[nodiscard]] Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override;
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override;
  [[nodiscard]] bool has_moved() const noexcept override { return has_moved_; }
  void give_back(const std::byte* lent) noexcept override;
  [[nodiscard]] int descriptor() const noexcept override { return epoll_.get(); }
  [[nodiscard]] bool prepare_to_sleep() noexcept override;
  void close(ChannelId channel, const Status& reason) noexcept override;
  void close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) noexcept override;
  void register_memory(const RegisteredMemory& memory) noexcept override;
  void deregister_memory(const RegisteredMemory& memory) noexcept override;
  /// With each part that reaches some of the peers.
  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                              std::span<const std::uint32_t> peers) override;

 private:
  /// Of a channel: the part that it is on, and its id there. Ours has the first in its top bits.
  struct Place {
    std::size_t part = 0;
    ChannelId id = 0;
  };
  static constexpr std::size_t parts_max = 16;

  explicit MixedTransport(std::vector<Part> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] Status watch();
  /// A channel that there is not is none of the first part, which says so.
  [[nodiscard]] Place place_of(ChannelId id) const noexcept {
    const std::size_t part = id / channel_ids_end;
    return part < parts_.size() ? Place{part, id % channel_ids_end} : Place{0, channel_ids_end};
  }
  /// The part by which a peer is reached, and how that failed for all when it is none.
  [[nodiscard]] Result<std::size_t> way_to(std::uint32_t peer) const;

  std::vector<Part> parts_;
  std::vector<bool> is_used_ = {};  // of each part: it has channels
  std::vector<std::pair<const std::byte*, std::size_t>> loans_ = {};  // with their parts
  std::array<TransportOp, 64> translated_ = {};
  std::size_t next_ = 0;  // to be polled first
  unsigned polls_ = 0;
  bool has_moved_ = false;
  Fd epoll_ = {};
};

}  // namespace hocket::engine
