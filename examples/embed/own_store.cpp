// An application with a store of its own, in which its ranks meet: here each rank is a thread, and
// the store is a map that they share. Nothing is read from the environment. The same class could
// forward to etcd, Redis or whatever the application's processes share.
//
//   g++ -std=c++20 own_store.cpp $(pkg-config --cflags --libs hocket) -pthread -o own_store
//   ./own_store
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "hocket/hocket.hpp"

namespace {

/// Any thread may call it, and a call that waits holds up no other.
class MapStore final : public hocket::Store {
 public:
  void set(std::string_view key, std::string_view value, TimeLimit) override {
    change([&] { values_[std::string(key)] = value; });
  }
  std::string get(std::string_view key, TimeLimit timeout) override {
    const std::string wanted(key);
    wait(std::span(&wanted, 1), timeout);
    const std::lock_guard lock(mutex_);
    return values_[wanted];
  }
  void wait(std::span<const std::string> keys, TimeLimit timeout) override {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, timeout.value_or(this->timeout()), [&] { return has(keys); }))
      return;
    hocket::throw_error({hocket::StatusCode::timeout, "not all keys came in time"});
  }
  bool check(std::span<const std::string> keys, TimeLimit) override {
    const std::lock_guard lock(mutex_);
    return has(keys);
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimeLimit) override {
    std::int64_t sum = amount;
    change([&] {
      std::string& value = values_[std::string(key)];
      if (!value.empty()) sum += std::stoll(value);
      value = std::to_string(sum);
    });
    return sum;
  }
  hocket::Swap compare_set(std::string_view key, std::string_view expected,
                           std::string_view desired, TimeLimit) override {
    hocket::Swap swap;
    change([&] {
      const auto found = values_.find(std::string(key));
      const bool is_there = found != values_.end();
      swap.is_set = is_there ? found->second == expected : expected.empty();
      if (swap.is_set) values_[std::string(key)] = desired;
      if (swap.is_set || is_there) swap.value = values_[std::string(key)];
    });
    return swap;
  }
  bool delete_key(std::string_view key, TimeLimit) override {
    const std::lock_guard lock(mutex_);
    return values_.erase(std::string(key)) > 0;
  }
  std::string describe() const override { return "the application's map"; }

 private:
  bool has(std::span<const std::string> keys) const {
    for (const std::string& key : keys) {
      if (!values_.contains(key)) return false;
    }
    return true;
  }
  template <class Change>
  void change(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// Returns whether it went well.
bool be_a_rank(const std::shared_ptr<hocket::Store>& store, int rank, int size) {
  try {
    hocket::Communicator world = hocket::join({.store = store, .rank = rank, .size = size});
    std::vector<double> values(4, rank);
    world.all_reduce(values, hocket::ReduceOp::max);
    std::printf("rank %d of %d: the highest is %g\n", rank, size, values[0]);
    return true;
  } catch (const hocket::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return false;
  }
}

}  // namespace

int main() {
  constexpr int size = 3;
  const auto store = std::make_shared<MapStore>();
  std::atomic<bool> is_well = true;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      if (!be_a_rank(store, rank, size)) is_well = false;
    });
  }
  for (std::thread& each : ranks) each.join();
  return is_well ? 0 : 1;
}
