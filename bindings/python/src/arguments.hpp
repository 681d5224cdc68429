// The arguments of a call, by position and by name, without making a tuple or a dictionary.
#pragma once

#include <array>
#include <span>

#include "python.hpp"

namespace hocket::python {

/// All names that arguments of operations have.
enum class Name : std::uint8_t {
  values,
  out,
  op,
  root,
  counts,
  counts_from,
  factor,
  dtype,
  timeout,
  keeps_order,
  peer,
  tag,
  fails_alone,
  end
};

/// Which of them a function takes: first those that may come by position, in their order.
struct Signature {
  const char* name;
  std::span<const Name> positional;
  std::span<const Name> by_name;  // only
  int required;                   // of those by position
};

class Arguments {
 public:
  /// As METH_FASTCALL | METH_KEYWORDS gives them. Fails with an exception.
  [[nodiscard]] bool read(const Signature& signature, PyObject* const* given, Py_ssize_t count,
                          PyObject* names);
  /// Null if it was not given.
  [[nodiscard]] PyObject* operator[](Name name) const noexcept {
    return values_[static_cast<std::size_t>(name)];
  }

 private:
  [[nodiscard]] bool set(const Signature& signature, Name name, PyObject* value);

  std::array<PyObject*, static_cast<std::size_t>(Name::end)> values_ = {};
};

/// Interns the names. Once.
[[nodiscard]] bool prepare_names();

}  // namespace hocket::python
