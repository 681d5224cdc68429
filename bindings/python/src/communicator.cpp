// hocket.join() and hocket.Communicator.
#include <array>

#include "objects.hpp"

namespace hocket::python {
namespace {

PyTypeObject* communicator_type = nullptr;

CommunicatorObject& self_of(PyObject* object) {
  return *reinterpret_cast<CommunicatorObject*>(object);
}

/// Runs a collective of this kind to its end.
template <hocket_kind kind>
PyObject* run_kind(PyObject* object, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  const CommunicatorObject& self = self_of(object);
  Collective collective;
  if (!collective.read(kind, given, count, names)) return nullptr;
  if (!collective.place(self.rank, self.size)) return nullptr;
  return none_or_raise(call([&] { return hocket_run(self.comm, &collective.get()); }));
}

PyObject* send(PyObject* object, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  Message message;
  if (!message.read(HOCKET_MESSAGE_SEND, given, count, names)) return nullptr;
  hocket_comm* const comm = self_of(object).comm;
  return none_or_raise(call([&] { return hocket_run_message(comm, &message.get(), nullptr); }));
}

PyObject* recv(PyObject* object, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  Message message;
  if (!message.read(HOCKET_MESSAGE_RECV, given, count, names)) return nullptr;
  hocket_comm* const comm = self_of(object).comm;
  hocket_received received = {};
  if (call([&] { return hocket_run_message(comm, &message.get(), &received); }) != HOCKET_OK) {
    return raise();
  }
  return make_received(received);
}

PyObject* run(PyObject* object, PyObject* given) {
  OperationObject* const operation = to_operation(given);
  if (operation == nullptr) return nullptr;
  const CommunicatorObject& self = self_of(object);
  if (operation->message != nullptr) {
    hocket_received received = {};
    hocket_message& message = operation->message->get();
    const bool is_recv = message.kind == HOCKET_MESSAGE_RECV;
    const hocket_status status = call(
        [&] { return hocket_run_message(self.comm, &message, is_recv ? &received : nullptr); });
    if (status != HOCKET_OK || !is_recv) return none_or_raise(status);
    return make_received(received);
  }
  Collective& collective = *operation->collective;
  if (!collective.place(self.rank, self.size)) return nullptr;
  return none_or_raise(call([&] { return hocket_run(self.comm, &collective.get()); }));
}

/// Of start() and start_many().
struct Report {
  QueueObject* queue = nullptr;
  uint64_t number = 0;

  [[nodiscard]] bool expect_one(PyObject* queue_or_none, PyObject* operation, PyObject* tag) {
    if (queue_or_none == nullptr || queue_or_none == Py_None) return true;
    queue = to_queue(queue_or_none);
    if (queue == nullptr) return false;
    number = expect(queue, operation, tag == nullptr ? Py_None : tag);
    return number != 0;
  }
  [[nodiscard]] hocket_queue* handle() const {
    return queue == nullptr ? nullptr : handle_of(queue);
  }
  PyObject* give_up() const {
    if (queue != nullptr) forget(queue, number);
    return raise();
  }
};

PyObject* start(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 4> names = {"operation", "queue", "tag", nullptr};
  PyObject* given = nullptr;
  PyObject* queue = nullptr;
  PyObject* tag = nullptr;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "O|OO:start",
                                  const_cast<char**>(names.data()), &given, &queue, &tag) == 0) {
    return nullptr;
  }
  OperationObject* const operation = to_operation(given);
  if (operation == nullptr) return nullptr;
  const CommunicatorObject& self = self_of(object);
  if (operation->collective != nullptr && !operation->collective->place(self.rank, self.size)) {
    return nullptr;
  }
  Report report;
  if (!report.expect_one(queue, given, tag)) return nullptr;
  hocket_work* work = nullptr;
  hocket_status status = HOCKET_OK;
  if (operation->message != nullptr) {
    hocket_message message = operation->message->get();
    message.queue = report.handle();
    message.queue_tag = report.number;
    status = call([&] { return hocket_start_message(self.comm, &message, &work); });
  } else {
    hocket_collective collective = operation->collective->get();
    collective.queue = report.handle();
    collective.queue_tag = report.number;
    status = call([&] { return hocket_start(self.comm, &collective, &work); });
  }
  if (status != HOCKET_OK) return report.give_up();
  return make_work(work, Ref::to(given));
}

PyObject* start_many(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 4> names = {"operations", "queue", "tag", nullptr};
  PyObject* list = nullptr;
  PyObject* queue = nullptr;
  PyObject* tag = nullptr;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "O|OO:start_many",
                                  const_cast<char**>(names.data()), &list, &queue, &tag) == 0) {
    return nullptr;
  }
  const Ref kept(PySequence_Tuple(list));  // the caller may change the list
  if (!kept) return nullptr;
  const CommunicatorObject& self = self_of(object);
  std::vector<const hocket_collective*> collectives;
  std::vector<const hocket_message*> messages;
  for (Py_ssize_t i = 0; i < PyTuple_Size(kept.get()); ++i) {
    OperationObject* const each = to_operation(PyTuple_GetItem(kept.get(), i));
    if (each == nullptr) return nullptr;
    if (each->collective != nullptr && !each->collective->place(self.rank, self.size)) {
      return nullptr;
    }
    collectives.push_back(each->collective == nullptr ? nullptr : &each->collective->get());
    messages.push_back(each->message == nullptr ? nullptr : &each->message->get());
  }
  Report report;
  if (!report.expect_one(queue, kept.get(), tag)) return nullptr;
  hocket_work* work = nullptr;
  const hocket_status status = call([&] {
    return hocket_start_many(self.comm, collectives.data(), messages.data(), collectives.size(),
                             report.handle(), report.number, &work);
  });
  if (status != HOCKET_OK) return report.give_up();
  return make_work(work, Ref::to(kept.get()));
}

PyObject* prepare(PyObject* object, PyObject* given) {
  OperationObject* const operation = to_operation(given);
  if (operation == nullptr) return nullptr;
  if (operation->collective == nullptr) {
    return refuse(PyExc_TypeError, "a message can't be prepared: collectives can");
  }
  const CommunicatorObject& self = self_of(object);
  if (!operation->collective->place(self.rank, self.size)) return nullptr;
  hocket_prepared* prepared = nullptr;
  const hocket_status status =
      call([&] { return hocket_prepare(self.comm, &operation->collective->get(), &prepared); });
  if (status != HOCKET_OK) return raise();
  return make_prepared(prepared, Ref::to(given));
}

/// None for a rank that is in no new communicator.
PyObject* made(hocket_status status, hocket_comm* comm) {
  if (status != HOCKET_OK) return raise();
  if (comm == nullptr) Py_RETURN_NONE;
  return make_communicator(comm);
}

PyObject* group(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 4> words = {"ranks", "name", "timeout", nullptr};
  PyObject* list = nullptr;
  const char* name = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "O|zO:group",
                                  const_cast<char**>(words.data()), &list, &name, &timeout) == 0 ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  const Py_ssize_t count = PySequence_Size(list);
  if (count < 0) return nullptr;
  std::vector<int32_t> ranks(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref each(PySequence_GetItem(list, i));
    if (!each || !to_int(each.get(), ranks[static_cast<std::size_t>(i)])) return nullptr;
  }
  hocket_comm* const parent = self_of(object).comm;
  hocket_comm* comm = nullptr;
  const hocket_status status = call([&] {
    return hocket_comm_group(parent, ranks.data(), ranks.size(), name, nanoseconds, &comm);
  });
  return made(status, comm);
}

PyObject* split(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 3> words = {"color", "key", nullptr};
  PyObject* color = nullptr;
  int key = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "O|i:split", const_cast<char**>(words.data()),
                                  &color, &key) == 0) {
    return nullptr;
  }
  int32_t number = -1;  // None: in no part
  if (color != Py_None && !to_int(color, number)) return nullptr;
  hocket_comm* const parent = self_of(object).comm;
  hocket_comm* comm = nullptr;
  const hocket_status status = call([&] { return hocket_comm_split(parent, number, key, &comm); });
  return made(status, comm);
}

PyObject* dup(PyObject* object, PyObject* /*nothing*/) {
  hocket_comm* const parent = self_of(object).comm;
  hocket_comm* comm = nullptr;
  const hocket_status status = call([&] { return hocket_comm_dup(parent, &comm); });
  return made(status, comm);
}

PyObject* monitored_barrier(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 2> words = {"timeout", nullptr};
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "|O:monitored_barrier",
                                  const_cast<char**>(words.data()), &timeout) == 0 ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  hocket_comm* const comm = self_of(object).comm;
  return none_or_raise(call([&] { return hocket_monitored_barrier(comm, nanoseconds); }));
}

PyObject* abort_all(PyObject* object, PyObject* arguments) {
  const char* reason = nullptr;
  if (PyArg_ParseTuple(arguments, "|z:abort", &reason) == 0) return nullptr;
  hocket_comm_abort(self_of(object).comm, reason);
  Py_RETURN_NONE;
}

PyObject* host(PyObject* object, PyObject* rank) {
  int32_t number = 0;
  if (!to_int(rank, number)) return nullptr;
  const char* const name = hocket_comm_host(self_of(object).comm, number);
  return name == nullptr ? raise() : PyUnicode_FromString(name);
}

PyObject* rank_in(PyObject* object, PyObject* arguments) {
  PyObject* other = nullptr;
  int rank = 0;
  if (PyArg_ParseTuple(arguments, "O!i:rank_in", communicator_type, &other, &rank) == 0) {
    return nullptr;
  }
  const int32_t there = hocket_comm_rank_in(self_of(object).comm, self_of(other).comm, rank);
  if (there < 0) Py_RETURN_NONE;
  return PyLong_FromLong(there);
}

PyObject* get_rank(PyObject* object, void*) { return PyLong_FromLong(self_of(object).rank); }
PyObject* get_size(PyObject* object, void*) { return PyLong_FromLong(self_of(object).size); }
PyObject* get_local_rank(PyObject* object, void*) {
  return PyLong_FromLong(hocket_comm_local_rank(self_of(object).comm));
}
PyObject* get_local_size(PyObject* object, void*) {
  return PyLong_FromLong(hocket_comm_local_size(self_of(object).comm));
}
PyObject* get_transport(PyObject* object, void*) {
  return PyUnicode_FromString(hocket_comm_transport(self_of(object).comm));
}

constexpr int fast = METH_FASTCALL | METH_KEYWORDS;
constexpr int named = METH_VARARGS | METH_KEYWORDS;

}  // namespace

PyObject* make_communicator(hocket_comm* comm) {
  auto* const made = PyObject_New(CommunicatorObject, communicator_type);
  if (made == nullptr) {
    hocket_comm_free(comm);
    return nullptr;
  }
  made->comm = comm;
  made->rank = hocket_comm_rank(comm);
  made->size = hocket_comm_size(comm);
  return reinterpret_cast<PyObject*>(made);
}

hocket_comm* to_communicator(PyObject* object) {
  if (Py_TYPE(object) == communicator_type) return self_of(object).comm;
  refuse(PyExc_TypeError, "%R is no Communicator", object);
  return nullptr;
}

bool Settings::read(PyObject* dictionary) {
  if (dictionary == nullptr || dictionary == Py_None) return true;
  dictionary_ = Ref(PyDict_Copy(dictionary));
  if (!dictionary_) return false;
  Py_ssize_t at = 0;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dictionary_.get(), &at, &name, &value) != 0) {
    const char* const name_text = PyUnicode_AsUTF8AndSize(name, nullptr);
    const char* const text =
        name_text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(value, nullptr);
    if (text == nullptr) return false;
    settings_.push_back({name_text, text});
  }
  return true;
}

/// The arguments of hocket.join(); those of hocket.meet() are the same.
class JoinArguments {
 public:
  /// False, with an exception set, if they are wrong.
  bool read(PyObject* arguments, PyObject* by_name) {
    static const std::array<const char*, 9> words = {"url",  "timeout",  "operation_timeout",
                                                     "name", "settings", "store",
                                                     "rank", "size",     nullptr};
    PyObject* timeout = nullptr;
    PyObject* operation_timeout = nullptr;
    PyObject* settings = nullptr;
    PyObject* store = nullptr;
    options_.struct_size = sizeof options_;
    if (PyArg_ParseTupleAndKeywords(arguments, by_name, "|z$OOzOOii",
                                    const_cast<char**>(words.data()), &options_.url, &timeout,
                                    &operation_timeout, &options_.name, &settings, &store,
                                    &options_.rank, &options_.size) == 0 ||
        !to_timeout(timeout, options_.timeout_ns) ||
        !to_timeout(operation_timeout, options_.operation_timeout_ns) ||
        !settings_.read(settings)) {
      return false;
    }
    options_.settings = settings_.data();
    options_.setting_count = settings_.size();
    if (store == nullptr || store == Py_None) return true;
    options_.store = to_store(store);
    return options_.store != nullptr;
  }

  [[nodiscard]] const hocket_join_options* options() const noexcept { return &options_; }

 private:
  hocket_join_options options_ = {};
  Settings settings_;
};

PyObject* join(PyObject* /*module*/, PyObject* arguments, PyObject* by_name) {
  JoinArguments read;
  if (!read.read(arguments, by_name)) return nullptr;
  hocket_comm* comm = nullptr;
  if (call([&] { return hocket_join(read.options(), &comm); }) != HOCKET_OK) return raise();
  return make_communicator(comm);
}

PyObject* meet(PyObject* /*module*/, PyObject* arguments, PyObject* by_name) {
  JoinArguments read;
  if (!read.read(arguments, by_name)) return nullptr;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  hocket_store* store = nullptr;
  if (call([&] { return hocket_meet(read.options(), &rank, &size, &store); }) != HOCKET_OK) {
    return raise();
  }
  const Ref made(make_store(store));
  if (!made) return nullptr;
  return Py_BuildValue("(Oii)", made.get(), rank, size);
}

bool add_communicator(PyObject* module) {
  static std::array<PyMethodDef, 25> methods = {{
      {"all_reduce", function_of<run_kind<HOCKET_KIND_ALL_REDUCE>>(), fast,
       "all_reduce(values, out=None, op='sum', *, factor=1.0, keeps_order=False, dtype=None, "
       "timeout=None)\n\nReduces the values of all ranks, for all of them; in place without out."},
      {"reduce_scatter", function_of<run_kind<HOCKET_KIND_REDUCE_SCATTER>>(), fast,
       "reduce_scatter(values, out=None, op='sum', *, counts=None, factor=1.0, keeps_order=False, "
       "dtype=None, timeout=None)\n\nReduces as many parts as there are ranks, and gives each rank "
       "its own."},
      {"all_gather", function_of<run_kind<HOCKET_KIND_ALL_GATHER>>(), fast,
       "all_gather(values, out=None, *, counts=None, dtype=None, timeout=None)\n\nGives every rank "
       "the parts of all. In place, values has room for all, and this rank's part in it."},
      {"broadcast", function_of<run_kind<HOCKET_KIND_BROADCAST>>(), fast,
       "broadcast(values, root=0, *, dtype=None, timeout=None)\n\nGives every rank what the root "
       "has."},
      {"reduce", function_of<run_kind<HOCKET_KIND_REDUCE>>(), fast,
       "reduce(values, out=None, op='sum', root=0, *, factor=1.0, keeps_order=False, dtype=None, "
       "timeout=None)\n\nReduces the values of all ranks, for the root."},
      {"gather", function_of<run_kind<HOCKET_KIND_GATHER>>(), fast,
       "gather(values, out=None, root=0, *, counts=None, dtype=None, timeout=None)\n\nGives the "
       "root "
       "the parts of all. In place, values has room for all there."},
      {"scatter", function_of<run_kind<HOCKET_KIND_SCATTER>>(), fast,
       "scatter(values, out=None, root=0, *, counts=None, dtype=None, timeout=None)\n\nGives each "
       "rank its part of what the root has. values is None on other ranks."},
      {"all_to_all", function_of<run_kind<HOCKET_KIND_ALL_TO_ALL>>(), fast,
       "all_to_all(values, out, *, counts=None, counts_from=None, dtype=None, "
       "timeout=None)\n\nGives "
       "each rank a part of what every rank has."},
      {"barrier", function_of<run_kind<HOCKET_KIND_BARRIER>>(), fast,
       "barrier(*, timeout=None)\n\nWaits until all ranks have called it."},
      {"scan", function_of<run_kind<HOCKET_KIND_SCAN>>(), fast,
       "scan(values, out=None, op='sum', *, factor=1.0, keeps_order=False, dtype=None, "
       "timeout=None)\n\nReduces the values of the ranks up to this one."},
      {"exscan", function_of<run_kind<HOCKET_KIND_EXSCAN>>(), fast,
       "exscan(values, out=None, op='sum', *, factor=1.0, keeps_order=False, dtype=None, "
       "timeout=None)\n\nReduces the values of the ranks below this one; rank 0 gets nothing."},
      {"send", function_of<send>(), fast,
       "send(values, peer, tag=0, *, dtype=None, timeout=None)\n\nSends a message."},
      {"recv", function_of<recv>(), fast,
       "recv(values, peer=None, tag=None, *, dtype=None, timeout=None, "
       "fails_alone=False)\n\nReceives a message, from "
       "any rank or with any tag where that is None. Returns its peer, tag and count."},
      {"run", run, METH_O, "run(operation)\n\nRuns an operation to its end."},
      {"start", function_of<start>(), named,
       "start(operation, queue=None, tag=None)\n\nStarts an operation. It goes on in the "
       "background, "
       "and reports its end to the queue, if there is one."},
      {"start_many", function_of<start_many>(), named,
       "start_many(operations, queue=None, tag=None)\n\nStarts several operations as one."},
      {"prepare", prepare, METH_O,
       "prepare(operation)\n\nPrepares a collective to be run many times."},
      {"group", function_of<group>(), named,
       "group(ranks, name=None, timeout=None)\n\nMakes a communicator of these ranks, which alone "
       "call it. None on a rank that is not among them."},
      {"split", function_of<split>(), named,
       "split(color, key=0)\n\nMakes a communicator of the ranks with this color, by key and rank. "
       "None for the color None."},
      {"dup", dup, METH_NOARGS, "dup()\n\nMakes a communicator of the same ranks."},
      {"monitored_barrier", function_of<monitored_barrier>(), named,
       "monitored_barrier(timeout=None)\n\nA barrier that names who is missing when time is over."},
      {"abort", abort_all, METH_VARARGS,
       "abort(reason=None)\n\nEnds it: all operations fail, here and on other ranks."},
      {"host", host, METH_O, "host(rank)\n\nThe name of the host on which that rank runs."},
      {"rank_in", rank_in, METH_VARARGS,
       "rank_in(other, rank)\n\nThe number in another communicator of the rank here; None if it is "
       "not in it."},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyGetSetDef, 6> members = {{
      {"rank", get_rank, nullptr, "This rank's number", nullptr},
      {"size", get_size, nullptr, "How many ranks there are", nullptr},
      {"local_rank", get_local_rank, nullptr, "This rank's number on its host", nullptr},
      {"local_size", get_local_size, nullptr, "How many ranks its host has", nullptr},
      {"transport", get_transport, nullptr, "What carries its messages: \"tcp\"", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  }};
  static std::array<PyType_Slot, 5> slots = {{
      {Py_tp_dealloc,
       slot_of<free_object<CommunicatorObject, &CommunicatorObject::comm, hocket_comm_free>>()},
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, members.data()},
      {Py_tp_doc, const_cast<char*>("Ranks that run operations together. hocket.join() makes the "
                                    "first one.")},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"hocket.Communicator", sizeof(CommunicatorObject), 0, made_here,
                             slots.data()};
  communicator_type = add_type(module, spec);
  return communicator_type != nullptr;
}

}  // namespace hocket::python
