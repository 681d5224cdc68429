#include "view.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace hocket::python {
namespace {

// DLPack's structs, of which other libraries fill one in (dmlc.github.io/dlpack, version 0.8 and
// the unversioned capsules of later ones).
struct TensorDevice {
  int32_t type;
  int32_t id;
};
struct TensorType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  TensorDevice device;
  int32_t dimensions;
  TensorType type;
  int64_t* shape;
  int64_t* strides;  // in elements; null: in a row
  uint64_t offset;   // in bytes
};

enum DeviceType : int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
enum TypeCode : uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  brain_floating = 4,
  complex = 5,
  boolean = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12
};

constexpr hocket_dtype unknown = -1;

hocket_dtype integer(std::size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? HOCKET_I8 : HOCKET_U8;
    case 2:
      return is_signed ? HOCKET_I16 : HOCKET_U16;
    case 4:
      return is_signed ? HOCKET_I32 : HOCKET_U32;
    case 8:
      return is_signed ? HOCKET_I64 : HOCKET_U64;
    default:
      return unknown;
  }
}

/// Of the struct module's formats: one letter, in the machine's own byte order.
hocket_dtype of_format(std::string_view format, std::size_t bytes) {
  if (!format.empty() && (format.front() == '@' || format.front() == '=' || format.front() == '<'))
    format.remove_prefix(1);
  if (format.empty()) return HOCKET_U8;
  if (format == "Zf") return HOCKET_C64;
  if (format == "Zd") return HOCKET_C128;
  if (format.size() != 1) return unknown;
  switch (format.front()) {
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return integer(bytes, true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
    case 'c':
      return integer(bytes, false);
    case 'e':
      return HOCKET_F16;
    case 'f':
      return HOCKET_F32;
    case 'd':
      return HOCKET_F64;
    case '?':
      return HOCKET_BOOL;
    default:
      return unknown;
  }
}

hocket_dtype of_tensor(const TensorType& type) {
  if (type.lanes != 1) return unknown;
  switch (type.code) {
    case signed_integer:
    case unsigned_integer:
      return integer(type.bits / 8U, type.code == signed_integer);
    case floating:
      if (type.bits == 16) return HOCKET_F16;
      if (type.bits == 32) return HOCKET_F32;
      return type.bits == 64 ? HOCKET_F64 : unknown;
    case brain_floating:
      return HOCKET_BF16;
    case complex:
      return type.bits == 64 ? HOCKET_C64 : HOCKET_C128;
    case boolean:
      return HOCKET_BOOL;
    case float8_e4m3fn:
      return HOCKET_F8E4M3;
    case float8_e5m2:
      return HOCKET_F8E5M2;
    default:
      return unknown;
  }
}

bool is_in_a_row(const Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.dimensions - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

bool refused(PyObject* kind, const char* text) {
  refuse(kind, "%s", text);
  return false;
}

}  // namespace

View::View(View&& other) noexcept
    : buffer_(other.buffer_),
      capsule_(std::move(other.capsule_)),
      data_(other.data_),
      count_(other.count_),
      dtype_(other.dtype_),
      memory_(other.memory_) {
  other.buffer_ = {};
}

View::~View() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

bool View::take(PyObject* object, bool is_written, PyObject* dtype) {
  const bool is_taken = PyObject_CheckBuffer(object) != 0 ? take_buffer(object, is_written)
                                                          : take_tensor(object, is_written);
  if (!is_taken) return false;
  if (dtype == nullptr || dtype == Py_None) {
    if (dtype_ != unknown) return true;
    return refused(PyExc_TypeError,
                   "elements of a type that Hocket does not know: name one of the "
                   "same size by dtype, such as \"bf16\" or \"bytes12\"");
  }
  const std::size_t bytes = static_cast<std::size_t>(buffer_.len);
  const std::size_t held = buffer_.obj != nullptr ? bytes : count_ * hocket_dtype_size(dtype_);
  if (!to_dtype(dtype, dtype_)) return false;
  const std::size_t each = hocket_dtype_size(dtype_);
  if (held % each != 0) {
    refuse(PyExc_ValueError, "%zu bytes are no whole number of elements of %zu", held, each);
    return false;
  }
  count_ = held / each;
  return true;
}

bool View::take_buffer(PyObject* object, bool is_written) {
  const int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (is_written ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object, &buffer_, flags) != 0) {
    buffer_ = {};
    return false;
  }
  const auto bytes = static_cast<std::size_t>(buffer_.itemsize);
  data_ = buffer_.buf;
  dtype_ = of_format(buffer_.format == nullptr ? "" : buffer_.format, bytes);
  count_ = bytes == 0 ? 0 : static_cast<std::size_t>(buffer_.len) / bytes;
  memory_ = HOCKET_MEMORY_HOST;
  return true;
}

bool View::take_tensor(PyObject* object, bool is_written) {
  Ref capsule(PyObject_CallMethod(object, "__dlpack__", nullptr));
  if (!capsule) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return false;
    PyErr_Clear();
    refuse(PyExc_TypeError,
           "%R has no memory that can be taken: it has neither the buffer protocol "
           "nor DLPack",
           reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  auto* const tensor = static_cast<Tensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (tensor == nullptr) return false;
  if (!is_in_a_row(*tensor)) {
    return refused(PyExc_ValueError, "the elements of a tensor must lie in a row (contiguous)");
  }
  static_cast<void>(is_written);  // DLPack does not say what may not be written
  data_ = static_cast<std::byte*>(tensor->data) + tensor->offset;
  dtype_ = of_tensor(tensor->type);
  count_ = 1;
  for (int32_t i = 0; i < tensor->dimensions; ++i) {
    count_ *= static_cast<std::size_t>(tensor->shape[i]);
  }
  switch (tensor->device.type) {
    case cpu:
      memory_ = HOCKET_MEMORY_HOST;
      break;
    case cuda_host:
      memory_ = HOCKET_MEMORY_PINNED;
      break;
    case cuda:
    case cuda_managed:
      memory_ = HOCKET_MEMORY_DETECT;  // of whichever device
      break;
    default:
      return refused(PyExc_TypeError, "a tensor of a device that Hocket does not know");
  }
  capsule_ = std::move(capsule);
  return true;
}

bool to_dtype(PyObject* name, hocket_dtype& dtype) {
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name, &length);
  if (text == nullptr) return false;
  const std::string_view wanted(text, static_cast<std::size_t>(length));
  for (hocket_dtype each = HOCKET_I8; each <= HOCKET_C128; ++each) {
    if (wanted == hocket_dtype_name(each)) {
      dtype = each;
      return true;
    }
  }
  constexpr std::string_view bytes = "bytes";
  if (wanted.starts_with(bytes) && wanted.size() > bytes.size()) {
    char* end = nullptr;
    const long size = std::strtol(text + bytes.size(), &end, 10);
    if (*end == '\0' && size >= 1 && size <= HOCKET_BYTES_MAX) {
      dtype = HOCKET_BYTES(static_cast<int32_t>(size));
      return true;
    }
  }
  refuse(PyExc_ValueError,
         "there is no dtype %R: i8, u8, …, i64, u64, f16, bf16, f8e4m3, f8e5m2, "
         "f32, f64, bool, c64, c128, bytes1 to bytes4096",
         name);
  return false;
}

}  // namespace hocket::python
