// How what the C++ API throws leaves through the C ABI.
#pragma once

#include <exception>
#include <new>

#include "hocket/hocket.h"
#include "hocket/status.hpp"

#include "base/exception.hpp"

namespace hocket::capi {

/// Keeps the failure for hocket_last_error and hocket_last_failure, and gives its code back.
hocket_status fail(const Status& failure, const char* text) noexcept;

/// Runs work and turns what it throws into a status.
template <class Work>
hocket_status guard(const Work& work) noexcept {
  try {
    work();
    return HOCKET_OK;
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(Status::out_of_memory(), "limit exceeded: out of memory");
  } catch (const std::exception& error) {
    return fail(status_of_exception(), error.what());
  } catch (...) {
    return fail(status_of_exception(), "internal: an exception of an unknown type");
  }
}

}  // namespace hocket::capi
