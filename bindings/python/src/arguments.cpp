#include "arguments.hpp"

#include <algorithm>

namespace hocket::python {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Name::end)> texts = {
    "values", "out",     "op",          "root", "counts", "counts_from", "factor",
    "dtype",  "timeout", "keeps_order", "peer", "tag",    "fails_alone"};
std::array<PyObject*, static_cast<std::size_t>(Name::end)> interned = {};

const char* text_of(Name name) { return texts.at(static_cast<std::size_t>(name)); }

/// Python interns the names in calls, so that most are found by their address.
Name find(PyObject* given) {
  for (std::size_t i = 0; i < interned.size(); ++i) {
    if (interned[i] == given) return static_cast<Name>(i);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (PyUnicode_CompareWithASCIIString(given, texts[i]) == 0) return static_cast<Name>(i);
  }
  return Name::end;
}

}  // namespace

bool prepare_names() {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    interned[i] = PyUnicode_InternFromString(texts[i]);
    if (interned[i] == nullptr) return false;
  }
  return true;
}

bool Arguments::read(const Signature& signature, PyObject* const* given, Py_ssize_t count,
                     PyObject* names) {
  const auto by_position = static_cast<std::size_t>(count);
  if (by_position > signature.positional.size()) {
    refuse(PyExc_TypeError, "%s() takes at most %zu arguments by position, and %zu were given",
           signature.name, signature.positional.size(), by_position);
    return false;
  }
  for (std::size_t i = 0; i < by_position; ++i) {
    values_[static_cast<std::size_t>(signature.positional[i])] = given[i];
  }
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    const Name found = find(name);
    const bool is_taken =
        std::ranges::find(signature.positional, found) != signature.positional.end() ||
        std::ranges::find(signature.by_name, found) != signature.by_name.end();
    if (found == Name::end || !is_taken) {
      refuse(PyExc_TypeError, "%s() takes no argument named %R", signature.name, name);
      return false;
    }
    if (!set(signature, found, given[count + i])) return false;
  }
  for (int i = 0; i < signature.required; ++i) {
    const Name name = signature.positional[static_cast<std::size_t>(i)];
    if ((*this)[name] != nullptr) continue;
    refuse(PyExc_TypeError, "%s() lacks its argument '%s'", signature.name, text_of(name));
    return false;
  }
  return true;
}

bool Arguments::set(const Signature& signature, Name name, PyObject* value) {
  PyObject*& place = values_[static_cast<std::size_t>(name)];
  if (place != nullptr) {
    refuse(PyExc_TypeError, "%s() got '%s' twice", signature.name, text_of(name));
    return false;
  }
  place = value;
  return true;
}

}  // namespace hocket::python
