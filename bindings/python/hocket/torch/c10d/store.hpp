// A c10d store as one of Hocket's, so that the ranks of a process group meet where c10d's do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <hocket/hocket.h>

namespace hocket_torch {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

struct StoreDeleter {
  void operator()(hocket_store* store) const noexcept { hocket_store_free(store); }
};
using HocketStore = std::unique_ptr<hocket_store, StoreDeleter>;

/// Functions as hocket_store_functions wants them. c10d throws whatever goes wrong.
class StoreFunctions {
 public:
  /// Null, after a failure that hocket_last_error() tells.
  static HocketStore make(StorePointer store) {
    hocket_store_functions functions = {};
    functions.struct_size = sizeof functions;
    functions.context = new StorePointer(std::move(store));
    functions.release = [](void* context) { delete static_cast<StorePointer*>(context); };
    functions.set = set;
    functions.get = get;
    functions.wait = wait;
    functions.check = check;
    functions.add = add;
    functions.compare_set = compare_set;
    functions.delete_key = delete_key;
    hocket_store* made = nullptr;
    if (hocket_store_make_custom(&functions, &made) != HOCKET_OK)
      functions.release(functions.context);
    return HocketStore(made);
  }

 private:
  static constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(50);

  using Bytes = std::vector<std::uint8_t>;
  using Keys = std::vector<std::string>;

  static c10d::Store& store_of(void* context) { return **static_cast<StorePointer*>(context); }
  static Bytes bytes_of(const void* data, std::size_t size) {
    const auto* const first = static_cast<const std::uint8_t*>(data);
    return Bytes(first, first + size);
  }
  static Keys keys_of(const char* const* keys, std::size_t count) {
    return Keys(keys, keys + count);
  }

  template <class Function>
  static hocket_status guarded(const Function& function) noexcept {
    try {
      return function();
    } catch (...) {
      return HOCKET_SYSTEM_ERROR;
    }
  }

  /// Asks again and again: torch's own servers do not wake who waits for a key that is made by
  /// compare_set, those of 1.13 answer a wait that was given up, and while a store waits, no other
  /// thread can use it.
  static hocket_status wait_for(c10d::Store& store, const Keys& keys, std::int64_t timeout_ns) {
    using namespace std::chrono_literals;
    std::chrono::nanoseconds left(timeout_ns == HOCKET_NO_WAIT ? 0 : timeout_ns);
    for (std::chrono::nanoseconds pause = 500us; !store.check(keys);
         pause = std::min(2 * pause, longest)) {
      if (left <= 0ns) return HOCKET_TIMEOUT;
      pause = std::min(pause, left);
      std::this_thread::sleep_for(pause);
      left -= pause;
    }
    return HOCKET_OK;
  }

  static hocket_status set(void* context, const char* key, const void* value, std::size_t size,
                           std::int64_t /*timeout_ns*/) {
    return guarded([&] {
      store_of(context).set(key, bytes_of(value, size));
      return HOCKET_OK;
    });
  }
  static hocket_status get(void* context, const char* key, std::int64_t timeout_ns,
                           hocket_values* value) {
    return guarded([&] {
      const hocket_status status = wait_for(store_of(context), {key}, timeout_ns);
      if (status != HOCKET_OK) return status;
      const Bytes bytes = store_of(context).get(key);
      return hocket_values_add(value, bytes.data(), bytes.size());
    });
  }
  static hocket_status wait(void* context, const char* const* keys, std::size_t count,
                            std::int64_t timeout_ns) {
    return guarded([&] { return wait_for(store_of(context), keys_of(keys, count), timeout_ns); });
  }
  static hocket_status check(void* context, const char* const* keys, std::size_t count,
                             std::int64_t /*timeout_ns*/, std::int32_t* are_there) {
    return guarded([&] {
      *are_there = store_of(context).check(keys_of(keys, count)) ? 1 : 0;
      return HOCKET_OK;
    });
  }
  static hocket_status add(void* context, const char* key, std::int64_t amount,
                           std::int64_t /*timeout_ns*/, std::int64_t* sum) {
    return guarded([&] {
      *sum = store_of(context).add(key, amount);
      return HOCKET_OK;
    });
  }
  /// c10d says that a key that is missing holds what was expected of it, also if that is something.
  static hocket_status compare_set(void* context, const char* key, const void* expected,
                                   std::size_t expected_size, const void* desired,
                                   std::size_t desired_size, std::int64_t /*timeout_ns*/,
                                   std::int32_t* is_set, hocket_values* value) {
    return guarded([&] {
      const Bytes before = bytes_of(expected, expected_size);
      const Bytes after = bytes_of(desired, desired_size);
      const Bytes now = store_of(context).compareSet(key, before, after);
      *is_set = now == after ? 1 : 0;
      const bool is_missing = *is_set == 0 && now == before;
      return is_missing ? HOCKET_OK : hocket_values_add(value, now.data(), now.size());
    });
  }
  static hocket_status delete_key(void* context, const char* key, std::int64_t /*timeout_ns*/,
                                  std::int32_t* was_there) {
    return guarded([&] {
      *was_there = store_of(context).deleteKey(key) ? 1 : 0;
      return HOCKET_OK;
    });
  }
};

}  // namespace hocket_torch
