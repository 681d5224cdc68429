// Several works as one, as torch wants them when it coalesces.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <hocket/hocket.h>

#include "errors.hpp"
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

  /// For all, even if one has failed: then as the first failed one.
  bool wait(std::chrono::milliseconds timeout) override {
    if (timeout > std::chrono::milliseconds(0)) wait_for_all(timeout);
    std::exception_ptr failure;
    for (const auto& each : works_) {
      try {
        each->wait(timeout);
      } catch (...) {
        if (failure == nullptr) failure = std::current_exception();
      }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
    return true;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_of(works_); }

 private:
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool has_come = false;
  };

  /// But receives from any rank, which have no futures.
  void wait_for_all(std::chrono::milliseconds timeout) {
    Works waited_for;
    std::copy_if(
        works_.begin(), works_.end(), std::back_inserter(waited_for),
        [](const auto& each) { return each->retrieveOpType() != c10d::OpType::RECVANYSOURCE; });
    const auto end = std::make_shared<End>();
    future_of(waited_for)->addCallback([end](c10::ivalue::Future& /*all*/) {
      const std::lock_guard lock(end->mutex);
      end->has_come = true;
      end->changed.notify_all();
    });
    std::unique_lock lock(end->mutex);
    if (end->changed.wait_for(lock, timeout, [&] { return end->has_come; })) return;
    raise(HOCKET_TIMEOUT, "hocket: the operations have not all ended within " +
                              std::to_string(timeout.count()) + " ms; they go on");
  }

  static c10::intrusive_ptr<c10::ivalue::Future> future_of(const Works& works) {
    const auto tensors = c10::ListType::create(c10::TensorType::get());
    c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(c10::FutureType::create(tensors));
    for (const auto& each : works) futures.push_back(each->getFuture());
    const auto results = [works](c10::ivalue::Future& all) {
      if (all.hasError()) std::rethrow_exception(all.exception_ptr());
      return c10::IValue(results_of(works));
    };
    return c10::collectAll(futures)->then(results, tensors);
  }

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
