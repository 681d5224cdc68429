#include "simulator/links.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hocket::sim {
namespace {

std::uint32_t groups(std::uint32_t members, std::uint32_t per_group) noexcept {
  return per_group == 0 ? 0 : (members - 1) / per_group + 1;
}

}  // namespace

Links::Links(const choose::Network& network, std::uint32_t ranks)
    : network_(network),
      nics_(std::min(network.nics_per_host, network.ranks_per_host)),
      host_latency_(to_time(network.host_latency)),
      host_overhead_(to_time(network.host_overhead)),
      latency_(to_time(network.latency)),
      overhead_(to_time(network.overhead)),
      hop_latency_(to_time(network.hop_latency)) {
  const std::uint32_t hosts = groups(ranks, network.ranks_per_host);
  const std::uint32_t leaves = groups(hosts, network.hosts_per_leaf);
  const std::uint32_t pods = leaves == 0 ? 0 : groups(leaves, network.leaves_per_pod);
  const double nic = network.nic_bandwidth * (1 - network.background);
  burst_ = Pace(nic).of(static_cast<std::uint64_t>(network.burst));
  const double leaf = nic * nics_ * network.hosts_per_leaf / network.leaf_oversubscription;
  const double pod = leaf * network.leaves_per_pod / network.pod_oversubscription;
  add(rank_out, ranks, network.host_bandwidth);
  add(rank_in, ranks, network.host_bandwidth);
  add(memory, hosts, network.memory_bandwidth);
  add(nic_out, std::uint64_t{hosts} * nics_, nic);
  add(nic_in, std::uint64_t{hosts} * nics_, nic);
  add(leaf_up, leaves, leaf);
  add(leaf_down, leaves, leaf);
  add(pod_up, pods, pod);
  add(pod_down, pods, pod);
  states_.resize(first_.back());
}

void Links::add(Kind kind, std::uint64_t count, double bandwidth) {
  first_[kind + 1U] = first_[kind] + static_cast<Link>(count);
  paces_[kind] = Pace(bandwidth);
}

Links::Way Links::way(std::uint32_t from, std::uint32_t to) const noexcept {
  const std::uint32_t source = host_of(from);
  const std::uint32_t target = host_of(to);
  if (source == target) {
    return {{first_[rank_out] + from, first_[memory] + source, first_[rank_in] + to},
            3,
            host_latency_,
            host_overhead_};
  }
  Way way = {{first_[nic_out] + nic_of(from)}, 1, latency_, overhead_};
  const auto climb = [&](Link link) { way.links[way.count++] = link; };
  const std::uint32_t per_leaf = network_.hosts_per_leaf;
  const bool leaves_leaf = per_leaf > 0 && source / per_leaf != target / per_leaf;
  if (leaves_leaf) {
    const std::uint32_t up = source / per_leaf;
    const std::uint32_t down = target / per_leaf;
    const std::uint32_t per_pod = network_.leaves_per_pod;
    climb(first_[leaf_up] + up);
    way.latency += hop_latency_;
    if (per_pod > 0 && up / per_pod != down / per_pod) {
      climb(first_[pod_up] + up / per_pod);
      climb(first_[pod_down] + down / per_pod);
      way.latency += hop_latency_;
    }
    climb(first_[leaf_down] + down);
  }
  climb(first_[nic_in] + nic_of(to));
  return way;
}

Links::Way Links::way_among_alike() const noexcept {
  if (network_.ranks_per_host > 1) return way(0, 0);
  return {{first_[nic_out], first_[nic_in]}, 2, latency_, overhead_};
}

Links::Departure Links::depart(const Way& way, std::uint64_t bytes, Time now) noexcept {
  const Time begin = when_free(way.links.front(), now);
  return {begin, cross(way.links.front(), bytes, now)};
}

Time Links::pass(const Way& way, std::uint64_t bytes, Time now) noexcept {
  Time last = now;
  for (std::uint32_t i = 1; i < way.count; ++i) {
    last = std::max(last, cross(way.links[i], bytes, now));
  }
  return last;
}

Time Links::cross(Link link, std::uint64_t bytes, Time now) noexcept {
  const Time taken = paces_[kind_of(link)].of(bytes);
  State& state = states_[link];
  state.free = std::max(now, state.free) + taken;
  state.busy += taken;
  return when_free(link, now);
}

Time Links::when_free(Link link, Time now) const noexcept {
  const Kind kind = kind_of(link);
  const Time burst = kind == nic_out || kind == nic_in ? burst_ : 0;
  return std::max(now + burst, states_[link].free) - burst;
}

Link Links::busiest() const noexcept {
  const auto found = std::ranges::max_element(states_, {}, &State::busy);
  return static_cast<Link>(found - states_.begin());
}

Links::Kind Links::kind_of(Link link) const noexcept {
  std::uint32_t kind = 0;
  while (link >= first_[kind + 1U]) ++kind;
  return static_cast<Kind>(kind);
}

std::string Links::name(Link link) const {
  const Kind kind = kind_of(link);
  const std::uint32_t number = link - first_[kind];
  switch (kind) {
    case rank_out:
      return fmt::format("rank {}, out", number);
    case rank_in:
      return fmt::format("rank {}, in", number);
    case memory:
      return fmt::format("host {}, memory", number);
    case nic_out:
    case nic_in:
      return fmt::format("host {}, NIC {}, {}", number / nics_, number % nics_,
                         kind == nic_out ? "out" : "in");
    case leaf_up:
    case leaf_down:
      return fmt::format("leaf switch {}, {}", number, kind == leaf_up ? "up" : "down");
    default:
      return fmt::format("pod {}, {}", number, kind == pod_up ? "up" : "down");
  }
}

}  // namespace hocket::sim
