// A client's connection to the server of a store.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "store/endpoint.hpp"
#include "store/message.hpp"
#include "wire/credentials.hpp"

namespace hocket::store {

struct ConnectOptions {
  Endpoint server = {};
  wire::Credentials credentials = {};
  /// To connect, and of every later call that gives none.
  Duration timeout = std::chrono::minutes(5);
};

// (class Connection is being written)

}  // namespace hocket::store
