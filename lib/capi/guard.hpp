// How what the C++ API throws leaves through the C ABI.
#pragma once

#include <exception>
#include <new>

#include "hocket/hocket.h"
#include "hocket/status.hpp"

namespace hocket::capi {

/// Keeps the text for hocket_last_error, and gives the code back.
hocket_status fail(hocket_status code, const char* text) noexcept;

/// Runs work and turns what it throws into a status.
template <class Work>
hocket_status guard(const Work& work) noexcept {
  try {
    work();
    return HOCKET_OK;
  } catch (const Error& error) {
    return fail(static_cast<hocket_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(HOCKET_LIMIT_EXCEEDED, "limit exceeded: out of memory");
  } catch (const std::exception& error) {
    return fail(HOCKET_INTERNAL, error.what());
  } catch (...) {
    return fail(HOCKET_INTERNAL, "internal: an exception of an unknown type");
  }
}

}  // namespace hocket::capi
