// hocket.allocate(): memory that the adapters of a world know.
#include <array>

#include "objects.hpp"

namespace hocket::python {
namespace {

PyTypeObject* buffer_type = nullptr;

struct BufferObject {
  PyObject_HEAD hocket_buffer* buffer;
  Py_ssize_t size;
};

BufferObject& self_of(PyObject* object) { return *reinterpret_cast<BufferObject*>(object); }

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  BufferObject& self = self_of(object);
  return PyBuffer_FillInfo(view, object, hocket_buffer_data(self.buffer), self.size, 0, flags);
}

Py_ssize_t length(PyObject* object) { return self_of(object).size; }

}  // namespace

PyObject* allocate(PyObject* /*module*/, PyObject* arguments) {
  PyObject* communicator = nullptr;
  Py_ssize_t size = 0;
  if (PyArg_ParseTuple(arguments, "On:allocate", &communicator, &size) == 0) return nullptr;
  hocket_comm* const comm = to_communicator(communicator);
  if (comm == nullptr) return nullptr;
  if (size < 0) return refuse(PyExc_ValueError, "%zd bytes", size);
  hocket_buffer* buffer = nullptr;
  const hocket_status status =
      call([&] { return hocket_allocate(comm, static_cast<std::size_t>(size), &buffer); });
  if (status != HOCKET_OK) return raise();
  auto* const made = PyObject_New(BufferObject, buffer_type);
  if (made == nullptr) {
    hocket_buffer_free(buffer);
    return nullptr;
  }
  made->buffer = buffer;
  made->size = size;
  return reinterpret_cast<PyObject*>(made);
}

bool add_buffer(PyObject* module) {
  static std::array<PyType_Slot, 5> slots = {{
      {Py_tp_dealloc,
       slot_of<free_object<BufferObject, &BufferObject::buffer, hocket_buffer_free>>()},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_sq_length, reinterpret_cast<void*>(length)},
      {Py_tp_doc, const_cast<char*>("Zeroed bytes, to be taken by numpy.frombuffer() and its like. "
                                    "Operations move them without copies.")},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"hocket.Buffer", sizeof(BufferObject), 0, made_here, slots.data()};
  buffer_type = add_type(module, spec);
  return buffer_type != nullptr;
}

}  // namespace hocket::python
