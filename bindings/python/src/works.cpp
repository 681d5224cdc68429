// Operations as values, and what has begun: hocket.Operation, Work and Prepared.
#include <array>
#include <new>

#include "objects.hpp"

namespace hocket::python {
namespace {

PyTypeObject* operation_type = nullptr;
PyTypeObject* work_type = nullptr;
PyTypeObject* prepared_type = nullptr;
PyTypeObject* received_type = nullptr;

struct WorkObject {
  PyObject_HEAD hocket_work* work;
  PyObject* operation;  // has its memory
};

struct PreparedObject {
  PyObject_HEAD hocket_prepared* prepared;
  PyObject* operation;
};

WorkObject& work_of(PyObject* object) { return *reinterpret_cast<WorkObject*>(object); }
PreparedObject& prepared_of(PyObject* object) { return *reinterpret_cast<PreparedObject*>(object); }

void free_operation(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  auto* const self = reinterpret_cast<OperationObject*>(object);
  delete self->collective;
  delete self->message;
  PyObject_Free(object);
  Py_DECREF(type);
}

OperationObject* new_operation() {
  auto* const made = PyObject_New(OperationObject, operation_type);
  if (made == nullptr) return nullptr;
  made->collective = nullptr;
  made->message = nullptr;
  return made;
}

template <hocket_kind kind>
PyObject* collective(PyObject* /*module*/, PyObject* const* given, Py_ssize_t count,
                     PyObject* names) {
  OperationObject* const self = new_operation();
  Ref made(reinterpret_cast<PyObject*>(self));
  if (!made) return nullptr;
  self->collective = new (std::nothrow) Collective;
  if (self->collective == nullptr) return PyErr_NoMemory();
  return self->collective->read(kind, given, count, names) ? made.release() : nullptr;
}

template <hocket_message_kind kind>
PyObject* message(PyObject* /*module*/, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  OperationObject* const self = new_operation();
  Ref made(reinterpret_cast<PyObject*>(self));
  if (!made) return nullptr;
  self->message = new (std::nothrow) Message;
  if (self->message == nullptr) return PyErr_NoMemory();
  return self->message->read(kind, given, count, names) ? made.release() : nullptr;
}

PyObject* wait(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 2> words = {"timeout", nullptr};
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "|O:wait", const_cast<char**>(words.data()),
                                  &timeout) == 0 ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  hocket_work* const work = work_of(object).work;
  const hocket_status status = call([&] { return hocket_work_wait(work, nanoseconds); });
  if (status != HOCKET_OK && status != HOCKET_IN_PROGRESS) return raise();
  return PyBool_FromLong(status == HOCKET_OK ? 1 : 0);
}

PyObject* test(PyObject* object, PyObject* /*nothing*/) {
  hocket_work* const work = work_of(object).work;
  const hocket_status status = call([&] { return hocket_work_test(work); });
  if (status != HOCKET_OK && status != HOCKET_IN_PROGRESS) return raise();
  return PyBool_FromLong(status == HOCKET_OK ? 1 : 0);
}

PyObject* received(PyObject* object, void*) {
  hocket_received what = {};
  if (hocket_work_received(work_of(object).work, &what) != HOCKET_OK) return raise();
  return make_received(what);
}

PyObject* run_prepared(PyObject* object, PyObject* /*nothing*/) {
  hocket_prepared* const prepared = prepared_of(object).prepared;
  return none_or_raise(call([&] { return hocket_prepared_run(prepared); }));
}

PyObject* start_prepared(PyObject* object, PyObject* /*nothing*/) {
  PreparedObject& self = prepared_of(object);
  hocket_work* work = nullptr;
  if (call([&] { return hocket_prepared_start(self.prepared, &work); }) != HOCKET_OK) {
    return raise();
  }
  return make_work(work, Ref::to(self.operation));
}

/// The handles of a list of works. Fails with an exception.
bool read_works(PyObject* list, Ref& kept, std::vector<hocket_work*>& works) {
  kept = Ref(PySequence_Tuple(list));
  if (!kept) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(kept.get()); ++i) {
    PyObject* const each = PyTuple_GetItem(kept.get(), i);
    if (Py_TYPE(each) != work_type) {
      refuse(PyExc_TypeError, "%R is no Work", each);
      return false;
    }
    works.push_back(work_of(each).work);
  }
  return true;
}

PyObject* wait_all(PyObject* /*module*/, PyObject* list) {
  Ref kept;
  std::vector<hocket_work*> works;
  if (!read_works(list, kept, works)) return nullptr;
  return none_or_raise(call([&] { return hocket_wait_all(works.data(), works.size()); }));
}

PyObject* wait_any(PyObject* /*module*/, PyObject* list) {
  Ref kept;
  std::vector<hocket_work*> works;
  if (!read_works(list, kept, works)) return nullptr;
  std::size_t which = 0;
  if (call([&] { return hocket_wait_any(works.data(), works.size(), &which); }) != HOCKET_OK) {
    return raise();
  }
  return PyLong_FromSize_t(which);
}

constexpr int fast = METH_FASTCALL | METH_KEYWORDS;

bool add_functions(PyObject* module) {
  static std::array<PyMethodDef, 16> functions = {{
      {"all_reduce", function_of<collective<HOCKET_KIND_ALL_REDUCE>>(), fast, "As Communicator's."},
      {"reduce_scatter", function_of<collective<HOCKET_KIND_REDUCE_SCATTER>>(), fast, "Likewise."},
      {"all_gather", function_of<collective<HOCKET_KIND_ALL_GATHER>>(), fast, "Likewise."},
      {"broadcast", function_of<collective<HOCKET_KIND_BROADCAST>>(), fast, "Likewise."},
      {"reduce", function_of<collective<HOCKET_KIND_REDUCE>>(), fast, "Likewise."},
      {"gather", function_of<collective<HOCKET_KIND_GATHER>>(), fast, "Likewise."},
      {"scatter", function_of<collective<HOCKET_KIND_SCATTER>>(), fast, "Likewise."},
      {"all_to_all", function_of<collective<HOCKET_KIND_ALL_TO_ALL>>(), fast, "Likewise."},
      {"barrier", function_of<collective<HOCKET_KIND_BARRIER>>(), fast, "Likewise."},
      {"scan", function_of<collective<HOCKET_KIND_SCAN>>(), fast, "Likewise."},
      {"exscan", function_of<collective<HOCKET_KIND_EXSCAN>>(), fast, "Likewise."},
      {"send", function_of<message<HOCKET_MESSAGE_SEND>>(), fast, "Likewise."},
      {"recv", function_of<message<HOCKET_MESSAGE_RECV>>(), fast, "Likewise."},
      {"wait_all", function_of<wait_all>(), METH_O,
       "wait_all(works)\n\nWaits until all have ended; then raises what the first failed one "
       "says."},
      {"wait_any", function_of<wait_any>(), METH_O,
       "wait_any(works)\n\nWaits until one has ended, and returns its place in the list."},
      {nullptr, nullptr, 0, nullptr},
  }};
  return PyModule_AddFunctions(module, functions.data()) == 0;
}

}  // namespace

OperationObject* to_operation(PyObject* object) {
  if (Py_TYPE(object) == operation_type) return reinterpret_cast<OperationObject*>(object);
  refuse(PyExc_TypeError,
         "%R is no operation: hocket.all_reduce() and its like make one without running it",
         object);
  return nullptr;
}

PyObject* make_work(hocket_work* work, Ref operation) {
  auto* const made = PyObject_New(WorkObject, work_type);
  if (made == nullptr) {
    hocket_work_free(work);
    return nullptr;
  }
  made->work = work;
  made->operation = operation.release();
  return reinterpret_cast<PyObject*>(made);
}

PyObject* make_prepared(hocket_prepared* prepared, Ref operation) {
  auto* const made = PyObject_New(PreparedObject, prepared_type);
  if (made == nullptr) {
    hocket_prepared_free(prepared);
    return nullptr;
  }
  made->prepared = prepared;
  made->operation = operation.release();
  return reinterpret_cast<PyObject*>(made);
}

PyObject* make_received(const hocket_received& what) {
  Ref made(PyStructSequence_New(received_type));
  if (!made) return nullptr;
  const std::array<PyObject*, 3> fields = {PyLong_FromLong(what.peer), PyLong_FromLong(what.tag),
                                           PyLong_FromSize_t(what.count)};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == nullptr) return nullptr;
    PyStructSequence_SetItem(made.get(), static_cast<Py_ssize_t>(i), fields[i]);
  }
  return made.release();
}

bool add_collectives(PyObject* module) {
  static std::array<PyType_Slot, 3> slots = {{
      {Py_tp_dealloc, reinterpret_cast<void*>(free_operation)},
      {Py_tp_doc, const_cast<char*>("A collective or a message as a value, to be run, started or "
                                    "prepared. Keeps its memory.")},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"hocket.Operation", sizeof(OperationObject), 0, made_here,
                             slots.data()};
  operation_type = add_type(module, spec);
  return operation_type != nullptr && add_functions(module);
}

bool add_works(PyObject* module) {
  static std::array<PyMethodDef, 3> methods = {{
      {"wait", function_of<wait>(), METH_VARARGS | METH_KEYWORDS,
       "wait(timeout=None)\n\nWaits until it has ended; raises if it failed. False if it has not "
       "ended in time."},
      {"test", test, METH_NOARGS,
       "test()\n\nMakes progress. Whether it has ended; raises if it failed."},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyGetSetDef, 2> members = {{
      {"received", received, nullptr, "Of a receive that has ended: peer, tag and count", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  }};
  static std::array<PyType_Slot, 5> slots = {{
      {Py_tp_dealloc,
       slot_of<
           free_object<WorkObject, &WorkObject::work, hocket_work_free, &WorkObject::operation>>()},
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, members.data()},
      {Py_tp_doc,
       const_cast<char*>("An operation that was started. To drop it waits for its end, unless a "
                         "queue reports that.")},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"hocket.Work", sizeof(WorkObject), 0, made_here, slots.data()};
  static std::array<PyMethodDef, 3> prepared_methods = {{
      {"run", run_prepared, METH_NOARGS, "run()\n\nRuns it to its end."},
      {"start", start_prepared, METH_NOARGS, "start()\n\nStarts it, as Communicator.start()."},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyType_Slot, 4> prepared_slots = {{
      {Py_tp_dealloc, slot_of<free_object<PreparedObject, &PreparedObject::prepared,
                                          hocket_prepared_free, &PreparedObject::operation>>()},
      {Py_tp_methods, prepared_methods.data()},
      {Py_tp_doc, const_cast<char*>("A collective made ready, to be run many times.")},
      {0, nullptr},
  }};
  static PyType_Spec prepared_spec = {"hocket.Prepared", sizeof(PreparedObject), 0, made_here,
                                      prepared_slots.data()};
  static std::array<PyStructSequence_Field, 4> fields = {{
      {"peer", "the rank that sent it"},
      {"tag", nullptr},
      {"count", "elements"},
      {nullptr, nullptr},
  }};
  static PyStructSequence_Desc received_fields = {"hocket.Received", "What a receive got.",
                                                  fields.data(), 3};
  work_type = add_type(module, spec);
  prepared_type = add_type(module, prepared_spec);
  received_type = PyStructSequence_NewType(&received_fields);
  return work_type != nullptr && prepared_type != nullptr && received_type != nullptr &&
         PyModule_AddType(module, received_type) == 0;
}

}  // namespace hocket::python
