#include "trace/operation.hpp"

#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "engine/mailbox.hpp"
#include "engine/tag.hpp"
#include "plan/problem.hpp"

namespace hocket::trace {

using record::Entry;

std::string kind_name(std::uint8_t kind) {
  if (kind == record::kind_send) return "send";
  if (kind == record::kind_receive) return "recv";
  const auto operations = plan::all_operations();
  if (kind >= operations.size()) return fmt::format("operation kind {}", kind);
  return std::string(plan::name(operations[kind]));
}

std::string describe(const Entry& entry) {
  if (!is_message(entry)) {
    return fmt::format("{} #{}", engine::describe_call(entry.tag), entry.number);
  }
  const std::string tag =
      entry.tag == engine::any_tag ? "any tag" : fmt::format("tag {}", entry.tag);
  return fmt::format("{}({}{} bytes, {})", kind_name(entry.kind),
                     entry.kind == record::kind_receive ? "up to " : "", entry.bytes, tag);
}

std::string algorithm_name(const Entry& entry) {
  if (is_offloaded(entry)) return "nccl";
  return is_message(entry) ? std::string() : std::string(engine::algorithm_name(entry.tag));
}

std::string format_age(std::int64_t nanoseconds) {
  return format_duration(std::chrono::round<std::chrono::milliseconds>(Duration(nanoseconds)));
}

std::string state_name(const Entry& entry) {
  switch (entry.state) {
    case record::State::queued:
      return "queued";
    case record::State::done:
      return "done";
    case record::State::failed:
      return "failed";
    case record::State::running:
      break;
  }
  return is_stalled(entry) ? "stalled" : "running";
}

}  // namespace hocket::trace
