// A queue whose elements are numbered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace hocket::common {

/// A queue whose elements keep their numbers: 0 for the first that was ever pushed, and so on. It
/// grows, and keeps its memory.
template <class T>
class Ring {
 public:
  /// Numbers of the first element, and behind the last one.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return end_ - begin_; }

  [[nodiscard]] T& operator[](std::uint64_t number) noexcept { return places_[place(number)]; }
  [[nodiscard]] const T& operator[](std::uint64_t number) const noexcept {
    return places_[place(number)];
  }
  [[nodiscard]] T& front() noexcept { return (*this)[begin_]; }

  /// So that push() does not throw while there are no more than so many.
  void reserve(std::uint64_t count) {
    while (places_.size() < count) grow();
  }
  void push(T element) {
    if (size() == places_.size()) grow();
    places_[place(end_++)] = std::move(element);
  }
  T pop() noexcept {
    T& first = places_[place(begin_++)];
    if constexpr (std::is_trivially_destructible_v<T>) return first;
    return std::exchange(first, T{});
  }

 private:
  static constexpr std::size_t places_min = 16;

  /// The number of places is a power of two.
  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number & (places_.size() - 1));
  }

  void grow() {
    std::vector<T> larger(places_.empty() ? places_min : 2 * places_.size());
    for (std::uint64_t i = begin_; i < end_; ++i) {
      larger[static_cast<std::size_t>(i & (larger.size() - 1))] = std::move((*this)[i]);
    }
    places_ = std::move(larger);
  }

  std::vector<T> places_ = {};
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace hocket::common
