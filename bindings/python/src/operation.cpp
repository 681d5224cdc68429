#include "operation.hpp"

#include <array>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>

namespace hocket::python {
namespace {

constexpr std::array reduced = {Name::values, Name::out, Name::op};
constexpr std::array reduced_to_root = {Name::values, Name::out, Name::op, Name::root};
constexpr std::array moved = {Name::values, Name::out};
constexpr std::array moved_by_root = {Name::values, Name::out, Name::root};
constexpr std::array from_root = {Name::values, Name::root};
constexpr std::array message_words = {Name::values, Name::peer, Name::tag};

constexpr std::array reduce_options = {Name::factor, Name::keeps_order, Name::dtype, Name::timeout};
constexpr std::array parts_options = {Name::factor, Name::keeps_order, Name::dtype, Name::timeout,
                                      Name::counts};
constexpr std::array move_options = {Name::counts, Name::dtype, Name::timeout};
constexpr std::array exchange_options = {Name::counts, Name::counts_from, Name::dtype,
                                         Name::timeout};
constexpr std::array plain_options = {Name::dtype, Name::timeout};
constexpr std::array recv_options = {Name::dtype, Name::timeout, Name::fails_alone};
constexpr std::array barrier_options = {Name::timeout};

constexpr std::array<Signature, 11> signatures = {{
    {"all_reduce", reduced, reduce_options, 1},
    {"reduce_scatter", reduced, parts_options, 1},
    {"all_gather", moved, move_options, 1},
    {"broadcast", from_root, plain_options, 1},
    {"reduce", reduced_to_root, reduce_options, 1},
    {"gather", moved_by_root, move_options, 1},
    {"scatter", moved_by_root, move_options, 1},
    {"all_to_all", moved, exchange_options, 2},
    {"barrier", {}, barrier_options, 0},
    {"scan", reduced, reduce_options, 1},
    {"exscan", reduced, reduce_options, 1},
}};
constexpr std::array<Signature, 2> message_signatures = {{
    {"recv", message_words, recv_options, 1},
    {"send", message_words, plain_options, 2},
}};

/// None stands for an argument that was not given.
PyObject* given_or_null(PyObject* object) { return object == Py_None ? nullptr : object; }

bool is_sequence(PyObject* object) {
  return PyList_Check(object) != 0 || PyTuple_Check(object) != 0;
}

std::size_t sum(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{});
}

/// Takes the exception that Python has, and says which it is: "ValueError: too long".
std::string text_of_exception() {
  PyObject* kind = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&kind, &value, &trace);
  PyErr_NormalizeException(&kind, &value, &trace);
  const Ref owned[] = {Ref(kind), Ref(value), Ref(trace)};
  const Ref name(kind == nullptr ? nullptr : PyObject_GetAttrString(kind, "__name__"));
  const Ref said(value == nullptr ? nullptr : PyObject_Str(value));
  const char* const first = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  const char* const second = said ? PyUnicode_AsUTF8AndSize(said.get(), nullptr) : nullptr;
  PyErr_Clear();
  return std::string(first == nullptr ? "an exception" : first) + ": " +
         (second == nullptr ? "" : second);
}

}  // namespace

const Signature& signature_of(hocket_kind kind) noexcept {
  return signatures[static_cast<std::size_t>(kind)];
}

const Signature& signature_of_message(hocket_message_kind kind) noexcept {
  return message_signatures[static_cast<std::size_t>(kind)];
}

bool Side::take(PyObject* object, bool is_written, PyObject* dtype) {
  is_given_ = true;
  is_list_ = is_sequence(object);
  if (!is_list_) {
    if (!first_.take(object, is_written, dtype)) return false;
    count_ = first_.count();
    dtype_ = first_.dtype();
    return true;
  }
  const Py_ssize_t pieces = PySequence_Size(object);
  for (Py_ssize_t i = 0; i < pieces; ++i) {
    const Ref each(PySequence_GetItem(object, i));
    View view;
    if (!each || !view.take(each.get(), is_written, dtype)) return false;
    if (i > 0 && view.dtype() != dtype_) {
      refuse(PyExc_TypeError, "the pieces of a list have elements of different types: %s and %s",
             hocket_dtype_name(dtype_), hocket_dtype_name(view.dtype()));
      return false;
    }
    dtype_ = view.dtype();
    count_ += view.count();
    pieces_.push_back({view.data(), view.count()});
    views_.push_back(std::move(view));
  }
  return true;
}

bool Collective::read(hocket_kind kind, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  Arguments arguments;
  if (!arguments.read(signature_of(kind), given, count, names)) return false;
  c_.struct_size = sizeof c_;
  c_.kind = kind;
  if (!to_timeout(arguments[Name::timeout], c_.timeout_ns)) return false;
  if (kind == HOCKET_KIND_BARRIER) return true;
  if (arguments[Name::root] != nullptr && !to_int(arguments[Name::root], c_.root)) return false;
  if (!read_op(arguments[Name::op], arguments[Name::factor], arguments[Name::keeps_order])) {
    return false;
  }
  if (!read_counts(arguments[Name::counts], counts_)) return false;
  if (!read_counts(arguments[Name::counts_from], counts_from_)) return false;
  PyObject* const values = given_or_null(arguments[Name::values]);
  PyObject* const out = given_or_null(arguments[Name::out]);
  PyObject* const dtype = arguments[Name::dtype];
  const bool is_in_place = out == nullptr && kind != HOCKET_KIND_GATHER;
  if (values != nullptr && !values_.take(values, is_in_place, dtype)) return false;
  if (out != nullptr && !out_.take(out, true, dtype)) return false;
  if (!values_.is_given() && !out_.is_given()) {
    refuse(PyExc_TypeError, "%s() lacks its memory", signature_of(kind).name);
    return false;
  }
  const Side& one = values_.is_given() ? values_ : out_;
  if (out_.is_given() && out_.dtype() != one.dtype()) {
    refuse(PyExc_TypeError, "%s() has elements of different types: %s and %s",
           signature_of(kind).name, hocket_dtype_name(one.dtype()),
           hocket_dtype_name(out_.dtype()));
    return false;
  }
  c_.dtype = one.dtype();
  c_.memory = one.memory();
  return true;
}

bool Collective::read_op(PyObject* op, PyObject* factor, PyObject* keeps_order) {
  if (factor != nullptr && factor != Py_None) {
    c_.factor = PyFloat_AsDouble(factor);
    if (c_.factor == -1.0 && PyErr_Occurred() != nullptr) return false;
  }
  if (keeps_order != nullptr) {
    c_.keeps_order = PyObject_IsTrue(keeps_order);
    if (c_.keeps_order < 0) return false;
  }
  if (op == nullptr || op == Py_None) return true;  // the sum
  if (PyUnicode_Check(op) == 0) {
    if (PyCallable_Check(op) == 0) {
      refuse(PyExc_TypeError, "op is the name of one, or a function of (out, a, b)");
      return false;
    }
    c_.op = HOCKET_OP_CUSTOM;
    c_.custom = combine;
    c_.custom_context = op;
    custom_ = Ref::to(op);
    return true;
  }
  for (hocket_op each = HOCKET_OP_SUM; each < HOCKET_OP_CUSTOM; ++each) {
    if (PyUnicode_CompareWithASCIIString(op, hocket_op_name(each)) == 0) {
      c_.op = each;
      return true;
    }
  }
  refuse(PyExc_ValueError,
         "there is no op %R: sum, product, min, max, average, premul_sum, bit_and, "
         "bit_or, bit_xor, logical_and, logical_or, or a function",
         op);
  return false;
}

/// Calls the program's function with three memoryviews of bytes. What it raises is thrown, so that
/// the operation fails on all ranks.
void Collective::combine(void* context, void* out, const void* a, const void* b, std::size_t count,
                         hocket_dtype dtype) {
  const WithGil gil;
  const auto bytes = static_cast<Py_ssize_t>(count * hocket_dtype_size(dtype));
  const auto view = [&](const void* memory, int flags) {
    return Ref(
        PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(memory)), bytes, flags));
  };
  const Ref to = view(out, PyBUF_WRITE);
  const Ref left = view(a, PyBUF_READ);
  const Ref right = view(b, PyBUF_READ);
  auto* const function = static_cast<PyObject*>(context);
  Ref result;
  if (to && left && right) {
    result =
        Ref(PyObject_CallFunctionObjArgs(function, to.get(), left.get(), right.get(), nullptr));
  }
  if (!result) throw std::runtime_error(text_of_exception());
}

bool Collective::read_counts(PyObject* numbers, std::vector<std::size_t>& counts) {
  if (numbers == nullptr || numbers == Py_None) return true;
  const Py_ssize_t length = PySequence_Size(numbers);
  if (length < 0) return false;
  for (Py_ssize_t i = 0; i < length; ++i) {
    const Ref each(PySequence_GetItem(numbers, i));
    if (!each) return false;
    const std::size_t count = PyLong_AsSize_t(each.get());
    if (count == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) return false;
    counts.push_back(count);
  }
  return true;
}

bool Collective::check(std::size_t is, std::size_t should_be, const char* what) const {
  if (is == should_be) return true;
  refuse(PyExc_ValueError, "%s(): %s has %zu elements, and must have %zu here",
         signature_of(c_.kind).name, what, is, should_be);
  return false;
}

void Collective::give(const Side& side, bool is_out) noexcept {
  if (!side.is_given()) return;
  if (side.is_list()) {
    (is_out ? c_.out_pieces : c_.in_pieces) = side.pieces().data();
    (is_out ? c_.out_piece_count : c_.in_piece_count) = side.pieces().size();
  } else if (is_out) {
    c_.out = side.data();
  } else {
    c_.in = side.data();
  }
}

bool Collective::place(int32_t rank, int32_t size) {
  switch (c_.kind) {
    case HOCKET_KIND_BARRIER:
      return true;
    case HOCKET_KIND_ALL_REDUCE:
    case HOCKET_KIND_REDUCE:
    case HOCKET_KIND_BROADCAST:
    case HOCKET_KIND_SCAN:
    case HOCKET_KIND_EXSCAN: {
      if (!values_.is_given()) {
        refuse(PyExc_TypeError, "%s() lacks its argument 'values'", signature_of(c_.kind).name);
        return false;
      }
      c_.count = values_.count();
      if (out_.is_given() && !check(out_.count(), c_.count, "out")) return false;
      if (!out_.is_given() && values_.is_list()) {
        c_.pieces = values_.pieces().data();
        c_.piece_count = values_.pieces().size();
        return true;
      }
      give(values_, false);
      give(out_.is_given() ? out_ : values_, true);
      return true;
    }
    case HOCKET_KIND_ALL_TO_ALL:
      return place_exchange(static_cast<std::size_t>(size));
    default:
      return place_parts(static_cast<std::size_t>(rank), static_cast<std::size_t>(size));
  }
}

bool Collective::place_exchange(std::size_t ranks) {
  give(values_, false);
  give(out_, true);
  if (counts_.empty() && counts_from_.empty()) {
    c_.count = values_.count() / ranks;
    return check(values_.count(), c_.count * ranks, "values") &&
           check(out_.count(), values_.count(), "out");
  }
  c_.counts = counts_.data();
  c_.counts_from = counts_from_.data();
  return check(counts_.size(), ranks, "counts") &&
         check(counts_from_.size(), ranks, "counts_from") &&
         check(values_.count(), sum(counts_), "values") &&
         check(out_.count(), sum(counts_from_), "out");
}

/// Of an operation in which a rank has all parts on one side, and one part on the other. In place
/// it gives the side with all parts.
bool Collective::place_parts(std::size_t rank, std::size_t ranks) {
  const bool gives_all = c_.kind == HOCKET_KIND_REDUCE_SCATTER || c_.kind == HOCKET_KIND_SCATTER;
  const bool has_root = c_.kind == HOCKET_KIND_GATHER || c_.kind == HOCKET_KIND_SCATTER;
  const bool has_whole = !has_root || c_.root == static_cast<int32_t>(rank);
  const bool is_in_place = has_whole && !(values_.is_given() && out_.is_given());
  const Side& given = values_.is_given() ? values_ : out_;
  const Side& whole = is_in_place ? given : (gives_all ? values_ : out_);
  const Side& part = gives_all ? out_ : values_;
  if (!has_whole && !part.is_given()) {
    refuse(PyExc_TypeError, "%s() lacks its argument '%s' on a rank that is not the root",
           signature_of(c_.kind).name, gives_all ? "out" : "values");
    return false;
  }
  if (!counts_.empty() && !check(counts_.size(), ranks, "counts")) return false;
  const std::size_t each =
      !counts_.empty() ? counts_[rank] : (has_whole ? whole.count() / ranks : part.count());
  const std::size_t all = counts_.empty() ? each * ranks : sum(counts_);
  if (has_whole && !check(whole.count(), all, gives_all ? "values" : "out")) return false;
  if (!is_in_place && !check(part.count(), each, gives_all ? "out" : "values")) return false;
  c_.counts = counts_.empty() ? nullptr : counts_.data();
  c_.count = counts_.empty() ? each : 0;
  if (!is_in_place) {
    give(part, gives_all);
    if (has_whole) give(whole, !gives_all);
    return true;
  }
  if (whole.is_list() || whole.is_read_only()) {
    refuse(PyExc_ValueError, "%s() in place takes one buffer that can be written",
           signature_of(c_.kind).name);
    return false;
  }
  const std::size_t before = counts_.empty() ? rank * each : sum(std::span(counts_).first(rank));
  void* const own = static_cast<char*>(whole.data()) + before * hocket_dtype_size(c_.dtype);
  c_.in = gives_all ? whole.data() : own;
  c_.out = gives_all ? own : whole.data();
  return true;
}

bool Message::read(hocket_message_kind kind, PyObject* const* given, Py_ssize_t count,
                   PyObject* names) {
  Arguments arguments;
  if (!arguments.read(signature_of_message(kind), given, count, names)) return false;
  const bool is_recv = kind == HOCKET_MESSAGE_RECV;
  m_.struct_size = sizeof m_;
  m_.kind = kind;
  m_.peer = HOCKET_ANY_RANK;
  m_.tag = is_recv ? HOCKET_ANY_TAG : 0;
  if (!view_.take(arguments[Name::values], is_recv, arguments[Name::dtype])) return false;
  m_.dtype = view_.dtype();
  m_.data = view_.data();
  m_.count = view_.count();
  if (arguments[Name::fails_alone] != nullptr) {
    m_.fails_alone = PyObject_IsTrue(arguments[Name::fails_alone]);
    if (m_.fails_alone < 0) return false;
  }
  PyObject* const peer = given_or_null(arguments[Name::peer]);
  PyObject* const tag = given_or_null(arguments[Name::tag]);
  return (peer == nullptr || to_int(peer, m_.peer)) && (tag == nullptr || to_int(tag, m_.tag)) &&
         to_timeout(arguments[Name::timeout], m_.timeout_ns);
}

}  // namespace hocket::python
