#include "plan/lookup.hpp"

#include <string>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::plan {
namespace {

Status not_found(std::string_view kind, std::string_view word,
                 const std::vector<std::string_view>& names) {
  const auto nearest = nearest_name(word, names);
  return Status(StatusCode::not_found, fmt::format("there is no {} {}", kind, quote(word)))
      .with_hint(nearest ? fmt::format("did you mean {}?", *nearest)
                         : fmt::format("there are {}", joined(names, ", ")));
}

}  // namespace

Result<Operation> look_up_operation(std::string_view word) {
  std::vector<std::string_view> names;
  for (const Operation each : all_operations()) {
    if (name(each) == word) return each;
    names.push_back(name(each));
  }
  return not_found("operation", word, names);
}

Result<std::vector<const Algorithm*>> look_up_algorithms(std::optional<Operation> operation,
                                                         std::string_view name) {
  std::vector<const Algorithm*> found;
  std::vector<std::string_view> names;
  for (const Algorithm& each : catalog()) {
    if (operation && each.operation != *operation) continue;
    names.push_back(each.name);
    if (name.empty() || each.name == name) found.push_back(&each);
  }
  if (!found.empty()) return found;
  const std::string kind =
      operation ? fmt::format("algorithm for {}", plan::name(*operation)) : "algorithm";
  return not_found(kind, name, names);
}

}  // namespace hocket::plan
