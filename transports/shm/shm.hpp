// The shared-memory transport as the table of transports has it.
#pragma once

#include "hocket/transport.hpp"

namespace hocket::shm {

extern const TransportKind kind;

}  // namespace hocket::shm
