// What a process has once, and each child made by fork() has anew: its parent's may be locked by
// threads that do not exist in the child.
#pragma once

#include <atomic>
#include <memory>

#include "base/fork.hpp"

namespace hocket {

/// Made at the first use, and never destroyed. Any thread.
template <class T>
class ProcessWide {
 public:
  [[nodiscard]] T& get() {
    Holder* found = current_;
    while (found == nullptr || found->origin.is_inherited()) {
      auto fresh = std::make_unique<Holder>();
      if (!current_.compare_exchange_strong(found, fresh.get())) continue;
      if (found != nullptr) abandon(static_cast<const void*>(found));
      found = fresh.release();
    }
    return found->object;
  }

 private:
  struct Holder {
    const Origin origin = {};
    T object = {};
  };

  std::atomic<Holder*> current_ = nullptr;
};

}  // namespace hocket
