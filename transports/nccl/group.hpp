// A communicator of ours as one of NCCL's, non-blocking: every call ends within a deadline.
#pragma once

#include <memory>
#include <string_view>

#include "hocket/status.hpp"

#include "device/offload.hpp"
#include "device/runtime.hpp"
#include "transports/nccl/library.hpp"

namespace hocket::nccl {

class Group final : public device::OffloadGroup {
 public:
  [[nodiscard]] static Result<std::unique_ptr<device::OffloadGroup>> make(
      const device::OffloadOptions& options, std::string_view id);
  ~Group() override;

  [[nodiscard]] bool can(const Collective& collective) const override;
  [[nodiscard]] Status launch(const Collective& collective, void* stream,
                              const device::Limit& limit) override;
  [[nodiscard]] Status check() override;
  void abort() override;
  [[nodiscard]] Result<std::unique_ptr<device::OffloadGroup>> split(
      int color, int key, const device::Seat& seat, const device::Limit& limit) override;
  [[nodiscard]] void* announce(void* memory, std::size_t bytes) override;
  void forget(void* announced) override;

 private:
  Group(const Functions& functions, const device::Runtime& runtime, const device::Seat& seat)
      : functions_(functions), runtime_(runtime), seat_(seat) {}
  [[nodiscard]] Status prepare();
  /// Until NCCL is done with a call that said so much, or the limit.
  [[nodiscard]] Status settle(Outcome outcome, std::string_view what, const device::Limit& limit);

  const Functions& functions_;
  const device::Runtime runtime_;
  const device::Seat seat_;
  device::Memory token_;  // what a barrier reduces
  Handle comm_ = nullptr;
};

}  // namespace hocket::nccl
