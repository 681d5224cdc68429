#include "integration/collectives/model.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/text.hpp"
#include "integration/collectives/values.hpp"

namespace hocket::testing {
namespace {

Bytes slice(const Bytes& of, std::size_t begin, std::size_t bytes) {
  const auto from = of.begin() + static_cast<std::ptrdiff_t>(begin);
  return {from, from + static_cast<std::ptrdiff_t>(bytes)};
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

std::size_t sum_of(const std::vector<std::size_t>& counts, std::size_t first, std::size_t count) {
  const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(first);
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), std::size_t{});
}

Bytes prepared(const Model& model, Bytes values) {
  if (model.op == ReduceOp::premul_sum) {
    return reference_multiply(model.type, values, model.factor());
  }
  if (model.op == ReduceOp::average && divides_first(model.type)) {
    return reference_divide(model.type, values, static_cast<int>(model.size));
  }
  return values;
}

Bytes combined(const Model& model, const Bytes& a, const Bytes& b) {
  if (model.op == ReduceOp::custom) {
    Bytes out(a.size());
    custom_xor(nullptr, out.data(), a.data(), b.data(), a.size(), DataType::u8);
    return out;
  }
  const bool sums = model.op == ReduceOp::premul_sum || model.op == ReduceOp::average;
  return reference_combine(model.type, sums ? ReduceOp::sum : model.op, a, b);
}

/// Of the first so many ranks.
Bytes reduced(const Model& model, std::size_t ranks) {
  Bytes result = prepared(model, model.contribution(0));
  for (std::size_t i = 1; i < ranks; ++i) {
    result = combined(model, result, prepared(model, model.contribution(i)));
  }
  const bool divides = model.op == ReduceOp::average && !divides_first(model.type);
  return divides ? reference_divide(model.type, result, static_cast<int>(model.size)) : result;
}

Bytes exchanged(const Model& model, std::size_t rank) {
  Bytes all;
  const std::size_t bytes = size_of(model.type);
  for (std::size_t from = 0; from < model.size; ++from) {
    std::size_t before = 0;
    for (std::size_t to = 0; to < rank; ++to) before += model.part_between(from, to);
    append(all,
           slice(model.contribution(from), before * bytes, model.part_between(from, rank) * bytes));
  }
  return all;
}

Bytes gathered(const Model& model) {
  Bytes all;
  for (std::size_t i = 0; i < model.size; ++i) append(all, model.contribution(i));
  return all;
}

}  // namespace

bool is_possible(CollectiveKind kind, DataType type, ReduceOp op) {
  const bool is_prefix = kind == CollectiveKind::scan || kind == CollectiveKind::exscan;
  if (is_prefix && op == ReduceOp::average) return false;
  const bool scales = op == ReduceOp::average || op == ReduceOp::premul_sum;
  if (scales) return type != DataType::boolean;
  return op == ReduceOp::custom || is_defined(type, op);
}

void custom_xor(void*, void* out, const void* a, const void* b, std::size_t count, DataType type) {
  const auto* x = static_cast<const std::byte*>(a);
  const auto* y = static_cast<const std::byte*>(b);
  auto* result = static_cast<std::byte*>(out);
  for (std::size_t i = 0; i < count * size_of(type); ++i) result[i] = x[i] ^ y[i];
}

std::string Model::text() const {
  std::string text = fmt::format("case {}: {} {}", number, name(kind), name(type));
  if (reduces()) text += fmt::format(" {}{}", name(op), is_rough ? " rough" : "");
  text += is_uneven() ? fmt::format(" counts {}", joined(counts, ","))
                      : fmt::format(" count {}", count);
  return text + fmt::format(" root {} {}", root, is_in_place ? "in place" : "apart");
}

bool Model::reduces() const {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scan ||
         kind == CollectiveKind::exscan;
}

double Model::factor() const { return is_float(type) ? 2 : 3; }

std::size_t Model::part(std::size_t rank) const { return is_uneven() ? counts[rank] : count; }

std::size_t Model::before(std::size_t rank) const {
  return is_uneven() ? sum_of(counts, 0, rank) : count * rank;
}

std::size_t Model::part_between(std::size_t from, std::size_t to) const {
  return is_uneven() ? counts[from * size + to] : count;
}

std::size_t Model::in_elements(std::size_t rank) const {
  const bool is_root = rank == static_cast<std::size_t>(root);
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
      return count;
    case CollectiveKind::broadcast:
      return is_root ? count : 0;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return part(rank);
    case CollectiveKind::reduce_scatter:
      return before(size);
    case CollectiveKind::scatter:
      return is_root ? before(size) : 0;
    case CollectiveKind::all_to_all:
      return is_uneven() ? sum_of(counts, rank * size, size) : count * size;
    case CollectiveKind::barrier:
      break;
  }
  return 0;
}

std::size_t Model::out_elements(std::size_t rank) const {
  const bool is_root = rank == static_cast<std::size_t>(root);
  std::size_t received = 0;
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::scan:
      return count;
    case CollectiveKind::exscan:
      return rank > 0 ? count : 0;
    case CollectiveKind::reduce:
      return is_root ? count : 0;
    case CollectiveKind::all_gather:
      return before(size);
    case CollectiveKind::gather:
      return is_root ? before(size) : 0;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return part(rank);
    case CollectiveKind::all_to_all:
      for (std::size_t i = 0; i < size; ++i) received += part_between(i, rank);
      break;
    case CollectiveKind::barrier:
      break;
  }
  return received;
}

Bytes Model::contribution(std::size_t rank) const {
  std::mt19937_64 random(number * 1009 + rank);
  const std::size_t elements = in_elements(rank);
  if (!reduces() || op == ReduceOp::custom) {
    return any_bytes(elements * size_of(type), random);
  }
  if (is_rough) return rough_elements(type, elements, random);
  const bool is_extreme = op == ReduceOp::min || op == ReduceOp::max;
  if (is_extreme && elements < 10'000) return interesting_elements(type, elements, random);
  return exact_elements(type, op, elements, size, random);
}

Bytes Model::expected(std::size_t rank) const {
  const std::size_t bytes = size_of(type);
  if (out_elements(rank) == 0) return {};
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      return reduced(*this, size);
    case CollectiveKind::scan:
      return reduced(*this, rank + 1);
    case CollectiveKind::exscan:
      return reduced(*this, rank);
    case CollectiveKind::reduce_scatter:
      return slice(reduced(*this, size), before(rank) * bytes, part(rank) * bytes);
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return gathered(*this);
    case CollectiveKind::broadcast:
      return contribution(static_cast<std::size_t>(root));
    case CollectiveKind::scatter:
      return slice(contribution(static_cast<std::size_t>(root)), before(rank) * bytes,
                   part(rank) * bytes);
    case CollectiveKind::all_to_all:
      return exchanged(*this, rank);
    case CollectiveKind::barrier:
      break;
  }
  return {};
}

bool Model::is_right(const Bytes& got, const Bytes& wanted) const {
  if (got == wanted) return true;
  // The sign of a zero in a complex product depends on the order.
  const bool is_signless =
      reduces() && op == ReduceOp::product && (type == DataType::c64 || type == DataType::c128);
  if (!is_rough && !is_signless) return false;
  const double near = is_rough ? 4 * static_cast<double>(size * size) * epsilon_of(type) : 0;
  const std::vector<double> a = parts_of(type, got);
  const std::vector<double> b = parts_of(type, wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= near)) return false;
  }
  return true;
}

}  // namespace hocket::testing
