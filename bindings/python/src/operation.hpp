// A collective or a message as Python gives it: the C struct, and the memory that it refers to.
#pragma once

#include <optional>
#include <vector>

#include "arguments.hpp"
#include "view.hpp"

namespace hocket::python {

/// One buffer, or a list of pieces.
class Side {
 public:
  /// Of an object with memory, or of a list or tuple of them. Fails with an exception.
  [[nodiscard]] bool take(PyObject* object, bool is_written, PyObject* dtype);
  [[nodiscard]] bool is_given() const noexcept { return is_given_; }
  [[nodiscard]] bool is_list() const noexcept { return is_list_; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }  // elements
  [[nodiscard]] hocket_dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] hocket_memory memory() const noexcept { return first_.memory(); }
  [[nodiscard]] void* data() const noexcept { return first_.data(); }
  [[nodiscard]] bool is_read_only() const noexcept { return first_.is_read_only(); }
  [[nodiscard]] const std::vector<hocket_piece>& pieces() const noexcept { return pieces_; }

 private:
  View first_;  // of one buffer
  std::vector<View> views_;
  std::vector<hocket_piece> pieces_;
  std::size_t count_ = 0;
  hocket_dtype dtype_ = HOCKET_U8;
  bool is_given_ = false;
  bool is_list_ = false;
};

/// It stays where it is: the struct refers to its members.
class Collective {
 public:
  Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  ~Collective() = default;

  /// What does not depend on a communicator. Fails with an exception.
  [[nodiscard]] bool read(hocket_kind kind, PyObject* const* given, Py_ssize_t count,
                          PyObject* names);
  /// For this rank of so many. Fails with an exception.
  [[nodiscard]] bool place(int32_t rank, int32_t size);
  [[nodiscard]] hocket_collective& get() noexcept { return c_; }

 private:
  [[nodiscard]] bool read_op(PyObject* op, PyObject* factor, PyObject* keeps_order);
  [[nodiscard]] bool read_counts(PyObject* numbers, std::vector<std::size_t>& counts);
  [[nodiscard]] bool check(std::size_t is, std::size_t should_be, const char* what) const;
  [[nodiscard]] bool place_exchange(std::size_t ranks);
  [[nodiscard]] bool place_parts(std::size_t rank, std::size_t ranks);
  void give(const Side& side, bool is_out) noexcept;
  static void combine(void* context, void* out, const void* a, const void* b, std::size_t count,
                      hocket_dtype dtype);

  hocket_collective c_ = {};
  Side values_;
  Side out_;
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> counts_from_;
  Ref custom_;
};

class Message {
 public:
  [[nodiscard]] bool read(hocket_message_kind kind, PyObject* const* given, Py_ssize_t count,
                          PyObject* names);
  [[nodiscard]] hocket_message& get() noexcept { return m_; }

 private:
  hocket_message m_ = {};
  View view_;
};

[[nodiscard]] const Signature& signature_of(hocket_kind kind) noexcept;
[[nodiscard]] const Signature& signature_of_message(hocket_message_kind kind) noexcept;

}  // namespace hocket::python
