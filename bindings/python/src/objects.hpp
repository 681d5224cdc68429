// What the module's objects are made of, for each other.
#pragma once

#include <memory>

#include "operation.hpp"

namespace hocket::python {

/// One of both.
struct OperationObject {
  PyObject_HEAD Collective* collective;
  Message* message;
};
/// Null, with an exception, if it is none.
[[nodiscard]] OperationObject* to_operation(PyObject* object);

struct CommunicatorObject {
  PyObject_HEAD hocket_comm* comm;
  int32_t rank;
  int32_t size;
};
/// Takes the handle. Null, with an exception, if there is no memory.
[[nodiscard]] PyObject* make_communicator(hocket_comm* comm);

/// Null, with an exception, if it is none.
[[nodiscard]] hocket_comm* to_communicator(PyObject* object);

// Functions of the module.
PyObject* join(PyObject* module, PyObject* arguments, PyObject* by_name);
PyObject* meet(PyObject* module, PyObject* arguments, PyObject* by_name);
PyObject* allocate(PyObject* module, PyObject* arguments);

/// Takes the handle; keeps what has the operation's memory.
[[nodiscard]] PyObject* make_work(hocket_work* work, Ref operation);
[[nodiscard]] PyObject* make_prepared(hocket_prepared* prepared, Ref operation);

struct QueueObject;
[[nodiscard]] QueueObject* to_queue(PyObject* object);
[[nodiscard]] hocket_queue* handle_of(QueueObject* queue);
/// Remembers the operation until it is reported, and its tag. Returns the number by which the
/// library is to report it; 0, with an exception, if there is no memory.
[[nodiscard]] uint64_t expect(QueueObject* queue, PyObject* operation, PyObject* tag);
void forget(QueueObject* queue, uint64_t number);

[[nodiscard]] hocket_store* to_store(PyObject* object);
/// Takes the handle. Null, with an exception, if there is no memory.
[[nodiscard]] PyObject* make_store(hocket_store* store);

/// (peer, tag, count)
[[nodiscard]] PyObject* make_received(const hocket_received& received);

/// The settings of a dictionary of strings; pointers into it, which must stay. Fails with an
/// exception.
class Settings {
 public:
  [[nodiscard]] bool read(PyObject* dictionary);
  [[nodiscard]] const hocket_setting* data() const noexcept { return settings_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return settings_.size(); }

 private:
  Ref dictionary_;
  std::vector<hocket_setting> settings_;
};

}  // namespace hocket::python
