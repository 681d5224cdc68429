#include "base/exception.hpp"

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace hocket {
namespace {

Status describe_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  } catch (const std::length_error&) {  // of a container
    return Status::out_of_memory();
  } catch (const std::system_error& error) {
    const bool is_scarce = error.code() == std::errc::resource_unavailable_try_again ||
                           error.code() == std::errc::not_enough_memory;
    return Status(is_scarce ? StatusCode::limit_exceeded : StatusCode::system_error,
                  is_scarce ? "no thread can be started" : error.what())
        .with_system_error(error.code().value())
        .with_hint(is_scarce ? "raise the limit of processes: ulimit -u, or the cgroup's pids.max"
                             : "");
  } catch (const std::exception& error) {
    return {StatusCode::internal, error.what()};
  } catch (...) {
    return {StatusCode::internal, "an exception of an unknown type"};
  }
}

}  // namespace

Status status_of_exception() noexcept {
  try {
    return describe_exception();
  } catch (...) {  // there is no memory for the text
    return Status::out_of_memory();
  }
}

}  // namespace hocket
