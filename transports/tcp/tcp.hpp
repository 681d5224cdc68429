// The TCP transport as the table of transports has it.
#pragma once

#include "hocket/transport.hpp"

namespace hocket::tcp {

extern const TransportKind kind;

}  // namespace hocket::tcp
