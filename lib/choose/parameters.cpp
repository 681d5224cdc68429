#include "choose/parameters.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::choose {
namespace {

enum class Unit : std::uint8_t { seconds, bytes_per_second, bytes, none };

struct Field {
  std::string_view name;
  Unit unit;
  std::variant<double Network::*, std::uint32_t Network::*> member;
};

constexpr Field fields[] = {
    {"ranks_per_host", Unit::none, &Network::ranks_per_host},
    {"nics_per_host", Unit::none, &Network::nics_per_host},
    {"host_latency", Unit::seconds, &Network::host_latency},
    {"latency", Unit::seconds, &Network::latency},
    {"hop_latency", Unit::seconds, &Network::hop_latency},
    {"host_overhead", Unit::seconds, &Network::host_overhead},
    {"overhead", Unit::seconds, &Network::overhead},
    {"eager_bytes", Unit::bytes, &Network::eager_bytes},
    {"host_bandwidth", Unit::bytes_per_second, &Network::host_bandwidth},
    {"memory_bandwidth", Unit::bytes_per_second, &Network::memory_bandwidth},
    {"host_incast", Unit::none, &Network::host_incast},
    {"nic_bandwidth", Unit::bytes_per_second, &Network::nic_bandwidth},
    {"incast", Unit::none, &Network::incast},
    {"burst", Unit::bytes, &Network::burst},
    {"background", Unit::none, &Network::background},
    {"processors", Unit::none, &Network::processors},
    {"handover", Unit::seconds, &Network::handover},
    {"acknowledge", Unit::seconds, &Network::acknowledge},
    {"reduce_speed", Unit::bytes_per_second, &Network::reduce_speed},
    {"copy_speed", Unit::bytes_per_second, &Network::copy_speed},
    {"hosts_per_leaf", Unit::none, &Network::hosts_per_leaf},
    {"leaf_oversubscription", Unit::none, &Network::leaf_oversubscription},
    {"leaves_per_pod", Unit::none, &Network::leaves_per_pod},
    {"pod_oversubscription", Unit::none, &Network::pod_oversubscription},
};

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "25Gbit", "3.1GB", "500MB": a second, in powers of 1000.
std::optional<double> parse_bandwidth(std::string_view text) {
  struct Suffix {
    std::string_view text;
    double factor;
  };
  constexpr Suffix suffixes[] = {{"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"TB", 1e12},
                                 {"GB", 1e9},       {"MB", 1e6},       {"", 1}};
  for (const Suffix& each : suffixes) {
    if (!text.ends_with(each.text)) continue;
    const auto number = parse_number(text.substr(0, text.size() - each.text.size()));
    return number ? std::optional(*number * each.factor) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> parse(Unit unit, std::string_view text) {
  if (unit == Unit::bytes_per_second) return parse_bandwidth(text);
  if (unit == Unit::seconds) {
    const auto duration = parse_duration(text);
    return duration ? std::optional(std::chrono::duration<double>(*duration).count())
                    : std::nullopt;
  }
  if (unit == Unit::bytes) {
    const auto size = parse_size(text);
    return size ? std::optional(static_cast<double>(*size)) : std::nullopt;
  }
  return parse_number(text);
}

std::string_view example(Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return "a time such as 10us";
    case Unit::bytes_per_second:
      return "a bandwidth such as 25Gbit or 3.1GB (a second)";
    case Unit::bytes:
      return "a size such as 64K";
    case Unit::none:
      break;
  }
  return "a number";
}

bool set(Network& network, const Field& field, double value) {
  if (const auto* const number = std::get_if<double Network::*>(&field.member)) {
    network.*(*number) = value;
    return true;
  }
  if (value < 0 || value > UINT32_MAX || value != std::floor(value)) return false;
  network.*std::get<std::uint32_t Network::*>(field.member) = static_cast<std::uint32_t>(value);
  return true;
}

std::string format(Unit unit, double value) {
  if (value >= UINT32_MAX && unit == Unit::none) return "all";
  switch (unit) {
    case Unit::seconds:
      return fmt::format("{:g}us", value * 1e6);
    case Unit::bytes_per_second:
      return value == 0 ? "0 (no limit)" : fmt::format("{:g}GB", value / 1e9);
    case Unit::bytes:
      return format_size(static_cast<std::uint64_t>(value));
    case Unit::none:
      break;
  }
  return fmt::format("{:g}", value);
}

}  // namespace

Status set_parameter(Network& network, std::string_view name, std::string_view value) {
  std::vector<std::string_view> names;
  for (const Field& field : fields) {
    names.push_back(field.name);
    if (field.name != name) continue;
    const auto number = parse(field.unit, value);
    if (number && set(network, field, *number)) return {};
    return {StatusCode::invalid_argument,
            fmt::format("{} is {}, not {}", name, example(field.unit), quote(value))};
  }
  std::string why = fmt::format("a network has no number {}", quote(name));
  if (const auto nearest = nearest_name(name, names)) why += fmt::format("; {}?", *nearest);
  return Status(StatusCode::not_found, why)
      .with_hint(fmt::format("there are: {}", joined(names, ", ")));
}

std::vector<Parameter> parameters(const Network& network) {
  std::vector<Parameter> all;
  for (const Field& field : fields) {
    const double value =
        std::visit([&](auto member) { return static_cast<double>(network.*member); }, field.member);
    all.push_back({field.name, format(field.unit, value)});
  }
  return all;
}

}  // namespace hocket::choose
