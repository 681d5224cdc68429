#include "engine/work.hpp"

#include <exception>

#include "base/exception.hpp"
#include "base/log.hpp"

namespace hocket::engine {

void Work::call_end() const noexcept {
  try {
    at_end_(context_, status_.code());
  } catch (...) {
    log::line(log::Level::error, "on_end of an operation threw an exception, which is ignored: {}",
              status_of_exception().what());
  }
}

}  // namespace hocket::engine
