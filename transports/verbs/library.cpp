#include "transports/verbs/library.hpp"

#include <cstddef>
#include <utility>

#include "base/fd.hpp"

namespace hocket::verbs {
namespace {

/// Where the system does not keep registered pages with the parent by itself (before Linux 5.12),
/// the library sees to it. It refuses when the program has begun to use verbs before us, which then
/// has chosen.
Result<Ibverbs> load_for_forks(std::span<const char* const> libraries) {
  auto loaded = load_ibverbs(libraries);
  if (loaded.ok()) static_cast<void>(loaded->ibv_fork_init());
  return loaded;
}

Status without_verbs(Status why) {
  return Status(StatusCode::unsupported, "verbs need libibverbs, which is not here or too old")
      .with_hint("install libibverbs1 (rdma-core 32 or later) and ibverbs-providers")
      .caused_by(std::move(why));
}

}  // namespace

Result<Ibverbs> load_ibverbs(std::span<const char* const> libraries) {
  const Result<Library> library = Library::open(libraries);
  if (!library.ok()) return without_verbs(library.status());
  Ibverbs functions(*library);
  if (!functions.find.status().ok()) return without_verbs(functions.find.status());
  return functions;
}

const Result<Ibverbs>& ibverbs() {
  static constexpr const char* libraries[] = {"libibverbs.so.1"};
  static const Result<Ibverbs> loaded = load_for_forks(libraries);
  return loaded;
}

DeviceList::DeviceList() noexcept {
  watch_forks();
  const ForkPause pause;
  devices_ = api().ibv_get_device_list(&count_);
  if (devices_ == nullptr) count_ = 0;
}

DeviceList::~DeviceList() {
  const ForkPause pause;
  if (devices_ != nullptr) api().ibv_free_device_list(devices_);
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr& to) {
  to = {};
  verbs_context* const extended = verbs_get_ctx(context);
  const bool is_there =
      extended != nullptr &&
      extended->sz >= sizeof(verbs_context) - offsetof(verbs_context, query_port) &&
      extended->query_port != nullptr;
  if (is_there) return extended->query_port(context, port, &to, sizeof to);
  return (api().ibv_query_port)(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&to));
}

}  // namespace hocket::verbs
