#include "transports/verbs/port.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <arpa/inet.h>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "transports/verbs/library.hpp"

namespace hocket::verbs {
namespace {

constexpr std::array<std::uint8_t, 12> v4_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool has_address(const Port& port, std::string_view host) {
  return std::ranges::any_of(port.gids,
                             [&](const GidEntry& each) { return to_string(each.gid) == host; });
}

bool fits(const Port& port, std::string_view item) {
  const bool is_exact = item.starts_with('=');
  if (is_exact) item.remove_prefix(1);
  const std::size_t colon = item.find(':');
  if (colon != std::string_view::npos) {
    const auto number = parse_integer(item.substr(colon + 1));
    if (!number || *number != port.number) return false;
    item = item.substr(0, colon);
  }
  return is_exact || colon != std::string_view::npos ? port.device == item
                                                     : port.device.starts_with(item);
}

std::string describe(std::span<const Port> ports) {
  std::string text;
  for (const Port& port : ports) {
    text += fmt::format("{}{} is {}, {}", text.empty() ? "" : "; ", port.name(),
                        port.is_active ? "active" : "down",
                        port.is_ethernet ? "Ethernet" : "InfiniBand");
  }
  return text.empty() ? "there are none" : text;
}

/// Better ones first.
auto rank_of(const Port& port, std::string_view host) {
  return std::tuple(!port.is_active, !has_address(port, host), -port.speed_mbps);
}

const Port* best(std::span<const Port> ports, std::string_view host, std::string_view excluded) {
  const Port* found = nullptr;
  for (const Port& port : ports) {
    bool is_out = !port.is_active;
    for (std::string_view rest = excluded; !rest.empty();) {
      is_out = fits(port, trimmed(take_until(rest, ","))) || is_out;
    }
    if (is_out) continue;
    if (found == nullptr || rank_of(port, host) < rank_of(*found, host)) found = &port;
  }
  return found;
}

Result<std::vector<const Port*>> named(std::span<const Port> ports, std::string_view items) {
  std::vector<const Port*> found;
  while (!items.empty()) {
    const std::string_view item = trimmed(take_until(items, ","));
    bool is_there = false;
    for (const Port& port : ports) {
      if (item.empty() || !port.is_active || !fits(port, item)) continue;
      is_there = true;
      if (std::ranges::find(found, &port) == found.end()) found.push_back(&port);
    }
    if (is_there) continue;
    return Status(StatusCode::unsupported,
                  fmt::format("HOCKET_IB_HCA names {}, which no active port of an adapter fits: {}",
                              quote(item), describe(ports)))
        .with_hint("see `rdma link`, or leave HOCKET_IB_HCA away");
  }
  return found;
}

int gid_rank(const GidEntry& entry) {
  if (entry.kind == GidKind::infiniband) return 0;
  const int kind = entry.kind == GidKind::roce_v2 ? 0 : 3;
  if (entry.is_link_local()) return kind + 2;
  return kind + (entry.is_v4() ? 0 : 1);
}

// --- of the system ---

struct CloseDevice {
  void operator()(ibv_context* context) const { api().ibv_close_device(context); }
};

int speed_of(const ibv_port_attr& attributes) {
  constexpr std::pair<int, int> lanes_mbps[] = {{1, 2'500},   {2, 5'000},    {4, 10'000},
                                                {8, 10'000},  {16, 14'000},  {32, 25'000},
                                                {64, 50'000}, {128, 100'000}};
  constexpr std::pair<int, int> widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  int speed = 0;
  for (const auto& [code, mbps] : lanes_mbps) {
    if (code == attributes.active_speed) speed = mbps;
  }
  for (const auto& [code, lanes] : widths) {
    if (code == attributes.active_width) speed *= lanes;
  }
  return speed;
}

/// All at once: tables have up to a thousand places, most of them empty.
std::vector<GidEntry> gids_of(ibv_context* context, std::uint8_t port, int places) {
  std::vector<ibv_gid_entry> entries(static_cast<std::size_t>(std::max(places, 1)));
  const ssize_t count =
      api()._ibv_query_gid_table(context, entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  entries.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  std::vector<GidEntry> gids;
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num != port) continue;
    GidEntry& to = gids.emplace_back(GidEntry{.index = entry.gid_index});
    std::memcpy(to.gid.data(), entry.gid.raw, to.gid.size());
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V1) to.kind = GidKind::roce_v1;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) to.kind = GidKind::roce_v2;
  }
  return gids;
}

void add_ports(ibv_device* device, std::vector<Port>& ports) {
  const std::unique_ptr<ibv_context, CloseDevice> context(api().ibv_open_device(device));
  ibv_device_attr attributes = {};
  if (context == nullptr || api().ibv_query_device(context.get(), &attributes) != 0) return;
  for (std::uint8_t i = 1; i <= attributes.phys_port_cnt; ++i) {
    ibv_port_attr port = {};
    if (query_port(context.get(), i, port) != 0) continue;
    const int places = attributes.phys_port_cnt * port.gid_tbl_len;  // of all ports
    ports.push_back({.device = api().ibv_get_device_name(device),
                     .number = i,
                     .is_active = port.state == IBV_PORT_ACTIVE,
                     .is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET,
                     .lid = port.lid,
                     .mtu = port.active_mtu,
                     .speed_mbps = speed_of(port),
                     .gids = gids_of(context.get(), i, places)});
  }
}

}  // namespace

bool GidEntry::is_v4() const noexcept {
  return std::equal(v4_prefix.begin(), v4_prefix.end(), gid.begin());
}

bool GidEntry::is_link_local() const noexcept { return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80; }

std::string Port::name() const { return fmt::format("{}:{}", device, number); }

Result<GidEntry> choose_gid(const Port& port, std::int64_t wanted_index) {
  std::optional<GidEntry> found;
  for (const GidEntry& each : port.gids) {
    if (wanted_index >= 0 && each.index != wanted_index) continue;
    if (!found || gid_rank(each) < gid_rank(*found)) found = each;
  }
  if (found) return *found;
  if (wanted_index < 0) {
    return Status(StatusCode::unsupported, fmt::format("{} has no GID", port.name()))
        .with_hint("give its network interface an IP address, and switch it on");
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("{} has no GID of index {}", port.name(), wanted_index))
      .with_hint("HOCKET_IB_GID_INDEX names it; `rdma link` and `ibv_devinfo -v` show them");
}

Result<std::vector<ChosenPort>> choose_ports(std::span<const Port> ports, const PortWish& wish) {
  std::vector<const Port*> found;
  const bool excludes = wish.devices.starts_with('^');
  if (wish.devices.empty() || excludes) {
    const Port* const one = best(ports, wish.host, wish.devices.substr(excludes ? 1 : 0));
    if (one != nullptr) found.push_back(one);
  } else {
    auto all = named(ports, wish.devices);
    if (!all.ok()) return all.status();
    found = *std::move(all);
  }
  if (found.empty()) {
    return Status(StatusCode::unsupported,
                  fmt::format("no port of an RDMA adapter is active{}: {}",
                              excludes ? " but those that HOCKET_IB_HCA excludes" : "",
                              describe(ports)))
        .with_hint("see `rdma link` and `ibv_devinfo`; is the cable in, the interface up?");
  }
  found.resize(std::min(found.size(), limits::verbs_rails_max));
  std::vector<ChosenPort> chosen;
  for (const Port* const port : found) {
    const auto gid = choose_gid(*port, wish.gid_index);
    if (!gid.ok() && port->is_ethernet) return gid.status();
    chosen.push_back({.port = *port, .gid = gid.ok() ? *gid : GidEntry()});
  }
  return chosen;
}

Result<std::vector<Port>> list_ports() {
  if (!ibverbs().ok()) return ibverbs().status();
  const DeviceList devices;
  std::vector<Port> ports;
  for (ibv_device* const device : devices) add_ports(device, ports);
  if (!ports.empty()) return ports;
  if (devices.empty()) {
    return Status(StatusCode::unsupported, "this host has no RDMA adapter")
        .with_hint("see `rdma link`; is the adapter's driver loaded, and ib_uverbs?");
  }
  return Status(StatusCode::unsupported, "no RDMA adapter of this host can be opened")
      .with_hint("may this user open /dev/infiniband/uverbs*?");
}

std::string to_string(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const bool is_v4 = std::equal(v4_prefix.begin(), v4_prefix.end(), gid.begin());
  ::inet_ntop(is_v4 ? AF_INET : AF_INET6, gid.data() + (is_v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

int mtu_bytes(int mtu) noexcept { return mtu >= 1 && mtu <= 5 ? 128 << mtu : 0; }

}  // namespace hocket::verbs
