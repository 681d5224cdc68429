// How exceptions that are not ours leave the C++ API.
#pragma once

#include "hocket/status.hpp"

#include "base/exception.hpp"

namespace hocket::comm {

/// Calls work(). When memory runs out in it, it throws LimitExceeded.
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

}  // namespace hocket::comm
