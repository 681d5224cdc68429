// One operation, as torch waits for it: in the thread that waits, which then moves the data itself,
// or by a future, which a thread of Hocket completes. On a device the current stream waits; the
// thread does, too, if it gives a timeout, or if the operation is staged.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <pybind11/pybind11.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <hocket/hocket.h>

#include "device.hpp"
#include "errors.hpp"
#include "sends.hpp"
#include "tensors.hpp"
#include "time.hpp"

namespace hocket_torch {

/// Of Python's lock, if this thread has it.
class [[gnu::visibility("hidden")]] GilRelease {
 public:
  GilRelease() {
    if (PyGILState_Check() != 0) release_.emplace();
  }

 private:
  std::optional<pybind11::gil_scoped_release> release_;
};

class Work final : public c10d::Work, private Send {
 public:
  Work(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
       Borrowed borrowed, std::vector<at::Tensor> outputs)
      : c10d::Work(rank, type, title, inputs),
        place_(borrowed.place),
        borrowed_(std::move(borrowed)),
        outputs_(std::move(outputs)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  /// Does not wait: what is under way goes on, and keeps what it borrows.
  ~Work() override {
    if (sends_ != nullptr) sends_->remove(*this);
    if (handle_ != nullptr && !completed_ && !is_in_stream_) {
      auto rest = std::make_unique<Borrowed>(std::move(borrowed_));
      const auto release = [](void* context, hocket_status status) {
        const std::unique_ptr<Borrowed> ended(static_cast<Borrowed*>(context));
        if (status == HOCKET_OK) ended->copy_back_now();
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
  /// Starts a send, which counts among these until it has ended.
  template <class Start>
  void begin_send(std::shared_ptr<Sends> sends, const Start& start) {
    borrowed_.send = sends->begin();
    begin(start);
    sends_ = std::move(sends);
    sends_->add(*this);
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
    const Lock lock(mutex_);
    return completed_ && exception_ == nullptr;
  }
  std::exception_ptr exception() const override {
    const Lock lock(mutex_);
    return exception_;
  }
  int sourceRank() const override {
    TORCH_CHECK(source_ >= 0, "hocket: only a receive that has ended has a source");
    return source_;
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override {
    if (place_.is_cpu()) return;
    const GilRelease release;
    wait_in_stream();
  }
  void abort() override { TORCH_CHECK(false, "hocket: abort the process group instead"); }

  bool wait(std::chrono::milliseconds timeout) override {
    if (!place_.is_cpu() && timeout <= kNoTimeout) {
      wait_in_stream();
      return true;
    }
    const std::int64_t timeout_ns = timeout > kNoTimeout ? nanoseconds_of(timeout) : 0;
    if (hocket_work* const handle = use()) {
      const hocket_status status = hocket_work_wait(handle, timeout_ns);
      end_use(status, status == HOCKET_OK ? "" : hocket_last_error());
      if (status != HOCKET_IN_PROGRESS) wait_for_the_other(kNoTimeout);  // who may conclude it
    } else {
      wait_for_the_other(timeout);
    }
    const Lock lock(mutex_);
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    if (!completed_) {
      raise(HOCKET_TIMEOUT, "hocket: the operation has not ended within " +
                                std::to_string(timeout.count()) + " ms; it goes on");
    }
    return true;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (is_short()) look_for_end();
    Lock lock(mutex_);
    TORCH_CHECK(opType_ != c10d::OpType::RECVANYSOURCE,
                "hocket: a receive from any rank has no future");
    if (future_ == nullptr) {
      future_ = c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()), devices());
      if (!place_.is_cpu()) {
        const auto future = future_;
        lock.unlock();
        complete_in_stream(*future);
        return future;
      }
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
  using Lock = std::unique_lock<decltype(mutex_)>;  // not of the same type in all versions

  static constexpr std::chrono::milliseconds kNoTimeout{0};
  static constexpr std::chrono::nanoseconds kLook{100'000};
  static constexpr int kWorksWithoutLook = 16;
  static constexpr std::int64_t kShortBytes = 64 << 10;

  [[nodiscard]] bool has_ended_unnoticed() override {
    const Lock lock(mutex_);
    const bool is_noticed = is_concluding_ || is_detached_;
    return !is_noticed && hocket_work_test(handle_) != HOCKET_IN_PROGRESS;
  }

  [[nodiscard]] std::vector<c10::Device> devices() const {
    if (outputs_.empty() || outputs_.front().is_cpu()) return {};
    return {outputs_.front().device()};
  }

  /// What torch puts into this thread's current stream from now on waits for it.
  void wait_in_stream() {
    const c10::Stream stream = current_stream(place_);
    // Without the lock: of what is staged, this thread waits.
    check(hocket_work_wait_stream(handle_, native(stream)));
    const Lock lock(mutex_);
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    borrowed_.keep_for(stream);
    is_in_stream_ = true;
    if (borrowed_.copies.empty()) return;
    if (copied_in_) return copied_->block(stream);
    borrowed_.copy_back();
    copied_.emplace(place_.type());
    copied_->record(stream);
    copied_in_ = stream;
  }
  /// Of a device: at once, as its streams know when it is over.
  void complete_in_stream(c10::ivalue::Future& future) {
    const GilRelease release;
    const c10::StreamGuard guard(runtime_of(place_).getStreamFromGlobalPool(place_));
    try {
      wait_in_stream();
      future.markCompleted(c10::IValue(outputs_));
    } catch (...) {
      future.setError(std::current_exception());
    }
  }
  /// When it is over.
  void copy_back() {
    const auto copied_in = [&] {
      const Lock lock(mutex_);
      return copied_in_;
    }();
    if (copied_in) {
      copied_in->synchronize();
    } else {
      borrowed_.copy_back_now();
    }
  }

  bool is_over() const {
    const Lock lock(mutex_);
    return completed_;
  }

  /// Whether it may end within kLook.
  [[nodiscard]] bool is_short() const {
    std::int64_t bytes = 0;
    for (const at::Tensor& each : outputs_) {
      if (each.layout() != c10::kStrided) return false;
      bytes += each.numel() * static_cast<std::int64_t>(each.element_size());
    }
    return place_.is_cpu() && bytes <= kShortBytes;
  }
  /// If the other ranks have begun by now, this takes less time than the hand-over to another
  /// thread. A thread that has looked in vain does not look for the next works: it may have many.
  void look_for_end() {
    static thread_local int pause = 0;
    if (pause > 0) {
      --pause;
      return;
    }
    const GilRelease release;
    hocket_work* const handle = use();
    if (handle == nullptr) return;
    const hocket_status status = hocket_work_wait(handle, kLook.count());
    end_use(status, status == HOCKET_OK ? "" : hocket_last_error());
    if (status == HOCKET_IN_PROGRESS) pause = kWorksWithoutLook;
  }

  /// The handle, for this thread to wait with; null if there is nothing to do with it any more.
  hocket_work* use() {
    const Lock lock(mutex_);
    if (is_concluding_ || is_detached_) return nullptr;
    ++users_;
    return handle_;
  }
  void end_use(hocket_status status, const std::string& why) {
    Lock lock(mutex_);
    --users_;
    if (status == HOCKET_IN_PROGRESS) return detach(lock);
    lock.unlock();
    conclude(status, why);
  }

  /// If there is a future, and no thread that waits: lets Hocket call when the operation is over.
  void detach(Lock& lock) {
    const bool is_wanted =
        future_ != nullptr && place_.is_cpu() && users_ == 0 && !is_concluding_ && !is_detached_;
    if (!is_wanted) return;
    is_detached_ = true;
    hocket_work* const handle = std::exchange(handle_, nullptr);
    lock.unlock();
    auto* const self = c10::intrusive_ptr<Work>::reclaim_copy(this).release();
    const auto release = [](void* context, hocket_status status) {
      auto work = c10::intrusive_ptr<Work>::reclaim(static_cast<Work*>(context));
      const std::shared_ptr<void> send = work->borrowed_.send;  // counts until the work is freed
      work->conclude(status, status == HOCKET_OK ? "" : hocket_last_error());
      work.reset();
    };
    const hocket_status status = hocket_work_detach(handle, release, self);
    lock.lock();
    if (status == HOCKET_OK) return;
    c10::intrusive_ptr<Work>::reclaim(self);
    handle_ = handle;
    is_detached_ = false;
    future_.reset();
    cv_.notify_all();
    raise(status, hocket_last_error());
  }

  void wait_for_the_other(std::chrono::milliseconds timeout) {
    Lock lock(mutex_);
    const auto is_over = [&] { return completed_ || !(is_concluding_ || is_detached_); };
    if (timeout > kNoTimeout) {
      cv_.wait_for(lock, timeout, is_over);
    } else {
      cv_.wait(lock, is_over);
    }
  }

  /// Once, by whichever thread first sees that the operation has ended.
  void conclude(hocket_status status, const std::string& why) noexcept {
    {
      const Lock lock(mutex_);
      if (std::exchange(is_concluding_, true)) return;
    }
    hocket_received received = {};
    received.peer = -1;
    std::exception_ptr failure;
    if (status == HOCKET_OK) {
      try {
        if (handle_ != nullptr && is_receive()) received = whole_message();
        copy_back();
      } catch (...) {
        failure = std::current_exception();
      }
    } else {
      failure = failure_of(status, why);
    }
    Borrowed ended;  // dropped without the lock, as a tensor may take Python's
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
      const Lock lock(mutex_);
      source_ = received.peer;
      exception_ = failure;
      completed_ = true;
      std::swap(ended, borrowed_);
      future = future_;
    }
    cv_.notify_all();
    if (const auto record = std::exchange(recordFunctionEndCallback_, nullptr)) record();
    if (future != nullptr && place_.is_cpu()) complete(*future);
  }

  [[nodiscard]] bool is_receive() const {
    return opType_ == c10d::OpType::RECV || opType_ == c10d::OpType::RECVANYSOURCE;
  }
  /// Hocket takes shorter messages, torch does not.
  [[nodiscard]] hocket_received whole_message() const {
    hocket_received received = {};
    check(hocket_work_received(handle_, &received));
    const auto wanted = static_cast<std::size_t>(outputs_.front().numel());
    if (received.count == wanted) return received;
    raise(HOCKET_MISMATCH, "hocket: rank " + std::to_string(received.peer) + " has sent " +
                               std::to_string(received.count) + " elements, and not " +
                               std::to_string(wanted));
  }

  void complete(c10::ivalue::Future& future) {
    if (exception_ != nullptr) {
      future.setError(exception_);
    } else {
      future.markCompleted(c10::IValue(outputs_));
    }
  }

  hocket_work* handle_ = nullptr;
  const c10::Device place_;
  Borrowed borrowed_;
  const std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  int users_ = 0;  // threads that use the handle
  bool is_concluding_ = false;
  bool is_detached_ = false;
  bool is_in_stream_ = false;  // a stream waits for it
  std::optional<c10::Stream> copied_in_;
  std::optional<c10::Event> copied_;
  int source_ = -1;
  std::shared_ptr<Sends> sends_;  // of a send
};

}  // namespace hocket_torch
