// hocket.Queue: where operations report that they have ended.
#include <array>

#include "objects.hpp"

namespace hocket::python {

struct QueueObject {
  PyObject_HEAD hocket_queue* queue;
  PyObject* expected;  // by number: (operation, tag)
  uint64_t number;     // the last one given
};

namespace {

PyTypeObject* queue_type = nullptr;
PyTypeObject* completion_type = nullptr;

QueueObject& self_of(PyObject* object) { return *reinterpret_cast<QueueObject*>(object); }

PyObject* make_queue(PyTypeObject* type, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 1> words = {nullptr};
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, ":Queue", const_cast<char**>(words.data())) ==
      0) {
    return nullptr;
  }
  Ref expected(PyDict_New());
  if (!expected) return nullptr;
  hocket_queue* queue = nullptr;
  if (hocket_queue_create(&queue) != HOCKET_OK) return raise();
  auto* const made = PyObject_New(QueueObject, type);
  if (made == nullptr) {
    hocket_queue_free(queue);
    return nullptr;
  }
  made->queue = queue;
  made->expected = expected.release();
  made->number = 0;
  return reinterpret_cast<PyObject*>(made);
}

/// What was expected by that number, which it forgets; an exception if there is nothing.
Ref take(QueueObject& self, uint64_t number) {
  const Ref key(PyLong_FromUnsignedLongLong(number));
  if (!key) return {};
  Ref pair = Ref::to(PyDict_GetItemWithError(self.expected, key.get()));
  if (!pair || PyDict_DelItem(self.expected, key.get()) != 0) return {};
  return pair;
}

PyObject* next(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 2> words = {"timeout", nullptr};
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "|O:next", const_cast<char**>(words.data()),
                                  &timeout) == 0 ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  QueueObject& self = self_of(object);
  hocket_completion completion = {};
  completion.struct_size = sizeof completion;
  const hocket_status status =
      call([&] { return hocket_queue_next(self.queue, nanoseconds, &completion); });
  if (status == HOCKET_IN_PROGRESS) Py_RETURN_NONE;
  if (status != HOCKET_OK) return raise();
  Ref error;
  if (completion.status != HOCKET_OK) {
    raise();
    PyObject* kind = nullptr;
    PyObject* value = nullptr;
    PyObject* trace = nullptr;
    PyErr_Fetch(&kind, &value, &trace);
    error = Ref(value);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
  }
  const Ref pair = take(self, completion.tag);
  if (!pair) return PyErr_Occurred() != nullptr ? nullptr : raise();
  Ref made(PyStructSequence_New(completion_type));
  if (!made) return nullptr;
  PyObject* received =
      completion.is_received != 0 ? make_received(completion.received) : Ref::to(Py_None).release();
  if (received == nullptr) return nullptr;
  PyStructSequence_SetItem(made.get(), 0, Ref::to(PyTuple_GetItem(pair.get(), 1)).release());
  PyStructSequence_SetItem(made.get(), 1, error ? error.release() : Ref::to(Py_None).release());
  PyStructSequence_SetItem(made.get(), 2, received);
  return made.release();
}

PyObject* fileno(PyObject* object, PyObject* /*nothing*/) {
  return PyLong_FromLong(hocket_queue_fd(self_of(object).queue));
}

Py_ssize_t length(PyObject* object) { return PyDict_Size(self_of(object).expected); }

}  // namespace

QueueObject* to_queue(PyObject* object) {
  if (Py_TYPE(object) == queue_type) return reinterpret_cast<QueueObject*>(object);
  refuse(PyExc_TypeError, "%R is no Queue", object);
  return nullptr;
}

hocket_queue* handle_of(QueueObject* queue) { return queue->queue; }

uint64_t expect(QueueObject* queue, PyObject* operation, PyObject* tag) {
  const uint64_t number = ++queue->number;
  const Ref key(PyLong_FromUnsignedLongLong(number));
  const Ref pair(PyTuple_Pack(2, operation, tag));
  if (!key || !pair || PyDict_SetItem(queue->expected, key.get(), pair.get()) != 0) return 0;
  return number;
}

void forget(QueueObject* queue, uint64_t number) {
  if (!take(*queue, number)) PyErr_Clear();
}

bool add_queue(PyObject* module) {
  static std::array<PyMethodDef, 3> methods = {{
      {"next", function_of<next>(), METH_VARARGS | METH_KEYWORDS,
       "next(timeout=None)\n\nTakes the completion of an operation that has ended; waits for one. "
       "None if none has ended in time."},
      {"fileno", fileno, METH_NOARGS,
       "fileno()\n\nA descriptor that can be read while there is a completion; only to be "
       "watched."},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyType_Slot, 6> slots = {{
      {Py_tp_new, reinterpret_cast<void*>(make_queue)},
      {Py_tp_dealloc, slot_of<free_object<QueueObject, &QueueObject::queue, hocket_queue_free,
                                          &QueueObject::expected>>()},
      {Py_tp_methods, methods.data()},
      {Py_sq_length, reinterpret_cast<void*>(length)},
      {Py_tp_doc, const_cast<char*>("Where operations report that they have ended. Its length: how "
                                    "many have not been taken yet.")},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"hocket.Queue", sizeof(QueueObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots.data()};
  static std::array<PyStructSequence_Field, 4> fields = {{
      {"tag", "what start() was given"},
      {"error", "an exception; None if it went well"},
      {"received", "of a receive that went well: peer, tag and count; else None"},
      {nullptr, nullptr},
  }};
  static PyStructSequence_Desc completion_fields = {"hocket.Completion", "How an operation ended.",
                                                    fields.data(), 3};
  queue_type = add_type(module, spec);
  completion_type = PyStructSequence_NewType(&completion_fields);
  return queue_type != nullptr && completion_type != nullptr &&
         PyModule_AddType(module, completion_type) == 0;
}

}  // namespace hocket::python
