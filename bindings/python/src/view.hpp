// The memory of an object that has some: by the buffer protocol, as NumPy's arrays have it, or by
// DLPack, as tensors do. Nothing is copied.
#pragma once

#include "python.hpp"

namespace hocket::python {

class View {
 public:
  View() noexcept = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  View(View&& other) noexcept;
  View& operator=(View&&) = delete;
  ~View();

  /// Takes the object's memory, in one row. `dtype`: its name, if the object can't say what its
  /// elements are or says something else of the same size; or null. Fails with an exception.
  [[nodiscard]] bool take(PyObject* object, bool is_written, PyObject* dtype);

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }  // elements
  [[nodiscard]] hocket_dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] hocket_memory memory() const noexcept { return memory_; }
  [[nodiscard]] bool is_read_only() const noexcept {
    return buffer_.obj != nullptr && buffer_.readonly != 0;
  }

 private:
  [[nodiscard]] bool take_buffer(PyObject* object, bool is_written);
  [[nodiscard]] bool take_tensor(PyObject* object, bool is_written);

  Py_buffer buffer_ = {};  // without an object: none
  Ref capsule_;            // of DLPack: gives the memory back when it goes
  void* data_ = nullptr;
  std::size_t count_ = 0;
  hocket_dtype dtype_ = HOCKET_U8;
  hocket_memory memory_ = HOCKET_MEMORY_DETECT;
};

/// By its name, such as "f32" or "bytes12". Fails with an exception.
[[nodiscard]] bool to_dtype(PyObject* name, hocket_dtype& dtype);

}  // namespace hocket::python
