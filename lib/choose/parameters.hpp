// A network's numbers by name, as people write them: "latency", "10us".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "choose/network.hpp"

namespace hocket::choose {

/// Fails with the nearest name there is, or with an example of a value. Does not ask whether the
/// number makes sense: check_network does.
[[nodiscard]] Status set_parameter(Network& network, std::string_view name, std::string_view value);

struct Parameter {
  std::string_view name;
  std::string value;  // for people: set_parameter takes most of them
};

/// All of them, in the order of Network.
[[nodiscard]] std::vector<Parameter> parameters(const Network& network);

}  // namespace hocket::choose
