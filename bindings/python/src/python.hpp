// The stable part of Python's C API, and what keeps references and the GIL right.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <Python.h>

#include "hocket/hocket.h"

namespace hocket::python {

/// A reference that this owns, or none.
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(PyObject* owned) noexcept : object_(owned) {}
  Ref(const Ref&) = delete;
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(const Ref&) = delete;
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  [[nodiscard]] static Ref to(PyObject* borrowed) noexcept {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Other Python threads run while it lives.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

/// On a thread that Python may not know.
class WithGil {
 public:
  WithGil() noexcept : state_(PyGILState_Ensure()) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

/// Calls a function of Hocket's, which may wait.
template <class Call>
[[nodiscard]] hocket_status call(const Call& function) noexcept {
  const WithoutGil others_run;
  return function();
}

template <auto function>
struct Guarded;
template <class... Arguments, PyObject* (*function)(Arguments...)>
struct Guarded<function> {
  static PyObject* call(Arguments... arguments) noexcept {
    try {
      return function(arguments...);
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }
};
/// For a PyMethodDef, whatever the function takes. That it runs out of memory is an exception of
/// Python's.
template <auto function>
PyCFunction function_of() noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Guarded<function>::call));
}

/// What an object does at its end: frees its handle, for which others may have to wait, and then
/// the objects that the handle needed.
template <class Object, auto handle, auto free, auto... kept>
void free_object(PyObject* object) noexcept {
  PyTypeObject* const type = Py_TYPE(object);
  auto* const self = reinterpret_cast<Object*>(object);
  {
    const WithoutGil others_run;
    free(self->*handle);
  }
  (Py_DECREF(self->*kept), ...);
  PyObject_Free(object);
  Py_DECREF(type);
}
template <auto function>
void* slot_of() noexcept {
  return reinterpret_cast<void*>(function);
}

/// Of types whose objects are made by functions of the module.
inline constexpr unsigned made_here =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE;

// Exceptions (errors.cpp).
[[nodiscard]] bool add_errors(PyObject* module);
/// The last failure of this thread, as an exception. Returns null.
PyObject* raise();
/// None, if it went well.
inline PyObject* none_or_raise(hocket_status status) {
  if (status != HOCKET_OK) return raise();
  Py_RETURN_NONE;
}
/// A ValueError or TypeError of Hocket's own words. Returns null.
PyObject* refuse(PyObject* kind, const char* format, ...);
/// What a Python function raised on a thread of the library: printed, as nobody can catch it.
[[nodiscard]] hocket_status unraisable(PyObject* of) noexcept;

/// Seconds, as None (0: the default), or as a number; 0 seconds is no wait at all. Fails with an
/// exception.
[[nodiscard]] bool to_timeout(PyObject* seconds, int64_t& nanoseconds);
/// Fails with an exception.
[[nodiscard]] bool to_int(PyObject* number, int32_t& value);

// The types of the module; each adds itself (and what it needs) to it.
[[nodiscard]] bool add_collectives(PyObject* module);
[[nodiscard]] bool add_communicator(PyObject* module);
[[nodiscard]] bool add_works(PyObject* module);
[[nodiscard]] bool add_queue(PyObject* module);
[[nodiscard]] bool add_store(PyObject* module);
[[nodiscard]] bool add_buffer(PyObject* module);

/// Makes a type and puts it into the module. Returns a reference that the caller keeps for ever.
[[nodiscard]] PyTypeObject* add_type(PyObject* module, PyType_Spec& spec);

}  // namespace hocket::python
