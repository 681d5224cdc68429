// The network interfaces of this host, and which of them the other ranks should reach us by.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

namespace hocket::net {

/// One address of an interface.
struct Interface {
  std::string name = {};
  std::string address = {};  // "10.0.0.7", "fd00::7", "fe80::7%eth0"
  int prefix_bits = 0;
  bool is_up = true;
  bool is_loopback = false;
  bool is_link_local = false;
  int speed_mbps = 0;  // 0 when it is not known

  [[nodiscard]] bool is_v6() const noexcept { return address.find(':') != std::string::npos; }
};

/// In the order in which the system lists them.
[[nodiscard]] Result<std::vector<Interface>> list_interfaces();

struct Wish {
  /// Of HOCKET_INTERFACE: names or beginnings of names, "=name", networks ("10.0.0.0/8"), separated
  /// by commas; "^" before the whole list excludes them. An interface that bears exactly a name of
  /// the list hides those that only begin with it.
  std::string_view pattern = {};
  /// Our address on the way to the store; empty when it is not known.
  std::string_view route = {};
};

/// Among those that are up and match: the address of the route if it is there, else the first, of
/// the route's family if possible; bridges of virtual machines and containers come late, then
/// link-local addresses, and loopback last. Without a pattern the route need not be listed. A
/// pattern that nothing matches, or that can't be read, is an error that lists what there is.
[[nodiscard]] Result<Interface> choose_interface(std::span<const Interface> interfaces,
                                                 const Wish& wish);

/// The addresses by which one rank can be reached over several networks at once; `first` is that by
/// which it is known. `items` is of HOCKET_TCP_INTERFACES: each of them stands for the best
/// interface that it matches, as HOCKET_INTERFACE has it, or is an address of this host. With "^"
/// before them it is those but these that are up and ordinary, of the family and at least half of
/// the speed of the first one's interface, and an interface only once. Without items, `first`.
[[nodiscard]] Result<std::vector<std::string>> choose_addresses(
    std::span<const Interface> interfaces, const std::string& first, std::string_view items);
/// Among the interfaces of this host.
[[nodiscard]] Result<std::vector<std::string>> choose_addresses(const std::string& first,
                                                                std::string_view items);

/// Whether only this host reaches it: 127.0.0.0/8, ::1, "localhost" and names that end in it.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;

}  // namespace hocket::net
