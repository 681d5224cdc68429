#include "run/hosts.hpp"

#include <algorithm>
#include <climits>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "net/interfaces.hpp"

namespace hocket::run {
namespace {

std::optional<int> parse_slots(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > limits::world_size_max) return {};
  return static_cast<int>(*number);
}

/// "a:4", "user@[fe80::1]:4", "a", "fe80::1"
std::optional<Host> parse_host(std::string_view text) {
  const std::size_t bracket = text.find('[');
  std::size_t name_end = text.find(':');
  if (bracket != text.npos) name_end = text.find(']');
  if (bracket != text.npos && name_end == text.npos) return {};
  const bool is_address = bracket == text.npos && name_end != text.rfind(':');
  if (is_address) name_end = text.npos;
  Host host = {.name = std::string(text.substr(0, name_end))};
  std::string_view rest = text.substr(std::min(name_end, text.size()));
  if (bracket != text.npos) {
    host.name.erase(bracket, 1);
    rest.remove_prefix(1);
  }
  // A name is a word of the remote shell's command line: it may not be an option.
  if (host.name.empty() || host.name.starts_with('-')) return {};
  if (rest.empty()) return host;
  const auto slots = parse_slots(rest.substr(1));
  if (!slots || rest.front() != ':') return {};
  host.slots = *slots;
  return host;
}

void add(std::vector<Host>& hosts, const Host& host) {
  const auto same = std::ranges::find(hosts, host.name, &Host::name);
  if (same == hosts.end()) {
    hosts.push_back(host);
    return;
  }
  same->slots = std::max(same->slots, 1) + std::max(host.slots, 1);
  same->slots_max += host.slots_max;
}

Status bad_host(std::string_view where, std::string_view text) {
  return Status(StatusCode::invalid_argument, fmt::format("{}: {} is no host", where, text))
      .with_hint("a host is written as node7 or node7:4, in a file also as node7 slots=4");
}

/// "slots=4", "max_slots=8", and what only other launchers need.
bool read_setting(std::string_view word, Host& host) {
  const std::string_view name = take_until(word, "=");
  if (name != "slots" && name != "max_slots" && name != "max-slots") return name != word;
  const auto slots = parse_slots(word);
  if (!slots) return false;
  (name == "slots" ? host.slots : host.slots_max) = *slots;
  return true;
}

Status check_slots(const Host& host, int wanted) {
  const int most = std::max(host.slots, host.slots_max);
  if (most == 0 || wanted <= most) return {};
  return Status(StatusCode::invalid_argument,
                fmt::format("{} has {} slots, too few for {} ranks", host.name, most, wanted))
      .with_hint("-n is the number of ranks on each host");
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  const std::string_view whole = text;
  do {
    const std::string_view word = trimmed(take_until(text, ","));
    const auto host = parse_host(word);
    if (!host) return bad_host(fmt::format("--hosts {}", whole), fmt::format("\"{}\"", word));
    add(hosts, *host);
  } while (!text.empty());
  return hosts;
}

Result<std::vector<Host>> parse_host_file(std::string_view text, std::string_view name) {
  std::vector<Host> hosts;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, "\n");
    line = line.substr(0, line.find('#'));
    std::optional<Host> host;
    while (!line.empty()) {
      const std::string_view word = take_until(line, " \t\r");
      if (word.empty()) continue;
      const bool is_good = host ? read_setting(word, *host) : (host = parse_host(word)).has_value();
      if (!is_good)
        return bad_host(fmt::format("{}:{}", name, number), fmt::format("\"{}\"", word));
    }
    if (host) add(hosts, *host);
  }
  if (hosts.empty()) return bad_host(name, "nothing in it");
  return hosts;
}

Result<int> ranks_of_each(const std::vector<Host>& hosts, int wanted) {
  const Host& first = hosts.front();
  for (const Host& host : hosts) {
    if (wanted == 0 && host.slots != first.slots) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("the slots don't divide evenly: {} has {}, {} has {}", first.name,
                                first.slots, host.name, host.slots))
          .with_hint("every host gets as many ranks as the others; -n says how many");
    }
    if (Status status = check_slots(host, wanted); !status.ok()) return status;
  }
  return wanted > 0 ? wanted : std::max(first.slots, 1);
}

std::string own_host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

bool is_here(const Host& host) {
  if (net::is_loopback(host.name)) return true;
  const std::string own = own_host_name();
  return host.name == own || host.name == own.substr(0, own.find('.'));
}

std::string address_of(const Host& host) { return host.name.substr(host.name.find('@') + 1); }

}  // namespace hocket::run
