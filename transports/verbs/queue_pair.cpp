#include "transports/verbs/queue_pair.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/rng.hpp"
#include "transports/verbs/library.hpp"

namespace hocket::verbs {
namespace {

constexpr std::uint32_t inline_bytes_wanted = 192;
/// So many sends without a word of their ends follow each other at most.
constexpr std::uint64_t unsignalled_max = 16;
/// 4.096 us * 2^16, 268 ms: what is lost on the way is sent again after it. Not seven times, which
/// Soft-RoCE takes for ever.
constexpr std::uint8_t timeout_exponent = 16;
constexpr std::uint8_t retries = 6;
/// 0.64 ms; and again without end: the other end is there, but busy.
constexpr std::uint8_t not_ready_timer = 12;
constexpr std::uint8_t not_ready_retries = 7;
constexpr std::uint8_t hops_max = 64;
constexpr std::uint32_t packet_number_mask = 0xFF'FFFF;

Status refused(const Rail& rail, std::string_view step, int error, std::string_view hint) {
  return Status(StatusCode::system_error,
                fmt::format("the RDMA adapter {} can't {}", rail.port().name(), step))
      .with_system_error(error)
      .with_hint(std::string(hint));
}

std::uint32_t random_packet_number() {
  std::array<std::byte, 4> bytes;
  random_bytes(bytes);
  return load_little_endian<std::uint32_t>(bytes.data()) & packet_number_mask;
}

}  // namespace

QueuePair::QueuePair(Rail& rail, std::uint32_t peer, Owned<ibv_qp> pair)
    : rail_(rail), peer_(peer), pair_(std::move(pair)) {}

Result<std::unique_ptr<QueuePair>> QueuePair::make(Rail& rail, std::uint32_t peer) {
  auto made = rail.make_queue_pair(depth, inline_bytes_wanted);
  if (!made.ok()) return made.status();
  std::unique_ptr<QueuePair> pair(new QueuePair(rail, peer, *std::move(made)));
  if (Status status = pair->begin(); !status.ok()) return status;
  return pair;
}

Status QueuePair::begin() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = rail_.port().number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int error =
      api().ibv_modify_qp(pair_.get(), &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return refused(rail_, "prepare a queue pair", error, "see the kernel's log");
  inline_bytes_max_ = inline_bytes_wanted;  // what was asked for is there, or there is no pair
  const Port& port = rail_.port();
  end_ = {.gid = rail_.options().chosen.gid.gid,
          .queue_pair = number(),
          .first_packet = random_packet_number(),
          .lid = port.lid,
          .mtu = static_cast<std::uint8_t>(port.mtu),
          .is_ethernet = port.is_ethernet};
  return {};
}

/// Over Ethernet by GIDs; over InfiniBand by LIDs, and by GIDs beyond the subnet.
ibv_ah_attr QueuePair::way_to(const End& other) const noexcept {
  ibv_ah_attr way = {};
  way.dlid = other.lid;
  way.sl = rail_.options().service_level;
  way.port_num = rail_.port().number;
  const bool is_same_subnet = std::equal(end_.gid.begin(), end_.gid.begin() + 8, other.gid.begin());
  if (!end_.is_ethernet && is_same_subnet) return way;
  way.is_global = 1;
  std::memcpy(way.grh.dgid.raw, other.gid.data(), other.gid.size());
  way.grh.sgid_index = static_cast<std::uint8_t>(rail_.options().chosen.gid.index);
  way.grh.hop_limit = hops_max;
  way.grh.traffic_class = rail_.options().traffic_class;
  return way;
}

Status QueuePair::connect(const End& other) {
  if (other.is_ethernet != end_.is_ethernet) {
    return Status(StatusCode::mismatch,
                  fmt::format("{} is on {}, and the other end on {}", rail_.port().name(),
                              end_.is_ethernet ? "Ethernet" : "InfiniBand",
                              other.is_ethernet ? "Ethernet" : "InfiniBand"))
        .with_hint("HOCKET_IB_HCA names adapters of one network, in one order, on all hosts");
  }
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(end_.mtu, other.mtu));
  attributes.dest_qp_num = other.queue_pair;
  attributes.rq_psn = other.first_packet;
  attributes.min_rnr_timer = not_ready_timer;
  attributes.ah_attr = way_to(other);
  int error =
      api().ibv_modify_qp(pair_.get(), &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) {
    return refused(rail_,
                   fmt::format("reach {} from GID {} ({})", to_string(other.gid),
                               rail_.options().chosen.gid.index, to_string(end_.gid)),
                   error,
                   "is there a route between the two? HOCKET_IB_GID_INDEX chooses our end, and "
                   "HOCKET_TRANSPORT=tcp does without verbs");
  }
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = end_.first_packet;
  attributes.timeout = timeout_exponent;
  attributes.retry_cnt = retries;
  attributes.rnr_retry = not_ready_retries;
  error = api().ibv_modify_qp(pair_.get(), &attributes,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? Status() : refused(rail_, "begin to send", error, "see the kernel's log");
}

Status QueuePair::post(ibv_send_wr& request, Hold hold, bool is_last) noexcept {
  const std::uint64_t number = under_way_.end();
  const bool is_signalled = !hold.is_copied() || is_last || rail_.is_short_of_sends() ||
                            number + 1 - signalled_ >= unsignalled_max;
  request.wr_id = SendId{.peer = peer_,
                         .rail = rail_.options().number,
                         .number = static_cast<std::uint32_t>(number)}
                      .value();
  request.send_flags = 0;
  if (is_signalled) request.send_flags |= IBV_SEND_SIGNALED;
  if (hold.is_copied()) request.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(pair_.get(), &request, &bad); error != 0) {
    return refused(rail_, "take a send", error, "see the kernel's log, and `rdma resource`");
  }
  under_way_.push(hold);
  --rail_.sends_left;
  if (is_signalled) signalled_ = number + 1;
  return {};
}

void QueuePair::stop() noexcept {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  static_cast<void>(api().ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE));
}

}  // namespace hocket::verbs
