// Hocket's failures as exceptions: hocket.Error, and one class below it for each status.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>

#include "python.hpp"

namespace hocket::python {
namespace {

struct Kind {
  const char* name;
  PyObject** also;  // the built-in exception that it also is
};

PyObject* base = nullptr;
std::array<PyObject*, HOCKET_IN_PROGRESS> classes = {};  // by status

bool set(PyObject* of, const char* name, Ref value) {
  return value && PyObject_SetAttrString(of, name, value.get()) == 0;
}

Ref number_or_none(int32_t number) {
  if (number < 0) return Ref::to(Py_None);
  return Ref(PyLong_FromLong(number));
}

}  // namespace

bool add_errors(PyObject* module) {
  const std::array<Kind, HOCKET_IN_PROGRESS> kinds = {{
      {nullptr, nullptr},
      {"InvalidArgument", &PyExc_ValueError},
      {"Unsupported", &PyExc_NotImplementedError},
      {"Timeout", &PyExc_TimeoutError},
      {"PeerLost", &PyExc_ConnectionError},
      {"Aborted", nullptr},
      {"Mismatch", nullptr},
      {"PermissionDenied", &PyExc_PermissionError},
      {"LimitExceeded", nullptr},
      {"SystemFailure", &PyExc_OSError},
      {"ProtocolError", nullptr},
      {"NotFound", &PyExc_LookupError},
      {"AlreadyExists", nullptr},
      {"InternalError", nullptr},
  }};
  base = PyErr_NewExceptionWithDoc(
      "hocket.Error",
      "A call failed. The text is the whole story: who, what, where and a hint.\n\n"
      "status: its name, such as \"peer lost\"\n"
      "rank, peer: the rank that noticed it, and the other one that it concerns; None if unknown\n"
      "step: the step of the operation's plan; None if unknown\n"
      "system_error: an errno value; 0 for none",
      PyExc_RuntimeError, nullptr);
  if (base == nullptr || PyModule_AddObjectRef(module, "Error", base) != 0) return false;
  for (int32_t status = 1; status < HOCKET_IN_PROGRESS; ++status) {
    const Kind& kind = kinds[static_cast<std::size_t>(status)];
    PyObject* const also = kind.also == nullptr ? nullptr : *kind.also;
    const Ref bases(also == nullptr ? PyTuple_Pack(1, base) : PyTuple_Pack(2, base, also));
    const Ref name(PyUnicode_FromFormat("hocket.%s", kind.name));
    if (!bases || !name) return false;
    PyObject*& made = classes[static_cast<std::size_t>(status)];
    made = PyErr_NewException(PyUnicode_AsUTF8AndSize(name.get(), nullptr), bases.get(), nullptr);
    if (made == nullptr || PyModule_AddObjectRef(module, kind.name, made) != 0) return false;
  }
  return true;
}

PyObject* raise() {
  hocket_failure failure = {};
  failure.struct_size = sizeof failure;
  const hocket_status told = hocket_last_failure(&failure);
  const bool is_known =
      told == HOCKET_OK && failure.status > 0 && failure.status < HOCKET_IN_PROGRESS;
  PyObject* const kind = is_known ? classes[static_cast<std::size_t>(failure.status)] : base;
  const Ref error(PyObject_CallFunction(kind, "s", hocket_last_error()));
  if (!error) return nullptr;
  const bool is_whole =
      set(error.get(), "status", Ref(PyUnicode_FromString(hocket_status_name(failure.status)))) &&
      set(error.get(), "rank", number_or_none(failure.rank)) &&
      set(error.get(), "peer", number_or_none(failure.peer)) &&
      set(error.get(), "step", number_or_none(failure.step)) &&
      set(error.get(), "system_error", Ref(PyLong_FromLong(failure.system_error)));
  if (is_whole) PyErr_SetObject(kind, error.get());
  return nullptr;
}

PyObject* refuse(PyObject* kind, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  PyErr_FormatV(kind, format, arguments);
  va_end(arguments);
  return nullptr;
}

hocket_status unraisable(PyObject* of) noexcept {
  PyErr_WriteUnraisable(of);
  return HOCKET_ABORTED;
}

bool to_timeout(PyObject* seconds, int64_t& nanoseconds) {
  nanoseconds = 0;
  if (seconds == nullptr || seconds == Py_None) return true;
  const double value = PyFloat_AsDouble(seconds);
  if (value == -1.0 && PyErr_Occurred() != nullptr) return false;
  if (std::isnan(value) || value < 0) {
    refuse(PyExc_ValueError, "a timeout is a number of seconds from 0 on, or None");
    return false;
  }
  constexpr double most = 9e9;  // nanoseconds fit into 64 bits
  const auto whole = static_cast<int64_t>(std::min(value, most) * 1e9);
  nanoseconds = whole > 0 ? whole : HOCKET_NO_WAIT;
  return true;
}

bool to_int(PyObject* number, int32_t& value) {
  const long given = PyLong_AsLong(number);
  if (given == -1 && PyErr_Occurred() != nullptr) return false;
  if (given < INT32_MIN || given > INT32_MAX) {
    refuse(PyExc_OverflowError, "%ld is no rank, tag or number of Hocket's", given);
    return false;
  }
  value = static_cast<int32_t>(given);
  return true;
}

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec) {
  Ref type(PyType_FromSpec(&spec));
  if (!type) return nullptr;
  auto* const made = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddType(module, made) != 0) return nullptr;
  return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace hocket::python
