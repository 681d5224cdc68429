// The verbs transport as the table of transports has it.
#pragma once

#include "hocket/transport.hpp"

namespace hocket::verbs {

extern const TransportKind kind;

}  // namespace hocket::verbs
