// Stands in for nccl.cpp where Hocket is built without it.
#include "device/offload.hpp"

namespace hocket::device {

const OffloadKind* built_in_offload() noexcept { return nullptr; }

}  // namespace hocket::device
