// A world's records for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "program/json.hpp"
#include "trace/dump.hpp"

namespace hocket::trace {

/// "World of 4 ranks over tcp, with records of 3 of them"
[[nodiscard]] std::string title(const World& world);
/// A row of headings, and a row for each rank with its current or last operation.
[[nodiscard]] std::vector<std::vector<std::string>> table(const World& world);
/// The verdict, and for each rank what the table says.
[[nodiscard]] program::Json to_json(const World& world);
/// Trace events for https://ui.perfetto.dev: a track for each rank and communicator.
[[nodiscard]] program::Json perfetto(const std::vector<World>& worlds);

}  // namespace hocket::trace
