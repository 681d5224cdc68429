#include "run/loop.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

namespace hocket::run {
namespace {

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {seconds.count(), (duration - seconds).count()};
}

}  // namespace

void Loop::remove(Watcher& watcher) {
  const auto found = std::ranges::find(watchers_, &watcher);
  if (found != watchers_.end()) *found = nullptr;
}

void Loop::turn() {
  std::erase(watchers_, nullptr);
  std::vector<pollfd> wanted;
  Deadline first;
  for (const Watcher* watcher : watchers_) {
    wanted.push_back(watcher->wanted());
    first = first.or_sooner(watcher->deadline());
  }
  const timespec timeout = to_timespec(first.remaining(clock_.now()));
  const int count =
      ppoll(wanted.data(), wanted.size(), first.is_never() ? nullptr : &timeout, nullptr);
  // Those that are added meanwhile stand behind; their turn is the next.
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (count > 0 && wanted[i].revents != 0 && watchers_[i] != nullptr) watchers_[i]->ready();
    if (watchers_[i] == nullptr) continue;
    if (watchers_[i]->deadline().passed(clock_.now())) watchers_[i]->due();
  }
}

}  // namespace hocket::run
