#include "base/config.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include <unistd.h>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/private_file.hpp"
#include "base/text.hpp"

namespace hocket {
namespace {

constexpr std::string_view prefix = "HOCKET_";
constexpr std::string_view hidden = "(set)";  // in place of a secret

std::optional<std::string> parse(const Variable<std::string>&, std::string_view text) {
  return std::string(text);
}
std::optional<bool> parse(const Variable<bool>&, std::string_view text) {
  return parse_boolean(text);
}
std::optional<std::int64_t> parse(const Variable<std::int64_t>&, std::string_view text) {
  return parse_integer(text);
}
std::optional<std::uint64_t> parse(const Variable<std::uint64_t>&, std::string_view text) {
  return parse_size(text);
}
std::optional<Duration> parse(const Variable<Duration>&, std::string_view text) {
  return parse_duration(text);
}

std::optional<std::size_t> find_choice(const VariableInfo& variable, std::string_view text) {
  const auto found = std::ranges::find_if(
      variable.choices, [&](std::string_view choice) { return equal_ignoring_case(choice, text); });
  if (found == variable.choices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - variable.choices.begin());
}
std::optional<Choice> parse(const Variable<Choice>& variable, std::string_view text) {
  const auto index = find_choice(variable, text);
  return index ? std::optional(Choice{*index}) : std::nullopt;
}

void announce(const Config& config) {
  log::set_level(static_cast<log::Level>(config.get(variables::log_level).index));
  for (const std::string& complaint : config.complaints()) {
    log::line(log::Level::warning, "{}", complaint);
  }
  for (const VariableInfo* variable : variables::all()) {
    if (const auto text = config.shown(*variable)) {
      log::line(log::Level::info, "{}={}", variable->name, *text);
    }
  }
}

bool is_valid(const VariableInfo& variable, std::string_view text) {
  switch (variable.kind) {
    case ValueKind::text:
      return true;
    case ValueKind::boolean:
      return parse_boolean(text).has_value();
    case ValueKind::integer:
      return parse_integer(text).has_value();
    case ValueKind::size:
      return parse_size(text).has_value();
    case ValueKind::duration:
      return parse_duration(text).has_value();
    case ValueKind::choice:
      return find_choice(variable, text).has_value();
  }
  return false;
}

std::string describe_values(const VariableInfo& variable) {
  switch (variable.kind) {
    case ValueKind::boolean:
      return "0 or 1";
    case ValueKind::integer:
      return "a whole number";
    case ValueKind::size:
      return "a size such as 4096, 64K or 1M";
    case ValueKind::duration:
      return "a duration such as 250ms, 2s or 1m";
    case ValueKind::choice:
      return fmt::format("one of {}", joined(variable.choices, ", "));
    case ValueKind::text:
      break;
  }
  return "text";
}

}  // namespace

std::string_view name(ValueKind kind) noexcept {
  static constexpr std::array<std::string_view, 6> names = {"text", "boolean",  "integer",
                                                            "size", "duration", "choice"};
  return names.at(static_cast<std::size_t>(kind));
}

std::span<const VariableInfo* const> variables::all() noexcept {
  static constexpr const VariableInfo* list[] = {&log_level,
                                                 &simd,
                                                 &rendezvous,
                                                 &store,
                                                 &store_timeout,
                                                 &job,
                                                 &attempt,
                                                 &secret,
                                                 &secret_file,
                                                 &allow_without_secret,
                                                 &tls,
                                                 &tls_certificate_file,
                                                 &tls_key_file,
                                                 &tls_ca_file,
                                                 &interface,
                                                 &algorithm,
                                                 &tuning_file,
                                                 &overlap,
                                                 &host_timeout,
                                                 &tcp_streams,
                                                 &tcp_interfaces,
                                                 &ib_hca,
                                                 &ib_gid_index,
                                                 &ib_tc,
                                                 &ib_sl,
                                                 &failure_timeout,
                                                 &stall_warning,
                                                 &trace,
                                                 &transport,
                                                 &transport_path,
                                                 &device_module,
                                                 &nccl,
                                                 &nccl_library,
                                                 &gpudirect};
  return list;
}

Config::Config(const char* const* environment, std::span<const VariableInfo* const> known)
    : known_(known) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(prefix) || equals == std::string_view::npos) continue;
    read_or_complain(entry.substr(0, equals), entry.substr(equals + 1));
  }
}

Config::Config(std::span<const Setting> settings, std::span<const VariableInfo* const> known)
    : known_(known) {
  for (const Setting& each : settings) read_or_complain(each.name, each.value);
}

Result<Config> Config::with(std::span<const Setting> settings) const {
  const auto wrong = [](std::string what) {
    return Status(StatusCode::invalid_argument, std::move(what));
  };
  Config changed = *this;
  const auto names = [&](const VariableInfo& variable) {
    return std::ranges::find(settings, variable.name, &Setting::name) != settings.end();
  };
  // The secret comes before its file, wherever it stands.
  if (names(variables::secret_file)) changed.values_.erase(variables::secret.name);
  for (const Setting& each : settings) {
    const auto variable = std::ranges::find(known_, each.name, &VariableInfo::name);
    if (variable != known_.end() && (*variable)->is_of_process) {
      return wrong(
                 fmt::format("{} holds for the whole process, so a world can't set it", each.name))
          .with_hint("set it in the environment before the process begins");
    }
    if (auto complaint = changed.read(each.name, each.value)) return wrong(complaint->what);
  }
  return changed;
}

std::vector<Setting> Config::settings() const {
  std::vector<Setting> all;
  for (const auto& [name, value] : values_) {
    all.push_back({.name = std::string(name), .value = value});
  }
  return all;
}

void Config::read_or_complain(std::string_view name, std::string_view value) {
  if (auto complaint = read(name, value))
    complaints_.push_back(complaint->what + complaint->instead);
}

std::optional<Config::Complaint> Config::read(std::string_view name, std::string_view value) {
  const auto found = std::ranges::find(known_, name, &VariableInfo::name);
  if (found == known_.end()) {
    std::vector<std::string_view> names(known_.size());
    std::ranges::transform(known_, names.begin(), &VariableInfo::name);
    const auto nearest = nearest_name(name, names);
    return Complaint{
        nearest ? fmt::format("{} is not a variable of Hocket; did you mean {}?", name, *nearest)
                : fmt::format("{} is not a variable of Hocket; see `hocket info --env`", name)};
  }
  const VariableInfo& variable = **found;
  values_.erase(variable.name);  // the last one counts
  invalid_.erase(variable.name);
  if (value.empty()) return std::nullopt;
  const bool is_short = value.size() <= limits::variable_bytes_max;
  if (is_short && is_valid(variable, value)) {
    values_[variable.name] = value;
    return std::nullopt;
  }
  invalid_.insert(variable.name);
  return Complaint{
      is_short ? fmt::format("{}=\"{}\" is not {}", name, variable.is_secret ? hidden : value,
                             describe_values(variable))
               : fmt::format("{} is longer than {} bytes", name, limits::variable_bytes_max),
      fmt::format("; using \"{}\"", variable.fallback)};
}

std::optional<std::string_view> Config::text_of(const VariableInfo& variable) const {
  const auto found = values_.find(variable.name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

bool Config::is_invalid(const VariableInfo& variable) const {
  return invalid_.contains(variable.name);
}

std::optional<std::string_view> Config::shown(const VariableInfo& variable) const {
  const auto text = text_of(variable);
  return text && variable.is_secret ? hidden : text;
}

template <class T>
T Config::get(const Variable<T>& variable) const {
  // Both texts parse: what was set was checked on reading, and a test checks every default.
  return parse(variable, text_of(variable).value_or(variable.fallback)).value();
}
template std::string Config::get(const Variable<std::string>&) const;
template bool Config::get(const Variable<bool>&) const;
template std::int64_t Config::get(const Variable<std::int64_t>&) const;
template std::uint64_t Config::get(const Variable<std::uint64_t>&) const;
template Duration Config::get(const Variable<Duration>&) const;
template Choice Config::get(const Variable<Choice>&) const;

Result<std::string> read_secret(const Config& config) {
  const auto path = config.text_of(variables::secret_file);
  if (!path || config.text_of(variables::secret)) return config.get(variables::secret);
  Result<std::string> content = read_private_file(std::string(*path));
  if (!content.ok()) {
    return Status(content.status().code(), "no secret from HOCKET_SECRET_FILE")
        .caused_by(content.status());
  }
  while (content->ends_with('\n') || content->ends_with('\r')) content->pop_back();
  if (content->empty()) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("HOCKET_SECRET_FILE names {}, which is empty", *path));
  }
  return content;
}

const Config& process_config() {
  // Never destroyed: the destructors of a program's globals may still call Hocket.
  static const Config& config = *new Config(environ);
  static std::atomic<bool> is_announced = false;
  if (!is_announced.exchange(true)) announce(config);
  return config;
}

}  // namespace hocket
