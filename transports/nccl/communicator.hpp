// An NCCL communicator for one of ours, non-blocking: every call ends within a deadline.
#pragma once

#include <memory>
#include <string_view>

#include "hocket/status.hpp"

#include "device/offload.hpp"
#include "device/runtime.hpp"
#include "transports/nccl/library.hpp"

namespace hocket::nccl {

class NcclCommunicator final : public device::OffloadCommunicator {
 public:
  [[nodiscard]] static Result<std::unique_ptr<device::OffloadCommunicator>> make(
      const device::OffloadOptions& options, std::string_view id);
  ~NcclCommunicator() override;

  [[nodiscard]] bool can(const Collective& collective) const override;
  [[nodiscard]] Status launch(const Collective& collective, void* stream,
                              const device::Limit& limit) override;
  [[nodiscard]] Status check() override;
  void abort() override;
  [[nodiscard]] Result<std::unique_ptr<device::OffloadCommunicator>> split(
      int color, int key, const Position& position, const device::Limit& limit) override;
  [[nodiscard]] void* announce(void* memory, std::size_t bytes) override;
  void forget(void* announced) override;

 private:
  NcclCommunicator(const Functions& functions, const device::Runtime& runtime,
                   const Position& position)
      : functions_(functions), runtime_(runtime), position_(position) {}
  [[nodiscard]] Status prepare();
  /// Until NCCL is done with a call that said so much, or the limit.
  [[nodiscard]] Status settle(Outcome outcome, std::string_view what, const device::Limit& limit);

  const Functions& functions_;
  const device::Runtime runtime_;
  const Position position_;
  device::Memory token_;  // what a barrier reduces
  Handle comm_ = nullptr;
};

}  // namespace hocket::nccl
