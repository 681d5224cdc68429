// Hocket's C++ API. Failures are thrown as classes of the family hocket::Error (status.hpp).
//
// Objects do not survive fork(): in the child each call on what its parent made throws
// InvalidArgument at once, except rank(), size(), transport(), host(), local_rank(), local_size(),
// rank_in(), Memory::data() and size(). status() returns the error, and abort() and destroying it
// do nothing. The child may join a world of its own (docs/fork.md).
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <string_view>

#include "hocket/collective.hpp"
#include "hocket/communicator.hpp"
#include "hocket/device.hpp"
#include "hocket/export.h"
#include "hocket/memory.hpp"
#include "hocket/message.hpp"
#include "hocket/queue.hpp"
#include "hocket/setting.hpp"
#include "hocket/status.hpp"
#include "hocket/store.hpp"
#include "hocket/types.hpp"

namespace hocket::inline v1 {

/// The release of the library that is linked, such as "0.2.0".
[[nodiscard]] HOCKET_API std::string_view version() noexcept;

/// out[i] = a[i] op b[i] on this process alone, with the arithmetic that collectives use
/// (docs/numerics.md). Any alignment; out may be a or b. Throws InvalidArgument for any other
/// overlap, and Unsupported for an op that is not defined for the type or needs a
/// collective (average, premul_sum, custom).
HOCKET_API void reduce_local(void* out, const void* a, const void* b, std::size_t count,
                             DataType type, ReduceOp op);

/// The same of vectors, arrays, spans or other contiguous ranges. All three have one size.
template <ElementRange A, ElementRange B, OutputFor<A> Out>
requires std::same_as<ElementOf<A>, ElementOf<B>>
void reduce_local(Out&& out, const A& a, const B& b, ReduceOp op) {
  const std::size_t count = std::ranges::size(out);
  if (std::ranges::size(a) != count || std::ranges::size(b) != count) {
    throw_error(Status(StatusCode::invalid_argument, "reduce_local: spans of different sizes"));
  }
  reduce_local(std::ranges::data(out), std::ranges::data(a), std::ranges::data(b), count,
               data_type_of<ElementOf<A>>, op);
}

/// Sends the log to sink instead of stderr; hocket.h says what a sink may do. Null: back to stderr.
HOCKET_API void set_log_sink(hocket_log_sink sink, void* context) noexcept;

}  // namespace hocket::inline v1
