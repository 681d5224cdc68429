// A transport that moves nothing: every op is over at once. What is left is what the engine does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hocket/transport.hpp"

namespace hocket::bench {

class NullTransport : public Transport {
 public:
  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return {}; }
  [[nodiscard]] Status connect(std::span<const std::string> /*addresses*/) override { return {}; }
  [[nodiscard]] Status can_reach(std::uint32_t /*peer*/) const override { return {}; }
  [[nodiscard]] Result<ChannelId> open(std::uint32_t /*peer*/, std::uint64_t /*lane*/) override {
    return channels_++;
  }
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    for (const TransportOp& op : ops) over_.push_back({op.token, op.bytes(), op.tag});
    return ops.size();
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    std::size_t count = 0;
    for (; count < completions.size() && told_ < over_.size(); ++count, ++told_) {
      completions[count].token = over_[told_].token;
      completions[count].bytes = over_[told_].bytes;
      completions[count].tag = over_[told_].tag;
    }
    if (told_ == over_.size()) {
      over_.clear();
      told_ = 0;
    }
    return count;
  }
  void give_back(const std::byte* /*lent*/) noexcept override {}
  [[nodiscard]] int descriptor() const noexcept override { return -1; }
  [[nodiscard]] bool prepare_to_sleep() noexcept override { return false; }
  void close(ChannelId /*channel*/, const Status& /*reason*/) noexcept override {}
  void close_lanes(std::uint64_t /*first*/, std::uint64_t /*last*/,
                   const Status& /*reason*/) noexcept override {}

 private:
  struct Over {
    std::uint64_t token;
    std::uint64_t bytes;
    std::uint64_t tag;
  };

  TransportCaps caps_;
  ChannelId channels_ = 0;
  std::vector<Over> over_;
  std::size_t told_ = 0;  // of these
};

}  // namespace hocket::bench
