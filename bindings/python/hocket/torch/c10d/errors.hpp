// Failures of Hocket as exceptions that torch turns into Python's.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include <c10/util/Exception.h>

#include <hocket/hocket.h>

#include "version.hpp"

namespace hocket_torch {

/// `why` is what hocket_last_error() says.
[[noreturn]] inline void raise(hocket_status status, const std::string& why) {
  if (status == HOCKET_INVALID_ARGUMENT) {
    throw c10::ValueError({__func__, __FILE__, __LINE__}, why);
  }
#if HOCKET_TORCH_FROM(2, 0)
  throw c10::DistBackendError({__func__, __FILE__, __LINE__}, why);
#else
  throw std::runtime_error(why);
#endif
}

inline void check(hocket_status status) {
  if (status != HOCKET_OK) raise(status, hocket_last_error());
}

inline std::exception_ptr failure_of(hocket_status status, const std::string& why) noexcept {
  try {
    raise(status, why);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace hocket_torch
