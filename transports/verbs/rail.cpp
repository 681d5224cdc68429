#include "transports/verbs/rail.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>

#include <fmt/format.h>

#include "transports/verbs/library.hpp"

namespace hocket::verbs {
namespace {

/// Sends under way on a whole rail: with fewer one had better do without it, and more are of no use
/// to an adapter (4 MiB of completions).
constexpr std::uint32_t sends_min = 64;
constexpr std::uint32_t sends_max = 1 << 16;

/// Errors that come are read when there are any, and never waited for.
void set_nonblocking(int file) noexcept {
  ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK);
}

Status refused(const Port& port, std::string_view what, int error) {
  const bool is_memory = error == ENOMEM;
  return Status(is_memory ? StatusCode::limit_exceeded : StatusCode::system_error,
                fmt::format("the RDMA adapter {} gives us no {}", port.name(), what))
      .with_system_error(error)
      .with_hint(is_memory ? "raise the limit of locked memory (ulimit -l unlimited), or end "
                             "other programs that use the adapter: `rdma resource`"
                           : "see the kernel's log, and `rdma resource`");
}

Owned<ibv_context> open_device(const std::string& name) {
  for (ibv_device* const device : DeviceList()) {
    if (name == api().ibv_get_device_name(device)) {
      return Owned<ibv_context>(api().ibv_open_device(device));
    }
  }
  return nullptr;
}

/// For people, of those that are worth a word.
std::string_view words_for(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
      return "the port is active again";
    case IBV_EVENT_PORT_ERR:
      return "the port is down";
    case IBV_EVENT_LID_CHANGE:
      return "the port has another LID";
    case IBV_EVENT_PKEY_CHANGE:
      return "the port has other partitions";
    case IBV_EVENT_GID_CHANGE:
      return "the port has other GIDs";
    case IBV_EVENT_SM_CHANGE:
      return "there is another subnet manager";
    case IBV_EVENT_CQ_ERR:
      return "its completion queue is broken";
    case IBV_EVENT_SRQ_ERR:
      return "its receive queue is broken";
    case IBV_EVENT_DEVICE_FATAL:
      return "the adapter is broken or has been removed";
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return "a queue pair is broken";
    default:
      return "";
  }
}

}  // namespace

void Release::operator()(ibv_context* object) const noexcept { api().ibv_close_device(object); }
void Release::operator()(ibv_pd* object) const noexcept { api().ibv_dealloc_pd(object); }
void Release::operator()(ibv_comp_channel* object) const noexcept {
  api().ibv_destroy_comp_channel(object);
}
void Release::operator()(ibv_cq* object) const noexcept { api().ibv_destroy_cq(object); }
void Release::operator()(ibv_srq* object) const noexcept { api().ibv_destroy_srq(object); }
void Release::operator()(ibv_qp* object) const noexcept { api().ibv_destroy_qp(object); }

Result<std::unique_ptr<Rail>> Rail::open(const RailOptions& options) {
  std::unique_ptr<Rail> rail(new Rail(options));
  if (Status status = rail->make_all(); !status.ok()) return status;
  return rail;
}

Status Rail::make_all() {
  context_ = open_device(port().device);
  if (context_ == nullptr) {
    return Status(StatusCode::unsupported,
                  fmt::format("the RDMA adapter {} can't be opened", port().device))
        .with_system_error(errno)
        .with_hint("may this user open /dev/infiniband/uverbs*?");
  }
  set_nonblocking(async_descriptor());
  if (Status status = check_limits(); !status.ok()) return status;
  domain_.reset(api().ibv_alloc_pd(context_.get()));
  if (domain_ == nullptr) return refused(port(), "protection domain", errno);
  channel_.reset(api().ibv_create_comp_channel(context_.get()));
  if (channel_ == nullptr) return refused(port(), "completion channel", errno);
  set_nonblocking(channel_->fd);
  const auto entries = static_cast<int>(options_.receives + sends_left);
  completions_.reset(api().ibv_create_cq(context_.get(), entries, nullptr, channel_.get(), 0));
  if (completions_ == nullptr) return refused(port(), "completion queue", errno);
  ibv_srq_init_attr wanted = {};
  wanted.attr = {.max_wr = options_.receives, .max_sge = 1, .srq_limit = 0};
  receives_.reset(api().ibv_create_srq(domain_.get(), &wanted));
  if (receives_ == nullptr) return refused(port(), "shared receive queue", errno);
  return {};
}

Status Rail::check_limits() {
  ibv_device_attr limits = {};
  if (const int error = api().ibv_query_device(context_.get(), &limits); error != 0) {
    return refused(port(), "word on its limits", error);
  }
  const struct {
    const char* what;
    std::uint64_t needed;
    int most;
  } checks[] = {{"completion queue entries", options_.receives + sends_min, limits.max_cqe},
                {"shared receive queue entries", options_.receives, limits.max_srq_wr},
                {"shared receive queues", 1, limits.max_srq},
                {"regions", 16, limits.max_mr},
                {"requests of a queue pair", 64, limits.max_qp_wr},
                {"queue pairs", 1, limits.max_qp}};
  for (const auto& check : checks) {
    if (static_cast<std::int64_t>(check.needed) <= check.most) continue;
    return Status(StatusCode::unsupported,
                  fmt::format("the RDMA adapter {} has at most {} {}, and we need {}",
                              port().device, check.most, check.what, check.needed))
        .with_hint("HOCKET_IB_HCA chooses another adapter, HOCKET_TRANSPORT=tcp does without");
  }
  const auto room = static_cast<std::uint32_t>(limits.max_cqe) - options_.receives;
  sends_left = std::clamp(options_.sends, sends_min, std::min(sends_max, room));
  is_short_of_sends_ = sends_left < options_.sends;
  return {};
}

Result<Owned<ibv_qp>> Rail::make_queue_pair(std::uint32_t sends, std::uint32_t inlined) {
  ibv_qp_init_attr wanted = {};
  wanted.send_cq = completions_.get();
  wanted.recv_cq = completions_.get();
  wanted.srq = receives_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = sends;
  wanted.cap.max_send_sge = 3;
  wanted.cap.max_inline_data = inlined;
  Owned<ibv_qp> made(api().ibv_create_qp(domain_.get(), &wanted));
  if (made == nullptr) return refused(port(), "queue pair", errno);
  return made;
}

Status Rail::post_receive(std::uint64_t id, const std::byte* to, std::uint32_t bytes,
                          std::uint32_t key) noexcept {
  ibv_sge memory = {.addr = reinterpret_cast<std::uintptr_t>(to), .length = bytes, .lkey = key};
  ibv_recv_wr receive = {};
  receive.wr_id = id;
  receive.sg_list = bytes == 0 ? nullptr : &memory;
  receive.num_sge = bytes == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(receives_.get(), &receive, &bad);
  return error == 0 ? Status() : refused(port(), "receive", error);
}

std::size_t Rail::poll(std::span<ibv_wc> completions) noexcept {
  const int count =
      ibv_poll_cq(completions_.get(), static_cast<int>(completions.size()), completions.data());
  return static_cast<std::size_t>(std::max(count, 0));
}

void Rail::arm() noexcept { static_cast<void>(ibv_req_notify_cq(completions_.get(), 0)); }

void Rail::take_events() noexcept {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  unsigned count = 0;
  while (api().ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ++count;
  if (count > 0) api().ibv_ack_cq_events(completions_.get(), count);
}

std::string Rail::take_async_event(bool& is_fatal) {
  ibv_async_event event = {};
  is_fatal = false;
  while (api().ibv_get_async_event(context_.get(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    api().ibv_ack_async_event(&event);
    is_fatal =
        type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_SRQ_ERR;
    const std::string_view words = words_for(type);
    if (!words.empty()) return fmt::format("the RDMA adapter {}: {}", port().name(), words);
  }
  return {};
}

bool Rail::is_port_active() const noexcept {
  ibv_port_attr attributes = {};
  return query_port(context_.get(), port().number, attributes) == 0 &&
         attributes.state == IBV_PORT_ACTIVE;
}

}  // namespace hocket::verbs
