// What ranks have done since they joined, in the text format of Prometheus.
#pragma once

#include <string>
#include <vector>

#include "trace/dump.hpp"

namespace hocket::trace {

[[nodiscard]] std::string metrics(const std::vector<World>& worlds);

}  // namespace hocket::trace
