// Types, reductions and tensors, as Hocket's operations take them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <hocket/hocket.h>

#include "device.hpp"
#include "version.hpp"

namespace hocket_torch {

inline std::optional<hocket_dtype> same_dtype(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return HOCKET_I8;
    case at::kByte:
      return HOCKET_U8;
    case at::kShort:
      return HOCKET_I16;
    case at::kInt:
      return HOCKET_I32;
    case at::kLong:
      return HOCKET_I64;
    case at::kHalf:
      return HOCKET_F16;
    case at::kBFloat16:
      return HOCKET_BF16;
    case at::kFloat:
      return HOCKET_F32;
    case at::kDouble:
      return HOCKET_F64;
    case at::kBool:
      return HOCKET_BOOL;
    case at::kComplexFloat:
      return HOCKET_C64;
    case at::kComplexDouble:
      return HOCKET_C128;
#if HOCKET_TORCH_FROM(2, 1)
    case at::kFloat8_e4m3fn:
      return HOCKET_F8E4M3;
    case at::kFloat8_e5m2:
      return HOCKET_F8E5M2;
#endif
#if HOCKET_TORCH_FROM(2, 3)
    case at::kUInt16:
      return HOCKET_U16;
    case at::kUInt32:
      return HOCKET_U32;
    case at::kUInt64:
      return HOCKET_U64;
#endif
    default:
      return std::nullopt;
  }
}

/// For operations that only move it, which know all types.
inline hocket_dtype dtype_to_move(const at::Tensor& tensor) {
  const auto known = same_dtype(tensor.scalar_type());
  return known ? *known : HOCKET_BYTES(static_cast<hocket_dtype>(tensor.element_size()));
}

inline hocket_dtype dtype_to_reduce(const at::Tensor& tensor) {
  const auto known = same_dtype(tensor.scalar_type());
  TORCH_CHECK_TYPE(known, "hocket: there is no arithmetic with ", tensor.scalar_type());
  return *known;
}

/// Into the collective, for tensors of that type.
inline void set_reduction(hocket_collective& collective, const c10d::ReduceOp& reduction,
                          const at::Tensor& tensor) {
  using c10d::ReduceOp;
  collective.dtype = dtype_to_reduce(tensor);
  switch (static_cast<ReduceOp::RedOpType>(reduction)) {
    case ReduceOp::SUM:
      collective.op = HOCKET_OP_SUM;
      return;
    case ReduceOp::AVG:
      collective.op = HOCKET_OP_AVERAGE;
      return;
    case ReduceOp::PRODUCT:
      collective.op = HOCKET_OP_PRODUCT;
      return;
    case ReduceOp::MIN:
      collective.op = HOCKET_OP_MIN;
      return;
    case ReduceOp::MAX:
      collective.op = HOCKET_OP_MAX;
      return;
    case ReduceOp::BAND:
      collective.op = HOCKET_OP_BIT_AND;
      return;
    case ReduceOp::BOR:
      collective.op = HOCKET_OP_BIT_OR;
      return;
    case ReduceOp::BXOR:
      collective.op = HOCKET_OP_BIT_XOR;
      return;
    case ReduceOp::PREMUL_SUM: {
      const auto* const given =
          dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(reduction.supplement_.get());
      TORCH_CHECK_VALUE(given != nullptr, "hocket: PREMUL_SUM without its factor");
      collective.op = HOCKET_OP_PREMUL_SUM;
#if HOCKET_TORCH_FROM(2, 0)
      const at::Tensor factor = given->tensor_factor;
#else
      const at::Tensor factor =
          given->tensor_factors.empty() ? at::Tensor() : given->tensor_factors.front();
#endif
      TORCH_CHECK_VALUE(!factor.defined() || factor.numel() == 1,
                        "hocket: the factor of PREMUL_SUM has to be a single number");
      collective.factor = factor.defined() ? factor.item<double>() : given->double_factor;
      return;
    }
    default:
      TORCH_CHECK_VALUE(false, "hocket: there is no such reduction");
  }
}

/// What an operation borrows until it is over, and copies that are due then.
struct Borrowed {
  std::shared_ptr<void> send = {};  // of a send: see Sends. Freed after the tensors.
  c10::Device place = at::kCPU;     // of all tensors
  std::vector<at::Tensor> tensors = {};
  std::vector<std::pair<at::Tensor, at::Tensor>> copies = {};  // to, from

  [[nodiscard]] bool is_on_device() const { return !place.is_cpu(); }

  /// Contiguous memory with the tensor's values.
  const at::Tensor& input(const at::Tensor& tensor) {
    check_place(tensor);
    return tensors.emplace_back(tensor.resolve_conj().resolve_neg().contiguous());
  }
  /// Contiguous memory for the tensor's new values.
  const at::Tensor& output(const at::Tensor& tensor) { return target(tensor, false); }
  /// Contiguous memory with the tensor's values, and for its new ones.
  const at::Tensor& both(const at::Tensor& tensor) { return target(tensor, true); }

  /// One piece of memory with the values of all, one behind the other.
  const at::Tensor& joined_inputs(const std::vector<at::Tensor>& parts) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& each : parts) {
      check_place(each, parts.front());
      flat.push_back(each.resolve_conj().resolve_neg().reshape({-1}));
    }
    return tensors.emplace_back(at::cat(flat));
  }
  /// One piece of memory for the new values of all.
  const at::Tensor& joined_outputs(const std::vector<at::Tensor>& parts) {
    std::int64_t count = 0;
    for (const at::Tensor& each : parts) {
      check_place(each, parts.front());
      count += each.numel();
    }
    at::Tensor whole = at::empty({count}, parts.front().options());
    std::int64_t first = 0;
    for (const at::Tensor& each : parts) {
      copies.emplace_back(each, whole.narrow(0, first, each.numel()).view(each.sizes()));
      first += each.numel();
    }
    return tensors.emplace_back(std::move(whole));
  }

  /// On a device: in the current stream.
  void copy_back() const {
    const at::NoGradGuard guard;
    for (const auto& [to, from] : copies) to.copy_(from);
  }
  /// When the operation is over. The copies are when this returns.
  void copy_back_now() const {
    if (copies.empty()) return;
    if (!is_on_device()) return copy_back();
    const c10::StreamGuard guard(runtime_of(place).getStreamFromGlobalPool(place));
    keep_for(guard.current_stream());
    copy_back();
    guard.current_stream().synchronize();
  }
  /// On a device: nobody gets the memory before the stream is past it.
  void keep_for(const c10::Stream& stream) const {
    const auto keep = [&](const at::Tensor& tensor) {
      runtime_of(place).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
    };
    for (const at::Tensor& each : tensors) keep(each);
    for (const auto& copy : copies) keep(copy.first);
  }

 private:
  void check_place(const at::Tensor& tensor) { check_place(tensor, tensor); }
  void check_place(const at::Tensor& tensor, const at::Tensor& first) {
    TORCH_CHECK_VALUE(tensor.is_cpu() || tensor.is_cuda(),
                      "hocket: tensors have to be in the host's memory or on a GPU, not on ",
                      tensor.device());
    TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "hocket: tensors have to be dense");
    if (tensors.empty()) place = first.device();
    TORCH_CHECK_VALUE(tensor.device() == place, "hocket: tensors on ", place, " and ",
                      tensor.device(), " in one operation");
  }
  const at::Tensor& target(const at::Tensor& tensor, bool has_values) {
    check_place(tensor);
    const bool is_lazy = tensor.is_conj() || tensor.is_neg();
    if (tensor.is_contiguous() && !is_lazy) return tensors.emplace_back(tensor);
    const at::NoGradGuard guard;
    at::Tensor memory = has_values ? tensor.resolve_conj().resolve_neg().contiguous()
                                   : at::empty_like(tensor, at::MemoryFormat::Contiguous);
    copies.emplace_back(tensor, memory);
    return tensors.emplace_back(std::move(memory));
  }
};

}  // namespace hocket_torch
