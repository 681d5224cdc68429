// What an exception means to those who get a Status.
#pragma once

#include <string>
#include <string_view>
#include <utility>

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

/// For the functions of the C++ API: calls work(), and turns any exception that is not an Error
/// into one. If memory runs out, that is LimitExceeded.
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

/// Returns the value, or throws the failure with the name of the operation.
template <class T>
[[nodiscard]] T value_of(Result<T> result, std::string_view operation) {
  if (!result.ok()) throw_error(result.status().with_operation(std::string(operation)));
  return std::move(*result);
}

}  // namespace hocket
