#include "comm/tuning.hpp"

#include <cerrno>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/limits.hpp"

namespace hocket {
namespace {

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(limits::tuning_file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file) {
    const int error = errno;
    const StatusCode code = error == ENOENT ? StatusCode::not_found : StatusCode::system_error;
    return Status(code, fmt::format("the tuning file {} can't be read", path))
        .with_system_error(error);
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() <= limits::tuning_file_bytes_max) return text;
  return Status(StatusCode::limit_exceeded,
                fmt::format("the tuning file {} is larger than {} bytes", path,
                            limits::tuning_file_bytes_max));
}

Result<choose::Tuning> read_tuning_file(const std::string& path, const choose::Network& network) {
  const auto text = read_text(path);
  if (!text.ok()) return text.status();
  return parse_tuning(*text, path, network);
}

/// Config takes what is too long for no value; here that would be another choice.
Status check_set(const Config& config, const VariableInfo& variable) {
  if (!config.is_invalid(variable)) return {};
  return {StatusCode::limit_exceeded,
          fmt::format("{} is longer than {} bytes", variable.name, limits::variable_bytes_max)};
}

}  // namespace

Result<choose::Tuning> read_tuning(const Config& config, const choose::Network& network,
                                   std::string path) {
  for (const auto* variable : {&variables::algorithm, &variables::tuning_file}) {
    if (Status status = check_set(config, *variable); !status.ok()) return status;
  }
  auto rules = choose::parse_rules(config.get(variables::algorithm), variables::algorithm.name);
  if (!rules.ok()) return rules.status();
  if (path.empty()) path = config.get(variables::tuning_file);
  choose::Tuning tuning = {.network = network};
  if (!path.empty()) {
    auto from_file = read_tuning_file(path, network);
    if (!from_file.ok()) return from_file.status();
    tuning = std::move(*from_file);
  }
  tuning.rules.insert(tuning.rules.begin(), rules->begin(), rules->end());
  return tuning;
}

}  // namespace hocket
