// The C ABI over the C++ API. No exception leaves this file.
#include <cstring>
#include <new>
#include <string>

#include "hocket/hocket.h"
#include "hocket/hocket.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "capi/arguments.hpp"
#include "capi/guard.hpp"

namespace {

/// What hocket_last_error returns on this thread. A fixed buffer, so that keeping it can't fail.
thread_local char last_error[hocket::limits::last_error_bytes_max + 1] = "";
thread_local hocket_failure last_failure = {
    .struct_size = 0, .status = HOCKET_OK, .rank = -1, .peer = -1, .step = -1, .system_error = 0};

}  // namespace

hocket_status hocket::capi::fail(const Status& failure, const char* text) noexcept {
  last_failure.status = static_cast<hocket_status>(failure.code());
  last_failure.rank = failure.rank();
  last_failure.peer = failure.peer();
  last_failure.step = failure.step();
  last_failure.system_error = failure.system_error();
  try {
    const std::string kept = hocket::cut(text, hocket::limits::last_error_bytes_max);
    std::memcpy(last_error, kept.c_str(), kept.size() + 1);
  } catch (const std::bad_alloc&) {
    last_error[0] = '\0';
  }
  return last_failure.status;
}

const char* hocket_version(void) { return hocket::version().data(); }

int32_t hocket_abi_version(void) { return HOCKET_ABI_VERSION; }

// The names are string literals: NUL-terminated and never freed.
const char* hocket_status_name(hocket_status status) {
  return hocket::name(static_cast<hocket::StatusCode>(status)).data();
}

const char* hocket_last_error(void) { return last_error; }

hocket_status hocket_last_failure(hocket_failure* failure) {
  const hocket_failure last = last_failure;  // what follows may fail itself
  return hocket::capi::guard([&] { hocket::capi::write(last, failure); });
}

const char* hocket_dtype_name(hocket_dtype dtype) {
  return hocket::name(static_cast<hocket::DataType>(dtype)).data();
}

size_t hocket_dtype_size(hocket_dtype dtype) {
  return hocket::size_of(static_cast<hocket::DataType>(dtype));
}

const char* hocket_op_name(hocket_op op) {
  return hocket::name(static_cast<hocket::ReduceOp>(op)).data();
}

hocket_status hocket_reduce_local(void* out, const void* a, const void* b, size_t count,
                                  hocket_dtype dtype, hocket_op op) {
  return hocket::capi::guard([&] {
    hocket::reduce_local(out, a, b, count, static_cast<hocket::DataType>(dtype),
                         static_cast<hocket::ReduceOp>(op));
  });
}

void hocket_set_log_sink(hocket_log_sink sink, void* context) {
  hocket::set_log_sink(sink, context);
}
