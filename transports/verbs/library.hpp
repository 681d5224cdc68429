// The functions of libibverbs that we call, found at run time. What moves data (post, poll, arm) is
// in the adapter's own driver, which verbs.h calls through the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <infiniband/verbs.h>

#include "hocket/status.hpp"

#include "base/library.hpp"

namespace hocket::verbs {

struct Ibverbs {
  explicit Ibverbs(Library library) : find(std::move(library)) {}
  FunctionFinder find;

#define HOCKET_FUNCTION(name) decltype(&::name) name = find(#name)
  HOCKET_FUNCTION(_ibv_query_gid_table);
  HOCKET_FUNCTION(ibv_ack_async_event);
  HOCKET_FUNCTION(ibv_ack_cq_events);
  HOCKET_FUNCTION(ibv_alloc_pd);
  HOCKET_FUNCTION(ibv_close_device);
  HOCKET_FUNCTION(ibv_create_comp_channel);
  HOCKET_FUNCTION(ibv_create_cq);
  HOCKET_FUNCTION(ibv_create_qp);
  HOCKET_FUNCTION(ibv_create_srq);
  HOCKET_FUNCTION(ibv_dealloc_pd);
  HOCKET_FUNCTION(ibv_dereg_mr);
  HOCKET_FUNCTION(ibv_destroy_comp_channel);
  HOCKET_FUNCTION(ibv_destroy_cq);
  HOCKET_FUNCTION(ibv_destroy_qp);
  HOCKET_FUNCTION(ibv_destroy_srq);
  HOCKET_FUNCTION(ibv_fork_init);
  HOCKET_FUNCTION(ibv_free_device_list);
  HOCKET_FUNCTION(ibv_get_async_event);
  HOCKET_FUNCTION(ibv_get_cq_event);
  HOCKET_FUNCTION(ibv_get_device_list);
  HOCKET_FUNCTION(ibv_get_device_name);
  HOCKET_FUNCTION(ibv_modify_qp);
  HOCKET_FUNCTION(ibv_open_device);
  HOCKET_FUNCTION(ibv_query_device);
  HOCKET_FUNCTION(ibv_query_port);
  HOCKET_FUNCTION(ibv_reg_mr);
  HOCKET_FUNCTION(ibv_wc_status_str);
#undef HOCKET_FUNCTION

  // From rdma-core 34 on; null where it is not there. Nor may verbs.h have it.
  using RegisterDmaBuf = ibv_mr*(ibv_pd* domain, std::uint64_t offset, std::size_t bytes,
                                 std::uint64_t address, int dma_buf, int access);
  RegisterDmaBuf* register_dma_buf = find.if_there("ibv_reg_dmabuf_mr");
};

/// All of them, from the first of these libraries that can be loaded. Fails with unsupported.
[[nodiscard]] Result<Ibverbs> load_ibverbs(std::span<const char* const> libraries);

/// Those of libibverbs.so.1; loaded once, and told that this process may fork. Any thread.
[[nodiscard]] const Result<Ibverbs>& ibverbs();

/// For what is only called where ibverbs() has been asked before.
[[nodiscard]] inline const Ibverbs& api() { return *ibverbs(); }

/// The adapters of this host. libibverbs holds a lock while it lists them. A child made by fork()
/// at that moment would find it locked for ever, so forks wait.
class DeviceList {
 public:
  DeviceList() noexcept;
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList();

  [[nodiscard]] auto begin() const noexcept { return devices_; }
  [[nodiscard]] auto end() const noexcept { return devices_ + count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

 private:
  ibv_device** devices_ = nullptr;
  int count_ = 0;
};

/// As verbs.h has it, whose own would have to be linked with the library. 0 or an errno.
[[nodiscard]] int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr& to);

}  // namespace hocket::verbs
