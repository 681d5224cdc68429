// NCCL as the offload of this build.
#include <string>

#include "device/offload.hpp"
#include "transports/nccl/communicator.hpp"
#include "transports/nccl/library.hpp"

namespace hocket::nccl {
namespace {

Result<std::string> version() {
  const Result<Functions>& functions = library();
  if (!functions.ok()) return functions.status();
  return version_text((*functions).version);
}

Result<std::string> make_id() {
  const Result<Functions>& functions = library();
  if (!functions.ok()) return functions.status();
  UniqueId id = {};
  const Outcome outcome = (*functions).ncclGetUniqueId(&id);
  if (outcome != success) return (*functions).failure(outcome, "ncclGetUniqueId", nullptr);
  return std::string(id.bytes.data(), id.bytes.size());
}

constexpr device::OffloadKind kind = {
    .name = "nccl",
    .summary = "collectives of device memory, by NVIDIA's library",
    .version = version,
    .make_id = make_id,
    .make = NcclCommunicator::make,
};

}  // namespace
}  // namespace hocket::nccl

namespace hocket::device {

const OffloadKind* built_in_offload() noexcept { return &nccl::kind; }

}  // namespace hocket::device
