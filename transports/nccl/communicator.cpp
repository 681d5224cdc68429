#include "transports/nccl/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "transports/nccl/calls.hpp"

namespace hocket::nccl {
namespace {

constexpr Duration look = std::chrono::microseconds(20);
/// For the other ranks to leave, too.
constexpr Duration farewell = std::chrono::seconds(2);

Status too_late(std::string_view what) {
  return Status(StatusCode::timeout, fmt::format("{} was not over in time", what))
      .with_hint("a rank may be missing; or raise the timeout");
}

/// Whether a call may still wait.
Status check_limit(const device::Limit& limit, std::string_view what) {
  const Instant now = monotonic_clock().now();
  if (limit.deadline.passed(now)) return too_late(what);
  return limit.side == nullptr ? Status() : limit.side->loss(now);
}

}  // namespace

Result<std::unique_ptr<device::OffloadCommunicator>> NcclCommunicator::make(
    const device::OffloadOptions& options, std::string_view id) {
  const Result<Functions>& functions = library();
  if (!functions.ok()) return functions.status();
  std::unique_ptr<NcclCommunicator> group(
      new NcclCommunicator(*functions, options.runtime, options.position));
  if (Status status = group->prepare(); !status.ok()) return status;
  UniqueId unique = {};
  std::memcpy(unique.bytes.data(), id.data(), std::min(id.size(), unique.bytes.size()));
  Config config = {};
  config.blocking = 0;
  const Outcome outcome = group->functions_.ncclCommInitRankConfig(
      &group->comm_, static_cast<int>(options.position.size), unique,
      static_cast<int>(options.position.rank), &config);
  Status status = group->settle(outcome, "ncclCommInitRankConfig", options.limit);
  if (!status.ok()) {
    group->abort();
    return status;
  }
  return std::unique_ptr<device::OffloadCommunicator>(std::move(group));
}

Status NcclCommunicator::prepare() {
  auto token = device::Memory::make(runtime_, MemoryKind::device, 1);
  if (!token.ok()) return token.status();
  token_ = std::move(*token);
  return {};
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ == nullptr) return;
  const device::Limit limit = {.deadline = Deadline::after(monotonic_clock(), farewell)};
  if (settle(functions_.ncclCommFinalize(comm_), "ncclCommFinalize", limit).ok()) {
    (void)functions_.ncclCommDestroy(comm_);
  } else {
    abort();
  }
}

bool NcclCommunicator::can(const Collective& collective) const { return nccl::can(collective); }

Status NcclCommunicator::launch(const Collective& collective, void* stream,
                                const device::Limit& limit) {
  const Outcome outcome = call(functions_, collective, position_, comm_, stream, token_.data());
  if (outcome == success) return {};
  return settle(outcome, name(collective.kind), limit);
}

Status NcclCommunicator::settle(Outcome outcome, std::string_view what,
                                const device::Limit& limit) {
  while (outcome == success || outcome == in_progress) {
    if (comm_ == nullptr) return functions_.failure(internal_error, what, nullptr);
    Outcome state = success;
    outcome = functions_.ncclCommGetAsyncError(comm_, &state);
    if (outcome != success) break;
    if (state == success) return {};
    outcome = state;
    if (state != in_progress) break;
    if (Status status = check_limit(limit, what); !status.ok()) return status;
    std::this_thread::sleep_for(look);
  }
  return functions_.failure(outcome, what, comm_);
}

Status NcclCommunicator::check() {
  Outcome state = success;
  const Outcome outcome = functions_.ncclCommGetAsyncError(comm_, &state);
  if (outcome != success) return functions_.failure(outcome, "ncclCommGetAsyncError", comm_);
  if (state == success || state == in_progress) return {};
  return functions_.failure(state, "kernels under way", comm_);
}

void NcclCommunicator::abort() {
  if (comm_ == nullptr) return;
  (void)functions_.ncclCommAbort(comm_);
  comm_ = nullptr;
}

/// The new handle may be written by a thread of NCCL's own.
Result<std::unique_ptr<device::OffloadCommunicator>> NcclCommunicator::split(
    int color, int key, const Position& position, const device::Limit& limit) {
  std::unique_ptr<NcclCommunicator> part(new NcclCommunicator(functions_, runtime_, position));
  if (Status status = part->prepare(); !status.ok()) return status;
  const bool is_member = color >= 0;
  const Outcome outcome =
      functions_.ncclCommSplit(comm_, is_member ? color : no_color, key, &part->comm_, nullptr);
  if (Status status = settle(outcome, "ncclCommSplit", limit); !status.ok()) {
    // It may still write the handle.
    (void)part.release();
    return status;
  }
  if (!is_member) return std::unique_ptr<device::OffloadCommunicator>();
  while (std::atomic_ref(part->comm_).load() == nullptr) {
    if (Status status = check_limit(limit, "ncclCommSplit"); !status.ok()) {
      (void)part.release();
      return status;
    }
    std::this_thread::sleep_for(look);
  }
  if (Status status = part->settle(in_progress, "ncclCommSplit", limit); !status.ok()) {
    part->abort();
    return status;
  }
  return std::unique_ptr<device::OffloadCommunicator>(std::move(part));
}

void* NcclCommunicator::announce(void* memory, std::size_t bytes) {
  void* handle = nullptr;
  if (functions_.ncclCommRegister == nullptr || memory == nullptr || bytes == 0) return nullptr;
  // A library that can't is a library that goes without.
  return functions_.ncclCommRegister(comm_, memory, bytes, &handle) == success ? handle : nullptr;
}

void NcclCommunicator::forget(void* announced) {
  if (comm_ != nullptr) (void)functions_.ncclCommDeregister(comm_, announced);
}

}  // namespace hocket::nccl
