// The ports of this host's adapters, and which of them carry our messages.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

namespace hocket::verbs {

using Gid = std::array<std::uint8_t, 16>;

enum class GidKind : std::uint8_t { infiniband, roce_v1, roce_v2 };

struct GidEntry {
  std::uint32_t index = 0;
  GidKind kind = GidKind::infiniband;
  Gid gid = {};

  [[nodiscard]] bool is_v4() const noexcept;
  [[nodiscard]] bool is_link_local() const noexcept;
};

/// What there is to know of a port before it is used.
struct Port {
  std::string device = {};
  std::uint8_t number = 1;
  bool is_active = false;
  bool is_ethernet = false;
  std::uint16_t lid = 0;
  int mtu = 0;         // IBV_MTU_*
  int speed_mbps = 0;  // about
  std::vector<GidEntry> gids = {};

  /// "mlx5_0:1"
  [[nodiscard]] std::string name() const;
};

/// HOCKET_IB_HCA and HOCKET_IB_GID_INDEX.
struct PortWish {
  std::string_view devices = {};
  std::int64_t gid_index = -1;  // -1: the best one
  std::string_view host = {};   // the address by which the other ranks know us
};

struct ChosenPort {
  Port port = {};
  GidEntry gid = {};
};

/// The ports to be used, each a rail. Without a wish the best one: active, with the address of the
/// host, the fastest, the first. With one, those that its items name, in their order: "mlx5_0" is
/// all ports of devices of which the name begins so, "=mlx5_0" the device itself, "mlx5_0:2" one
/// port; with "^" before the list the best of the others. Fails with unsupported, and lists what
/// there is and why it won't do.
[[nodiscard]] Result<std::vector<ChosenPort>> choose_ports(std::span<const Port> ports,
                                                           const PortWish& wish);

/// RoCE v2 before v1, IPv4 before IPv6, link-local last; on InfiniBand the first. Fails when the
/// wanted index is not there.
[[nodiscard]] Result<GidEntry> choose_gid(const Port& port, std::int64_t wanted_index);

/// Of all adapters of this host. Fails with unsupported where there is no library or no adapter.
[[nodiscard]] Result<std::vector<Port>> list_ports();

[[nodiscard]] std::string to_string(const Gid& gid);

/// 1024 for IBV_MTU_1024.
[[nodiscard]] int mtu_bytes(int mtu) noexcept;

}  // namespace hocket::verbs
