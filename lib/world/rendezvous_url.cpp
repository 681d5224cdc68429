#include "world/rendezvous_url.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace hocket::world {
namespace {

using Scheme = RendezvousUrl::Scheme;

constexpr std::array<std::string_view, 4> schemes = {"env", "tcp", "file", "torch"};
constexpr std::array<std::string_view, 6> keys = {"rank", "size",    "world_size",
                                                  "job",  "timeout", "served"};
constexpr std::array<std::string_view, 4> secrets = {"secret", "token", "password", "key"};

Status refused(std::string what) {
  return Status(StatusCode::invalid_argument, "the rendezvous URL " + std::move(what))
      .with_hint("write it as env://, tcp://HOST:PORT?rank=R&size=N or file:///PATH?rank=R&size=N");
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const auto nearest = nearest_name(name, candidates);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : "";
}

/// Takes the part of `rest` in front of the mark, and the mark.
std::string_view take_until(std::string_view& rest, char mark) {
  const std::string_view part = rest.substr(0, rest.find(mark));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

Status read_number(std::string_view key, std::string_view text, int min, int& to) {
  const auto number = parse_integer(text);
  if (!number || *number < min || *number > limits::world_size_max) {
    return refused(fmt::format("has {}={}, which is not a number from {} to {}", key, quote(text),
                               min, limits::world_size_max));
  }
  to = static_cast<int>(*number);
  return {};
}

Status read_pair(std::string_view key, std::string_view value, RendezvousUrl& url) {
  if (key == "rank") return read_number(key, value, 0, url.rank);
  if (key == "size" || key == "world_size") return read_number(key, value, 1, url.size);
  if (key == "job") {
    url.job = value;
  } else if (key == "timeout") {
    url.timeout = parse_duration(value);
    if (!url.timeout) return refused(fmt::format("has timeout={}: write 30s or 5m", quote(value)));
  } else if (key == "served") {
    const auto is_served = parse_boolean(value);
    if (!is_served) return refused(fmt::format("has served={}: write 0 or 1", quote(value)));
    url.is_served = *is_served;
  }
  return {};
}

Status read_query(std::string_view query, RendezvousUrl& url) {
  std::set<std::string_view> seen;
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    const std::string_view key = take_until(value, '=');
    if (std::ranges::find(secrets, key) != secrets.end()) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("the rendezvous URL has {}=, which everybody could read in a list "
                                "of processes",
                                key))
          .with_hint("set HOCKET_SECRET or HOCKET_SECRET_FILE instead");
    }
    if (std::ranges::find(keys, key) == keys.end()) {
      return refused(
          fmt::format("has {}=, which is not known{}", quote(key), did_you_mean(key, keys)));
    }
    if (value.empty()) return refused(fmt::format("has {}= without a value", key));
    if (!seen.insert(key == "world_size" ? "size" : key).second) {
      return refused(fmt::format("has {}= twice", key));
    }
    if (Status status = read_pair(key, value, url); !status.ok()) return status;
  }
  return {};
}

Status read_place(std::string_view text, RendezvousUrl& url) {
  switch (url.scheme) {
    case Scheme::env:
      return text.empty() ? Status() : refused("env:// has more than that in front of its \"?\"");
    case Scheme::file:
      if (!text.starts_with('/') || text.ends_with('/')) {
        return refused("file:// needs the absolute path of a file: file:///PATH");
      }
      url.path = text;
      return {};
    case Scheme::tcp:
    case Scheme::torch:
      break;
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.find('@') != std::string_view::npos) return refused("has \"@\": no user is named in it");
  Result<net::Endpoint> endpoint = net::parse_endpoint(text);
  if (!endpoint.ok()) return refused("names no HOST:PORT").caused_by(endpoint.status());
  url.endpoint = *std::move(endpoint);
  return {};
}

Status check_whole(const RendezvousUrl& url) {
  if ((url.rank < 0) != (url.size < 0)) return refused("needs both rank= and size=, or neither");
  if (url.rank >= 0 && url.rank >= url.size) {
    return refused(
        fmt::format("has rank {} in a world of {}; ranks begin at 0", url.rank, url.size));
  }
  if (url.scheme == Scheme::env && url.rank >= 0) {
    return refused("env:// takes rank and size from RANK and WORLD_SIZE");
  }
  if (url.is_served && url.scheme != Scheme::tcp)
    return refused("has served=, which is for tcp://");
  if (url.is_served && url.endpoint.port == 0) return refused("names no port of the store");
  return {};
}

}  // namespace

Result<RendezvousUrl> parse_rendezvous_url(std::string_view text) {
  const std::size_t mark = text.find("://");
  const std::string_view scheme = text.substr(0, mark);
  const auto found = std::ranges::find(schemes, scheme);
  if (mark == std::string_view::npos || found == schemes.end()) {
    if (mark == std::string_view::npos) return refused("has no \"://\"");
    return refused(fmt::format("begins with {}://, which is not known{}", quote(scheme),
                               did_you_mean(scheme, schemes)));
  }
  RendezvousUrl url = {.scheme = static_cast<Scheme>(found - schemes.begin())};
  std::string_view rest = text.substr(mark + 3);
  const std::string_view place = take_until(rest, '?');
  if (Status status = read_place(place, url); !status.ok()) return status;
  if (Status status = read_query(rest, url); !status.ok()) return status;
  if (Status status = check_whole(url); !status.ok()) return status;
  return url;
}

}  // namespace hocket::world
