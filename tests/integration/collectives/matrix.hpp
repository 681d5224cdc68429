// Every collective with every type, op, placement, and sizes of every sort.
#pragma once

#include <string_view>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"

namespace hocket::testing {

/// How much of the product: `some` has all pairs of type and op, `more` each of them with every
/// placement and small count, `all` with the large ones too.
enum class Extent : std::uint8_t { some, more, all };

/// Of all cases, those whose text holds `only`.
void run_matrix(Communicator& world, Extent extent, std::string_view only, Report& report);

}  // namespace hocket::testing
