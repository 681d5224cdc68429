// Serves one page over HTTP, to one client after the other: what a collector of metrics asks for.
#pragma once

#include <functional>
#include <string>

#include "hocket/status.hpp"

#include "net/endpoint.hpp"

namespace hocket::trace {

/// Answers GET / and GET /metrics with what `page` returns, until the process ends. Calls `ready`
/// once it listens. Returns why it can't.
[[nodiscard]] Status serve(const net::Endpoint& at, const std::function<std::string()>& page,
                           const std::function<void(const net::Endpoint&)>& ready);

}  // namespace hocket::trace
