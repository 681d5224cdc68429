// Several works as one, as torch wants them when it coalesces.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "version.hpp"

#if HOCKET_TORCH_FROM(2, 1)
namespace hocket_torch {

class JointWork final : public c10d::Work {
 public:
  JointWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
      : c10d::Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

  /// Asks each of them, also behind one that has not ended: a work may go on only while asked.
  bool isCompleted() override {
    return std::count_if(works_.begin(), works_.end(), [](const auto& each) {
             return each->isCompleted();
           }) == static_cast<std::ptrdiff_t>(works_.size());
  }
  bool isSuccess() const override {
    return std::all_of(works_.begin(), works_.end(),
                       [](const auto& each) { return each->isSuccess(); });
  }
  std::exception_ptr exception() const override {
    for (const auto& each : works_) {
      if (const std::exception_ptr found = each->exception()) return found;
    }
    return nullptr;
  }
  std::vector<at::Tensor> result() override { return results_of(works_); }
  void synchronize() override {
    for (const auto& each : works_) each->synchronize();
  }
  void abort() override { TORCH_CHECK(false, "hocket: abort the process group instead"); }

  /// Each work in turn has the whole timeout, so this may take longer.
  bool wait(std::chrono::milliseconds timeout) override {
    for (const auto& each : works_) each->wait(timeout);
    return true;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const auto tensors = c10::ListType::create(c10::TensorType::get());
    c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(c10::FutureType::create(tensors));
    for (const auto& each : works_) futures.push_back(each->getFuture());
    const auto results = [works = works_](c10::ivalue::Future& all) {
      if (all.hasError()) std::rethrow_exception(all.exception_ptr());
      return c10::IValue(results_of(works));
    };
    return c10::collectAll(futures)->then(results, tensors);
  }

 private:
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  static std::vector<at::Tensor> results_of(const Works& works) {
    std::vector<at::Tensor> all;
    for (const auto& each : works) {
      for (at::Tensor& tensor : each->result()) all.push_back(std::move(tensor));
    }
    return all;
  }

  const Works works_;
};

}  // namespace hocket_torch
#endif
