// What an exception means to those who get a Status.
#pragma once

#include "hocket/status.hpp"

namespace hocket {

/// Of the exception that is being handled: limit_exceeded when memory or threads have run out, the
/// status of an Error, and internal with the text of anything else. To be called in a catch block.
[[nodiscard]] Status status_of_exception() noexcept;

/// What describe() gives, a Status or a Result; or, if it throws, that as a status.
template <class Describe>
[[nodiscard]] auto described(const Describe& describe) noexcept -> decltype(describe()) {
  try {
    return describe();
  } catch (...) {
    return status_of_exception();
  }
}

/// Calls work(). What it throws that is no Error becomes one: without memory LimitExceeded. For the
/// functions of the C++ API.
template <class Work>
decltype(auto) as_errors(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (...) {
    throw_error(status_of_exception());
  }
}

}  // namespace hocket
