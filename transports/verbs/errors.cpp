#include "transports/verbs/errors.hpp"

#include <fmt/format.h>

namespace hocket::verbs {
namespace {

std::string likely_cause(const ibv_wc& completion, const FailureScene& scene) {
  const ChosenPort& ours = scene.ours;
  switch (completion.status) {
    case IBV_WC_RETRY_EXC_ERR:
      if (!scene.is_port_active) {
        return fmt::format("our port {} is down: see the cable, the switch, and `rdma link`",
                           ours.port.name());
      }
      return fmt::format(
          "nothing answers: its process or host is gone, or packets don't get through. See whether "
          "the GID index fits the network (ours is {}, {}; HOCKET_IB_GID_INDEX), whether the "
          "switches carry our MTU ({}), and whether flow control is set up (docs/verbs.md)",
          ours.gid.index, to_string(ours.gid.gid), mtu_bytes(ours.port.mtu));
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the other end was there but had no receive for it: is its process stopped?";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair was broken before: see the first error, here or on the other rank";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_LEN_ERR:
      return "the adapter refuses our own request: this is a defect, or memory was unmapped under "
             "it; see the kernel's log";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return "the other end refused it: see the error that its rank reports; do all have the same "
             "version?";
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
      return fmt::format("the adapter {} or its driver is in trouble: see the kernel's log",
                         ours.port.device);
    default:
      return "see the kernel's log, and the error that the other rank reports";
  }
}

}  // namespace

Status describe_failure(const ibv_wc& completion, const FailureScene& scene,
                        std::string_view adapter_words) {
  return Status(StatusCode::peer_lost,
                fmt::format("rank {} is lost: the RDMA adapter {} says \"{}\" (status {}, vendor's "
                            "code {:#x})",
                            scene.peer, scene.ours.port.name(), adapter_words,
                            static_cast<int>(completion.status), completion.vendor_err))
      .with_peer(static_cast<int>(scene.peer))
      .with_hint(likely_cause(completion, scene));
}

}  // namespace hocket::verbs
