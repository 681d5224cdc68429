// What two sides must agree on before they talk.
#pragma once

#include <string>

namespace hocket::wire {

struct Credentials {
  std::string job = {};     // any text; a connection into another job is refused
  std::string secret = {};  // empty for none; never shown to anybody
};

}  // namespace hocket::wire
