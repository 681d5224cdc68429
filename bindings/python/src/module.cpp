// The module hocket._core.
#include <array>
#include <string_view>

#include "objects.hpp"

namespace {

using namespace hocket::python;

PyObject* version(PyObject* /*module*/, PyObject* /*nothing*/) {
  return PyUnicode_FromString(hocket_version());
}

PyObject* reduce_local(PyObject* /*module*/, PyObject* arguments) {
  PyObject* out = nullptr;
  PyObject* a = nullptr;
  PyObject* b = nullptr;
  const char* op = "sum";
  if (PyArg_ParseTuple(arguments, "OOO|s:reduce_local", &out, &a, &b, &op) == 0) return nullptr;
  View to;
  View left;
  View right;
  if (!to.take(out, true, nullptr) || !left.take(a, false, nullptr) ||
      !right.take(b, false, nullptr)) {
    return nullptr;
  }
  const bool are_alike = left.count() == to.count() && right.count() == to.count() &&
                         left.dtype() == to.dtype() && right.dtype() == to.dtype();
  if (!are_alike) return refuse(PyExc_ValueError, "out, a and b differ in their length or type");
  for (hocket_op each = HOCKET_OP_SUM; each < HOCKET_OP_CUSTOM; ++each) {
    if (std::string_view(op) != hocket_op_name(each)) continue;
    return none_or_raise(call([&] {
      return hocket_reduce_local(to.data(), left.data(), right.data(), to.count(), to.dtype(),
                                 each);
    }));
  }
  return refuse(PyExc_ValueError, "there is no op '%s'", op);
}

PyObject* leave_all_worlds(PyObject* /*module*/, PyObject* /*nothing*/) {
  const WithoutGil unlocked;
  hocket_leave_all_worlds();
  Py_RETURN_NONE;
}

std::array<PyMethodDef, 7> functions = {{
    {"join", function_of<join>(), METH_VARARGS | METH_KEYWORDS,
     "join(url=None, *, timeout=None, operation_timeout=None, name=None, settings=None, "
     "store=None, "
     "rank=0, size=0)\n\nMeets the other ranks of a world, and returns the communicator of all: "
     "where the launcher says, at a URL, or in a store as this rank of so many."},
    {"meet", function_of<meet>(), METH_VARARGS | METH_KEYWORDS,
     "meet(url=None, *, timeout=None, name=None, settings=None, store=None, rank=0, size=0)\n\n"
     "Meets the other ranks as join() does, without connections between them. Returns a store that "
     "they share, the rank and the number of ranks."},
    {"leave_all_worlds", leave_all_worlds, METH_NOARGS,
     "leave_all_worlds()\n\nSays good-bye to the other ranks of all worlds of this process, before "
     "os._exit(). Other ways to end do it by themselves, also of children of multiprocessing."},
    {"allocate", allocate, METH_VARARGS,
     "allocate(communicator, size)\n\nMemory of so many bytes that the world's adapters know."},
    {"reduce_local", reduce_local, METH_VARARGS,
     "reduce_local(out, a, b, op='sum')\n\nout[i] = a[i] op b[i], on this process alone, as "
     "collectives do it."},
    {"version", version, METH_NOARGS, "version()\n\nOf the library, such as \"0.2.0\"."},
    {nullptr, nullptr, 0, nullptr},
}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "hocket._core",
                          nullptr,
                          -1,
                          functions.data(),
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() {
  Ref module(PyModule_Create(&definition));
  const bool is_whole = module && prepare_names() && add_errors(module.get()) &&
                        add_collectives(module.get()) && add_works(module.get()) &&
                        add_queue(module.get()) && add_store(module.get()) &&
                        add_buffer(module.get()) && add_communicator(module.get());
  return is_whole ? module.release() : nullptr;
}
