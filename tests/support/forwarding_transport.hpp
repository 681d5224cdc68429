// A transport that passes every call on to another one: for tests that watch or change some of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "hocket/transport.hpp"

namespace hocket::testing {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] const TransportCaps& caps() const noexcept override { return inner_->caps(); }
  [[nodiscard]] std::string address() const override { return inner_->address(); }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override {
    return inner_->connect(addresses);
  }
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override {
    return inner_->can_reach(peer);
  }
  [[nodiscard]] Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override {
    return inner_->open(peer, lane);
  }
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    return inner_->post(ops);
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    return inner_->poll(completions);
  }
  [[nodiscard]] bool has_moved() const noexcept override { return inner_->has_moved(); }
  void give_back(const std::byte* lent) noexcept override { inner_->give_back(lent); }
  [[nodiscard]] int descriptor() const noexcept override { return inner_->descriptor(); }
  [[nodiscard]] bool prepare_to_sleep() noexcept override { return inner_->prepare_to_sleep(); }
  void close(ChannelId channel, const Status& reason) noexcept override {
    inner_->close(channel, reason);
  }
  void close_lanes(std::uint64_t first, std::uint64_t last,
                   const Status& reason) noexcept override {
    inner_->close_lanes(first, last, reason);
  }

 protected:
  const std::unique_ptr<Transport> inner_;
};

}  // namespace hocket::testing
