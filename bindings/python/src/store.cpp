// hocket.Store and hocket.StoreServer, and a program's own store.
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "objects.hpp"

namespace hocket::python {
namespace {

PyTypeObject* store_type = nullptr;
PyTypeObject* server_type = nullptr;

struct StoreObject {
  PyObject_HEAD hocket_store* store;
};

struct ServerObject {
  PyObject_HEAD hocket_store_server* server;
};

hocket_store* store_of(PyObject* object) { return reinterpret_cast<StoreObject*>(object)->store; }

/// What the library gives back, freed with it.
class Values {
 public:
  Values() = default;
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() { hocket_values_free(values_); }
  [[nodiscard]] hocket_values** to() noexcept { return &values_; }
  [[nodiscard]] std::size_t count() const { return hocket_values_count(values_); }
  [[nodiscard]] PyObject* bytes(std::size_t i) const {
    return PyBytes_FromStringAndSize(hocket_values_data(values_, i),
                                     static_cast<Py_ssize_t>(hocket_values_size(values_, i)));
  }
  [[nodiscard]] PyObject* text(std::size_t i) const {
    return PyUnicode_FromStringAndSize(hocket_values_data(values_, i),
                                       static_cast<Py_ssize_t>(hocket_values_size(values_, i)));
  }

 private:
  hocket_values* values_ = nullptr;
};

/// Bytes, or text in UTF-8.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes&) = delete;
  Bytes(Bytes&& other) noexcept : buffer_(other.buffer_), data_(other.data_), size_(other.size_) {
    other.buffer_ = {};
  }
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }

  [[nodiscard]] bool take(PyObject* object) {
    if (PyUnicode_Check(object) != 0) {
      Py_ssize_t size = 0;
      data_ = PyUnicode_AsUTF8AndSize(object, &size);
      size_ = static_cast<std::size_t>(size);
      return data_ != nullptr;
    }
    if (PyObject_GetBuffer(object, &buffer_, PyBUF_SIMPLE) != 0) {
      buffer_ = {};
      return false;
    }
    data_ = buffer_.buf;
    size_ = static_cast<std::size_t>(buffer_.len);
    return true;
  }
  [[nodiscard]] const void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  Py_buffer buffer_ = {};
  const void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The texts of a sequence, which this keeps.
class Keys {
 public:
  [[nodiscard]] bool read(PyObject* sequence) {
    kept_ = Ref(PySequence_Tuple(sequence));
    if (!kept_) return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(kept_.get()); ++i) {
      const char* const text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(kept_.get(), i), nullptr);
      if (text == nullptr) return false;
      keys_.push_back(text);
    }
    return true;
  }
  [[nodiscard]] const char* const* data() const noexcept { return keys_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  Ref kept_;
  std::vector<const char*> keys_;
};

/// As PyArg_ParseTupleAndKeywords. Fails with an exception.
template <std::size_t count, class... Out>
bool parse(PyObject* arguments, PyObject* by_name, const char* const (&words)[count],
           const char* format, Out... out) {
  return PyArg_ParseTupleAndKeywords(arguments, by_name, format, const_cast<char**>(words),
                                     out...) != 0;
}

// --- a program's own ---

/// Calls a method of the program's store with the timeout behind the arguments, in seconds; None:
/// only what can be done at once.
template <class... Arguments>
Ref call_method(void* context, const char* name, int64_t timeout_ns, const char* format,
                Arguments... arguments) {
  const Ref method(PyObject_GetAttrString(static_cast<PyObject*>(context), name));
  if (!method) return {};
  const double seconds =
      timeout_ns == HOCKET_NO_WAIT ? 0.0 : static_cast<double>(timeout_ns) * 1e-9;
  return Ref(PyObject_CallFunction(method.get(), format, arguments..., seconds));
}

/// What a method raised: a TimeoutError means that what it waited for is missing.
hocket_status told(void* context) {
  if (PyErr_ExceptionMatches(PyExc_TimeoutError) != 0) {
    PyErr_Clear();
    return HOCKET_TIMEOUT;
  }
  return unraisable(static_cast<PyObject*>(context));
}

hocket_status add_bytes(void* context, PyObject* object, hocket_values* values) {
  Bytes bytes;
  if (!bytes.take(object)) return told(context);
  return hocket_values_add(values, bytes.data(), bytes.size());
}

Ref list_of(const char* const* keys, std::size_t count) {
  Ref list(PyList_New(0));
  for (std::size_t i = 0; list && i < count; ++i) {
    const Ref key(PyUnicode_FromString(keys[i]));
    if (!key || PyList_Append(list.get(), key.get()) != 0) return {};
  }
  return list;
}

void own_release(void* context) {
  const WithGil gil;
  Py_DECREF(static_cast<PyObject*>(context));
}

hocket_status own_set(void* context, const char* key, const void* value, std::size_t size,
                      int64_t timeout_ns) {
  const WithGil gil;
  const Ref done = call_method(context, "set", timeout_ns, "sy#d", key,
                               static_cast<const char*>(value), static_cast<Py_ssize_t>(size));
  return done ? HOCKET_OK : told(context);
}

hocket_status own_get(void* context, const char* key, int64_t timeout_ns, hocket_values* value) {
  const WithGil gil;
  const Ref found = call_method(context, "get", timeout_ns, "sd", key);
  return found ? add_bytes(context, found.get(), value) : told(context);
}

hocket_status own_wait(void* context, const char* const* keys, std::size_t count,
                       int64_t timeout_ns) {
  const WithGil gil;
  const Ref list = list_of(keys, count);
  const Ref done = list ? call_method(context, "wait", timeout_ns, "Od", list.get()) : Ref();
  return done ? HOCKET_OK : told(context);
}

hocket_status own_check(void* context, const char* const* keys, std::size_t count,
                        int64_t timeout_ns, int32_t* are_there) {
  const WithGil gil;
  const Ref list = list_of(keys, count);
  const Ref found = list ? call_method(context, "check", timeout_ns, "Od", list.get()) : Ref();
  if (!found) return told(context);
  const int is_true = PyObject_IsTrue(found.get());
  if (is_true < 0) return told(context);
  *are_there = is_true;
  return HOCKET_OK;
}

hocket_status own_add(void* context, const char* key, int64_t amount, int64_t timeout_ns,
                      int64_t* sum) {
  const WithGil gil;
  const Ref result =
      call_method(context, "add", timeout_ns, "sLd", key, static_cast<long long>(amount));
  if (!result) return told(context);
  const long long number = PyLong_AsLongLong(result.get());
  if (number == -1 && PyErr_Occurred() != nullptr) return told(context);
  *sum = number;
  return HOCKET_OK;
}

/// The method returns what the key holds afterwards, or None.
hocket_status own_compare_set(void* context, const char* key, const void* expected,
                              std::size_t expected_size, const void* desired,
                              std::size_t desired_size, int64_t timeout_ns, int32_t* is_set,
                              hocket_values* value) {
  const WithGil gil;
  const Ref held =
      call_method(context, "compare_set", timeout_ns, "sy#y#d", key,
                  static_cast<const char*>(expected), static_cast<Py_ssize_t>(expected_size),
                  static_cast<const char*>(desired), static_cast<Py_ssize_t>(desired_size));
  if (!held) return told(context);
  *is_set = 0;
  if (held.get() == Py_None) return HOCKET_OK;
  Bytes bytes;
  if (!bytes.take(held.get())) return told(context);
  const bool is_desired =
      bytes.size() == desired_size &&
      (desired_size == 0 || std::memcmp(bytes.data(), desired, desired_size) == 0);
  *is_set = is_desired ? 1 : 0;
  return hocket_values_add(value, bytes.data(), bytes.size());
}

hocket_status own_delete_key(void* context, const char* key, int64_t timeout_ns,
                             int32_t* was_there) {
  const WithGil gil;
  const Ref found = call_method(context, "delete_key", timeout_ns, "sd", key);
  if (!found) return told(context);
  const int is_true = PyObject_IsTrue(found.get());
  if (is_true < 0) return told(context);
  *was_there = is_true;
  return HOCKET_OK;
}

PyObject* make_own(PyObject* /*type*/, PyObject* object) {
  const hocket_store_functions functions = {.struct_size = sizeof functions,
                                            .context = object,
                                            .release = own_release,
                                            .set = own_set,
                                            .get = own_get,
                                            .wait = own_wait,
                                            .check = own_check,
                                            .add = own_add,
                                            .compare_set = own_compare_set,
                                            .delete_key = own_delete_key,
                                            .append = nullptr,
                                            .multi_get = nullptr,
                                            .keys = nullptr};
  hocket_store* store = nullptr;
  Py_INCREF(object);
  if (hocket_store_make_custom(&functions, &store) != HOCKET_OK) {
    Py_DECREF(object);
    return raise();
  }
  return make_store(store);
}

// --- how stores are made ---

PyObject* open_store(PyObject* /*type*/, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 4> words = {"url", "timeout", "settings", nullptr};
  const char* url = nullptr;
  PyObject* timeout = nullptr;
  PyObject* settings = nullptr;
  hocket_store_options options = {};
  options.struct_size = sizeof options;
  Settings read;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "s|OO:open", const_cast<char**>(words.data()),
                                  &url, &timeout, &settings) == 0 ||
      !to_timeout(timeout, options.timeout_ns) || !read.read(settings)) {
    return nullptr;
  }
  options.url = url;
  options.settings = read.data();
  options.setting_count = read.size();
  hocket_store* store = nullptr;
  if (call([&] { return hocket_store_open(&options, &store); }) != HOCKET_OK) return raise();
  return make_store(store);
}

PyObject* make_local(PyObject* /*type*/, PyObject* /*nothing*/) {
  hocket_store* store = nullptr;
  if (hocket_store_make_local(&store) != HOCKET_OK) return raise();
  return make_store(store);
}

PyObject* prefix(PyObject* object, PyObject* text) {
  const char* const prefix = PyUnicode_AsUTF8AndSize(text, nullptr);
  if (prefix == nullptr) return nullptr;
  hocket_store* part = nullptr;
  if (hocket_store_make_prefix(store_of(object), prefix, &part) != HOCKET_OK) return raise();
  return make_store(part);
}

// --- what they do: each takes its timeout last ---

/// set, append and queue_push.
template <auto function>
PyObject* put(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"key", "value", "timeout", nullptr};
  const char* key = nullptr;
  PyObject* value = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  Bytes bytes;
  if (!parse(arguments, by_name, words, "sO|O", &key, &value, &timeout) ||
      !to_timeout(timeout, nanoseconds) || !bytes.take(value)) {
    return nullptr;
  }
  return none_or_raise(call(
      [&] { return function(store_of(object), key, bytes.data(), bytes.size(), nanoseconds); }));
}

/// get and queue_pop.
template <auto function>
PyObject* take(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"key", "timeout", nullptr};
  const char* key = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (!parse(arguments, by_name, words, "s|O", &key, &timeout) ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  Values value;
  const hocket_status status =
      call([&] { return function(store_of(object), key, nanoseconds, value.to()); });
  return status == HOCKET_OK ? value.bytes(0) : raise();
}

PyObject* multi_get(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"keys", "timeout", nullptr};
  PyObject* list = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  Keys keys;
  if (!parse(arguments, by_name, words, "O|O:multi_get", &list, &timeout) ||
      !to_timeout(timeout, nanoseconds) || !keys.read(list)) {
    return nullptr;
  }
  Values values;
  const hocket_status status = call([&] {
    return hocket_store_multi_get(store_of(object), keys.data(), keys.size(), nanoseconds,
                                  values.to());
  });
  if (status != HOCKET_OK) return raise();
  Ref result(PyList_New(0));
  for (std::size_t i = 0; result && i < values.count(); ++i) {
    const Ref each(values.bytes(i));
    if (!each || PyList_Append(result.get(), each.get()) != 0) return nullptr;
  }
  return result.release();
}

PyObject* multi_set(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"values", "timeout", nullptr};
  PyObject* dictionary = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (!parse(arguments, by_name, words, "O!|O:multi_set", &PyDict_Type, &dictionary, &timeout) ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  const Ref kept(PyDict_Copy(dictionary));
  if (!kept) return nullptr;
  std::vector<const char*> keys;
  std::vector<Bytes> bytes;
  std::vector<const void*> values;
  std::vector<std::size_t> sizes;
  Py_ssize_t at = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(kept.get(), &at, &key, &value) != 0) {
    keys.push_back(PyUnicode_AsUTF8AndSize(key, nullptr));
    if (keys.back() == nullptr || !bytes.emplace_back().take(value)) return nullptr;
    values.push_back(bytes.back().data());
    sizes.push_back(bytes.back().size());
  }
  return none_or_raise(call([&] {
    return hocket_store_multi_set(store_of(object), keys.data(), values.data(), sizes.data(),
                                  keys.size(), nanoseconds);
  }));
}

PyObject* wait(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"keys", "timeout", nullptr};
  PyObject* list = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  Keys keys;
  if (!parse(arguments, by_name, words, "O|O:wait", &list, &timeout) ||
      !to_timeout(timeout, nanoseconds) || !keys.read(list)) {
    return nullptr;
  }
  return none_or_raise(call(
      [&] { return hocket_store_wait(store_of(object), keys.data(), keys.size(), nanoseconds); }));
}

PyObject* check(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"keys", "timeout", nullptr};
  PyObject* list = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  Keys keys;
  if (!parse(arguments, by_name, words, "O|O:check", &list, &timeout) ||
      !to_timeout(timeout, nanoseconds) || !keys.read(list)) {
    return nullptr;
  }
  int32_t are_there = 0;
  const hocket_status status = call([&] {
    return hocket_store_check(store_of(object), keys.data(), keys.size(), nanoseconds, &are_there);
  });
  return status == HOCKET_OK ? PyBool_FromLong(are_there) : raise();
}

PyObject* add(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"key", "amount", "timeout", nullptr};
  const char* key = nullptr;
  long long amount = 0;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (!parse(arguments, by_name, words, "sL|O:add", &key, &amount, &timeout) ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  int64_t sum = 0;
  const hocket_status status =
      call([&] { return hocket_store_add(store_of(object), key, amount, nanoseconds, &sum); });
  return status == HOCKET_OK ? PyLong_FromLongLong(sum) : raise();
}

/// None if the key is missing afterwards.
PyObject* compare_set(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"key", "expected", "desired", "timeout", nullptr};
  const char* key = nullptr;
  PyObject* expected = nullptr;
  PyObject* desired = nullptr;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  Bytes old;
  Bytes wanted;
  if (!parse(arguments, by_name, words, "sOO|O:compare_set", &key, &expected, &desired, &timeout) ||
      !to_timeout(timeout, nanoseconds) || !old.take(expected) || !wanted.take(desired)) {
    return nullptr;
  }
  Values value;
  const hocket_status status = call([&] {
    return hocket_store_compare_set(store_of(object), key, old.data(), old.size(), wanted.data(),
                                    wanted.size(), nanoseconds, nullptr, value.to());
  });
  if (status != HOCKET_OK) return raise();
  if (value.count() == 0) Py_RETURN_NONE;
  return value.bytes(0);
}

/// The arguments of the methods that take a key alone.
bool parse_key(PyObject* arguments, PyObject* by_name, const char* format, const char*& key,
               int64_t& nanoseconds) {
  static constexpr const char* words[] = {"key", "timeout", nullptr};
  PyObject* timeout = nullptr;
  return parse(arguments, by_name, words, format, &key, &timeout) &&
         to_timeout(timeout, nanoseconds);
}

PyObject* delete_key(PyObject* object, PyObject* arguments, PyObject* by_name) {
  const char* key = nullptr;
  int64_t nanoseconds = 0;
  if (!parse_key(arguments, by_name, "s|O:delete_key", key, nanoseconds)) return nullptr;
  int32_t was_there = 0;
  const hocket_status status =
      call([&] { return hocket_store_delete_key(store_of(object), key, nanoseconds, &was_there); });
  return status == HOCKET_OK ? PyBool_FromLong(was_there) : raise();
}

PyObject* num_keys(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"timeout", nullptr};
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (!parse(arguments, by_name, words, "|O:num_keys", &timeout) ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  int64_t count = 0;
  const hocket_status status =
      call([&] { return hocket_store_num_keys(store_of(object), nanoseconds, &count); });
  return status == HOCKET_OK ? PyLong_FromLongLong(count) : raise();
}

PyObject* keys(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"prefix", "timeout", nullptr};
  const char* begin = "";
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (!parse(arguments, by_name, words, "|sO:keys", &begin, &timeout) ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  Values found;
  const hocket_status status =
      call([&] { return hocket_store_keys(store_of(object), begin, nanoseconds, found.to()); });
  if (status != HOCKET_OK) return raise();
  Ref result(PyList_New(0));
  for (std::size_t i = 0; result && i < found.count(); ++i) {
    const Ref each(found.text(i));
    if (!each || PyList_Append(result.get(), each.get()) != 0) return nullptr;
  }
  return result.release();
}

PyObject* queue_length(PyObject* object, PyObject* arguments, PyObject* by_name) {
  const char* key = nullptr;
  int64_t nanoseconds = 0;
  if (!parse_key(arguments, by_name, "s|O:queue_length", key, nanoseconds)) return nullptr;
  int64_t length = 0;
  const hocket_status status =
      call([&] { return hocket_store_queue_length(store_of(object), key, nanoseconds, &length); });
  return status == HOCKET_OK ? PyLong_FromLongLong(length) : raise();
}

PyObject* barrier(PyObject* object, PyObject* arguments, PyObject* by_name) {
  static constexpr const char* words[] = {"name", "size", "timeout", nullptr};
  const char* name = nullptr;
  long long size = 0;
  PyObject* timeout = nullptr;
  int64_t nanoseconds = 0;
  if (!parse(arguments, by_name, words, "sL|O:barrier", &name, &size, &timeout) ||
      !to_timeout(timeout, nanoseconds)) {
    return nullptr;
  }
  return none_or_raise(
      call([&] { return hocket_store_barrier(store_of(object), name, size, nanoseconds); }));
}

// --- a server ---

PyObject* start_server(PyTypeObject* type, PyObject* arguments, PyObject* by_name) {
  static const std::array<const char*, 5> words = {"host", "port", "settings", "serves_torch",
                                                   nullptr};
  const char* host = nullptr;
  unsigned short port = 0;
  PyObject* settings = nullptr;
  int serves_torch = 0;
  Settings read;
  if (PyArg_ParseTupleAndKeywords(arguments, by_name, "|zHOp:StoreServer",
                                  const_cast<char**>(words.data()), &host, &port, &settings,
                                  &serves_torch) == 0 ||
      !read.read(settings)) {
    return nullptr;
  }
  hocket_store_server_options options = {};
  options.struct_size = sizeof options;
  options.host = host;
  options.port = port;
  options.settings = read.data();
  options.setting_count = read.size();
  options.serves_torch = serves_torch;
  hocket_store_server* server = nullptr;
  if (call([&] { return hocket_store_server_start(&options, &server); }) != HOCKET_OK) {
    return raise();
  }
  auto* const made = PyObject_New(ServerObject, type);
  if (made == nullptr) {
    hocket_store_server_free(server);
    return nullptr;
  }
  made->server = server;
  return reinterpret_cast<PyObject*>(made);
}

PyObject* get_port(PyObject* object, void*) {
  return PyLong_FromLong(hocket_store_server_port(reinterpret_cast<ServerObject*>(object)->server));
}

}  // namespace

PyObject* make_store(hocket_store* store) {
  auto* const made = PyObject_New(StoreObject, store_type);
  if (made == nullptr) {
    hocket_store_free(store);
    return nullptr;
  }
  made->store = store;
  return reinterpret_cast<PyObject*>(made);
}

hocket_store* to_store(PyObject* object) {
  if (Py_TYPE(object) == store_type) return store_of(object);
  refuse(PyExc_TypeError, "%R is no Store: Store.own() makes one of a program's own object",
         object);
  return nullptr;
}

bool add_store(PyObject* module) {
  constexpr int of_class = METH_CLASS;
  constexpr int named = METH_VARARGS | METH_KEYWORDS;
  static std::array<PyMethodDef, 21> methods = {{
      {"open", function_of<open_store>(), named | of_class,
       "open(url, timeout=None, settings=None)\n\nOpens a store that several processes share: "
       "tcp://HOST:PORT or file:///PATH."},
      {"local", make_local, METH_NOARGS | of_class,
       "local()\n\nMakes one for the threads of this process."},
      {"own", make_own, METH_O | of_class,
       "own(object)\n\nMakes one of an object with the methods set, get, wait, check, add, "
       "compare_set and delete_key, which take a timeout in seconds last. get and wait raise "
       "TimeoutError."},
      {"prefix", prefix, METH_O, "prefix(text)\n\nThe part whose keys begin with text/."},
      {"set", function_of<put<hocket_store_set>>(), named, "set(key, value, timeout=None)"},
      {"get", function_of<take<hocket_store_get>>(), named,
       "get(key, timeout=None)\n\nWaits until the key is there."},
      {"multi_set", function_of<multi_set>(), named,
       "multi_set(values, timeout=None)\n\nTakes a dictionary."},
      {"multi_get", function_of<multi_get>(), named,
       "multi_get(keys, timeout=None)\n\nWaits until all are there."},
      {"wait", function_of<wait>(), named,
       "wait(keys, timeout=None)\n\nWaits until all are there."},
      {"check", function_of<check>(), named, "check(keys, timeout=None)\n\nWhether all are there."},
      {"add", function_of<add>(), named, "add(key, amount, timeout=None)\n\nReturns the sum."},
      {"append", function_of<put<hocket_store_append>>(), named,
       "append(key, value, timeout=None)"},
      {"compare_set", function_of<compare_set>(), named,
       "compare_set(key, expected, desired, timeout=None)\n\nSets the key if it holds what is "
       "expected, or if it is missing and nothing is expected. Returns what it holds now, None if "
       "it "
       "is missing."},
      {"delete_key", function_of<delete_key>(), named,
       "delete_key(key, timeout=None)\n\nWhether it was there."},
      {"num_keys", function_of<num_keys>(), named, "num_keys(timeout=None)"},
      {"keys", function_of<keys>(), named,
       "keys(prefix='', timeout=None)\n\nThose that begin with the prefix, sorted."},
      {"queue_push", function_of<put<hocket_store_queue_push>>(), named,
       "queue_push(key, value, timeout=None)"},
      {"queue_pop", function_of<take<hocket_store_queue_pop>>(), named,
       "queue_pop(key, timeout=None)\n\nWaits until there is an element."},
      {"queue_length", function_of<queue_length>(), named, "queue_length(key, timeout=None)"},
      {"barrier", function_of<barrier>(), named,
       "barrier(name, size, timeout=None)\n\nWaits until size calls have come."},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyType_Slot, 4> slots = {{
      {Py_tp_dealloc, slot_of<free_object<StoreObject, &StoreObject::store, hocket_store_free>>()},
      {Py_tp_methods, methods.data()},
      {Py_tp_doc,
       const_cast<char*>("Keys and values that several processes share. Values are bytes; "
                         "text is taken as UTF-8. Store.open() opens one.")},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"hocket.Store", sizeof(StoreObject), 0, made_here, slots.data()};
  static std::array<PyGetSetDef, 2> members = {{
      {"port", get_port, nullptr, "At which it serves", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  }};
  static std::array<PyType_Slot, 5> server_slots = {{
      {Py_tp_new, reinterpret_cast<void*>(start_server)},
      {Py_tp_dealloc,
       slot_of<free_object<ServerObject, &ServerObject::server, hocket_store_server_free>>()},
      {Py_tp_getset, members.data()},
      {Py_tp_doc,
       const_cast<char*>("StoreServer(host=None, port=0, settings=None, serves_torch=False)\n\n"
                         "Serves a store over TCP for as long as it lives.")},
      {0, nullptr},
  }};
  static PyType_Spec server_spec = {"hocket.StoreServer", sizeof(ServerObject), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                    server_slots.data()};
  store_type = add_type(module, spec);
  server_type = add_type(module, server_spec);
  return store_type != nullptr && server_type != nullptr;
}

}  // namespace hocket::python
