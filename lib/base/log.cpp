#include "base/log.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace hocket::log {
namespace {

struct Sink {
  std::mutex mutex;  // held while the function runs, so that set_sink can wait for it
  hocket_log_sink function = nullptr;
  void* context = nullptr;
};

Sink& sink() noexcept {
  // Never destroyed: threads may log while the process ends. And made without memory of the heap.
  alignas(Sink) static std::byte place[sizeof(Sink)];
  static Sink& instance = *new (place) Sink;
  return instance;
}

std::atomic<Level> level_max = Level::warning;

void write_to_stderr(Level level, std::string_view message) {
  const TimeOfDay now = local_time_of_day();
  const std::string text =
      fmt::format("hocket {:02}:{:02}:{:02}.{:03} {}: {}\n", now.hours, now.minutes, now.seconds,
                  now.milliseconds, name(level), message);
  // One call a line keeps the lines of several processes apart. A log that can't be written is
  // lost.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string_view name(Level level) noexcept { return level_names[static_cast<std::size_t>(level)]; }

void set_level(Level level) noexcept { level_max.store(level, std::memory_order_relaxed); }

bool enabled(Level level) noexcept { return level <= level_max.load(std::memory_order_relaxed); }

void set_sink(hocket_log_sink function, void* context) noexcept {
  const std::lock_guard lock(sink().mutex);
  sink().function = function;
  sink().context = context;
}

void renew_lock() noexcept { new (&sink().mutex) std::mutex; }

void write(Level level, std::string_view message) noexcept try {
  const std::string text = cut(message, limits::log_line_bytes_max);
  Sink& to = sink();
  const std::lock_guard lock(to.mutex);
  if (to.function == nullptr) {
    write_to_stderr(level, text);
  } else {
    to.function(to.context, static_cast<hocket_log_level>(level), text.c_str());
  }
} catch (...) {  // out of memory: the caller's work matters more than its log line
}

}  // namespace hocket::log
