// One operation, as torch waits for it: in the thread that waits, which then moves the data itself,
// or by a future, which a thread of Hocket completes.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <hocket/hocket.h>

#include "errors.hpp"
#include "tensors.hpp"

namespace hocket_torch {

class Work final : public c10d::Work {
 public:
  using Inputs = c10::optional<std::vector<at::Tensor>>;

  Work(int rank, c10d::OpType type, const char* title, const Inputs& inputs, Borrowed borrowed,
       std::vector<at::Tensor> outputs)
      : c10d::Work(rank, type, title, inputs),
        borrowed_(std::move(borrowed)),
        outputs_(std::move(outputs)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  /// Does not wait: what is under way goes on, and keeps what it borrows.
  ~Work() override {
    if (handle_ != nullptr && !completed_) {
      auto rest = std::make_unique<Borrowed>(std::move(borrowed_));
      const auto release = [](void* context, hocket_status status) {
        const std::unique_ptr<Borrowed> ended(static_cast<Borrowed*>(context));
        if (status == HOCKET_OK) ended->copy_back();
      };
      if (hocket_work_detach(handle_, release, rest.get()) == HOCKET_OK) {
        rest.release();
        return;
      }
    }
    hocket_work_free(handle_);
  }

  /// `start` takes a hocket_work** and starts the operation.
  template <class Start>
  void begin(const Start& start) {
    check(start(&handle_));
  }
  /// Of an operation that was over at once.
  void end() { conclude(HOCKET_OK, ""); }

  bool isCompleted() override {
    hocket_work* const handle = use();
    if (handle == nullptr) return is_over();
    const hocket_status status = hocket_work_test(handle);
    end_use(status, status == HOCKET_OK ? "" : hocket_last_error());
    return is_over();
  }
  bool isSuccess() const override {
    const std::lock_guard lock(mutex_);
    return completed_ && exception_ == nullptr;
  }
  std::exception_ptr exception() const override {
    const std::lock_guard lock(mutex_);
    return exception_;
  }
  int sourceRank() const override {
    TORCH_CHECK(source_ >= 0, "hocket: only a receive that has ended has a source");
    return source_;
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override { wait(kNoTimeout); }
  void abort() override { TORCH_CHECK(false, "hocket: abort the process group instead"); }

  bool wait(std::chrono::milliseconds timeout) override {
    const std::int64_t timeout_ns = std::chrono::nanoseconds(timeout).count();
    if (hocket_work* const handle = use()) {
      const hocket_status status = hocket_work_wait(handle, timeout > kNoTimeout ? timeout_ns : 0);
      end_use(status, status == HOCKET_OK ? "" : hocket_last_error());
    } else {
      wait_for_the_other(timeout);
    }
    const std::lock_guard lock(mutex_);
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    if (!completed_) {
      raise(HOCKET_TIMEOUT, "hocket: the operation has not ended within " +
                                std::to_string(timeout.count()) + " ms; it goes on");
    }
    return true;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    std::unique_lock lock(mutex_);
    TORCH_CHECK(opType_ != c10d::OpType::RECVANYSOURCE,
                "hocket: a receive from any rank has no future");
    if (future_ == nullptr) {
      future_ =
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
      if (completed_) {
        const auto future = future_;
        lock.unlock();
        complete(*future);
        return future;
      }
      detach(lock);
    }
    return future_;
  }

 private:
  static constexpr std::chrono::milliseconds kNoTimeout{0};

  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return completed_;
  }

  /// The handle, for this thread to wait with; null if there is nothing to do with it any more.
  hocket_work* use() {
    const std::lock_guard lock(mutex_);
    if (is_concluding_ || is_detached_) return nullptr;
    ++users_;
    return handle_;
  }
  void end_use(hocket_status status, const std::string& why) {
    std::unique_lock lock(mutex_);
    --users_;
    if (status == HOCKET_IN_PROGRESS) return detach(lock);
    lock.unlock();
    conclude(status, why);
  }

  /// If there is a future, and no thread that waits: lets Hocket call when the operation is over.
  void detach(std::unique_lock<std::mutex>& lock) {
    const bool is_wanted = future_ != nullptr && users_ == 0 && !is_concluding_ && !is_detached_;
    if (!is_wanted) return;
    is_detached_ = true;
    hocket_work* const handle = std::exchange(handle_, nullptr);
    lock.unlock();
    auto* const self = c10::intrusive_ptr<Work>::reclaim_copy(this).release();
    const auto release = [](void* context, hocket_status status) {
      const auto work = c10::intrusive_ptr<Work>::reclaim(static_cast<Work*>(context));
      work->conclude(status, status == HOCKET_OK ? "" : hocket_last_error());
    };
    const hocket_status status = hocket_work_detach(handle, release, self);
    lock.lock();
    if (status == HOCKET_OK) return;
    c10::intrusive_ptr<Work>::reclaim(self);
    handle_ = handle;
    is_detached_ = false;
    raise(status, hocket_last_error());
  }

  void wait_for_the_other(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return completed_; };
    if (timeout > kNoTimeout) {
      cv_.wait_for(lock, timeout, is_over);
    } else {
      cv_.wait(lock, is_over);
    }
  }

  /// Once, by whichever thread first sees that the operation has ended.
  void conclude(hocket_status status, const std::string& why) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_concluding_, true)) return;
    }
    std::exception_ptr failure;
    if (status == HOCKET_OK) {
      try {
        borrowed_.copy_back();
      } catch (...) {
        failure = std::current_exception();
      }
    } else {
      failure = failure_of(status, why);
    }
    hocket_received received = {};
    received.peer = -1;
    if (opType_ == c10d::OpType::RECVANYSOURCE && failure == nullptr) {
      hocket_work_received(handle_, &received);
    }
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const std::lock_guard lock(mutex_);
      source_ = received.peer;
      exception_ = failure;
      completed_ = true;
      borrowed_ = {};
      future = future_;
    }
    cv_.notify_all();
    if (const auto record = std::exchange(recordFunctionEndCallback_, nullptr)) record();
    if (future != nullptr) complete(*future);
  }

  void complete(c10::ivalue::Future& future) {
    if (exception_ != nullptr) {
      future.setError(exception_);
    } else {
      future.markCompleted(c10::IValue(outputs_));
    }
  }

  hocket_work* handle_ = nullptr;
  Borrowed borrowed_;
  const std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  int users_ = 0;  // threads that use the handle
  bool is_concluding_ = false;
  bool is_detached_ = false;
  int source_ = -1;
};

}  // namespace hocket_torch
