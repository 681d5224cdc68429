#include "base/log.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

using hocket::limits::log_line_bytes_max;
using hocket::log::Level;

namespace {

using Lines = std::vector<std::pair<hocket_log_level, std::string>>;

/// Takes the log's lines as long as it lives.
class Capture {
 public:
  Capture() { hocket::log::set_sink(take, &lines_); }
  ~Capture() {
    hocket::log::set_sink(nullptr, nullptr);
    hocket::log::set_level(Level::warning);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  [[nodiscard]] const Lines& lines() const { return lines_; }
  /// The one line that was written since the last call.
  [[nodiscard]] std::string only_line() {
    REQUIRE(lines_.size() == 1);
    std::string text = lines_.front().second;
    lines_.clear();
    return text;
  }

 private:
  static void take(void* lines, hocket_log_level level, const char* message) {
    static_cast<Lines*>(lines)->emplace_back(level, message);
  }
  Lines lines_;
};

/// Sends what is written to a file descriptor into a pipe as long as it lives.
class Redirection {
 public:
  explicit Redirection(int descriptor) : descriptor_(descriptor), saved_(dup(descriptor)) {
    REQUIRE(pipe2(pipe_, O_NONBLOCK | O_CLOEXEC) == 0);
    dup2(pipe_[1], descriptor_);
  }
  ~Redirection() {
    dup2(saved_, descriptor_);
    for (const int open : {saved_, pipe_[0], pipe_[1]}) close(open);
  }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;

  [[nodiscard]] std::string read() const {
    std::string text(16384, '\0');
    const ssize_t length = ::read(pipe_[0], text.data(), text.size());
    text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return text;
  }

 private:
  int descriptor_;
  int saved_;
  int pipe_[2] = {-1, -1};
};

/// Whether no character is cut in the middle.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first & 0xc0) == 0x80 || text.size() < length) return false;
    for (const char next : text.substr(1, length - 1)) {
      if ((static_cast<unsigned char>(next) & 0xc0) != 0x80) return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

TEST_CASE("lines reach the sink with their level") {
  const Capture capture;
  hocket::log::set_level(Level::debug);
  line(Level::error, "rank {} of {}", 1, 4);
  line(Level::warning, "w");
  line(Level::info, "i");
  line(Level::debug, "");
  REQUIRE(capture.lines() == Lines{{HOCKET_LOG_ERROR, "rank 1 of 4"},
                                   {HOCKET_LOG_WARNING, "w"},
                                   {HOCKET_LOG_INFO, "i"},
                                   {HOCKET_LOG_DEBUG, ""}});
}

TEST_CASE("lines above the level are dropped") {
  constexpr Level levels[] = {Level::error, Level::warning, Level::info, Level::debug};
  for (const Level highest : levels) {
    const Capture capture;
    hocket::log::set_level(highest);
    for (const Level level : levels) {
      REQUIRE(hocket::log::enabled(level) == (level <= highest));
      line(level, "x");
    }
    REQUIRE(capture.lines().size() == static_cast<std::size_t>(highest) + 1);
    REQUIRE(capture.lines().back().first == static_cast<int>(highest));
  }
}

// Before any test has set a level.
const bool writes_warnings_to_begin_with = hocket::log::enabled(Level::warning);
const bool writes_info_to_begin_with = hocket::log::enabled(Level::info);

TEST_CASE("to begin with warnings are written and more is not") {
  REQUIRE(writes_warnings_to_begin_with);
  REQUIRE_FALSE(writes_info_to_begin_with);
}

TEST_CASE("a line longer than the limit is cut with a mark") {
  Capture capture;
  const std::string longest(log_line_bytes_max, 'x');
  hocket::log::write(Level::error, longest);
  REQUIRE(capture.only_line() == longest);

  hocket::log::write(Level::error, longest + "y");
  REQUIRE(capture.only_line() == longest.substr(0, log_line_bytes_max - 3) + "…");
}

TEST_CASE("a line is never cut inside a character") {
  Capture capture;
  for (const std::string_view character : {"é", "…", "🎵"}) {
    for (std::size_t shift = 0; shift < 4; ++shift) {
      std::string message(shift, 'x');
      while (message.size() <= log_line_bytes_max) message += character;
      hocket::log::write(Level::error, message);
      const std::string text = capture.only_line();
      CAPTURE(character, shift);
      REQUIRE(text.ends_with("…"));
      REQUIRE(text.size() <= log_line_bytes_max);
      REQUIRE(text.size() > log_line_bytes_max - character.size());
      REQUIRE(is_utf8(text));
    }
  }
}

TEST_CASE("without a sink lines go to stderr with time and level") {
  const Redirection redirection(STDERR_FILENO);
  hocket::log::write(Level::warning, "tür");
  std::string warning = redirection.read();
  hocket::log::write(Level::error, std::string(log_line_bytes_max + 1, 'x'));
  const std::string error = redirection.read();
  std::ranges::replace_if(
      warning, [](char each) { return each >= '0' && each <= '9'; }, '#');
  REQUIRE(warning == "hocket ##:##:##.### warning: tür\n");
  REQUIRE(error.find(" error: xxx") != std::string::npos);
  REQUIRE(error.ends_with("x…\n"));
}

TEST_CASE("stderr that can't be written loses the line and no more") {
  const int saved = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  hocket::log::write(Level::error, "lost");
  dup2(saved, STDERR_FILENO);
  close(saved);
  const Redirection redirection(STDERR_FILENO);
  hocket::log::write(Level::error, "kept");
  REQUIRE(redirection.read().ends_with("kept\n"));
}

TEST_CASE("set_sink waits for the sink that runs") {
  struct State {
    std::atomic<bool> is_inside = false;
    std::atomic<bool> may_leave = false;
  } state;
  const auto stay = [](void* context, hocket_log_level, const char*) {
    State& to = *static_cast<State*>(context);
    to.is_inside = true;
    while (!to.may_leave) std::this_thread::yield();
    to.is_inside = false;
  };
  hocket::log::set_sink(stay, &state);
  std::thread writer([] { hocket::log::write(Level::error, "x"); });
  while (!state.is_inside) std::this_thread::yield();

  std::atomic<bool> was_inside_after = true;
  std::atomic<bool> is_done = false;
  std::thread setter([&] {
    hocket::log::set_sink(nullptr, nullptr);
    was_inside_after = state.is_inside.load();
    is_done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const bool was_done_early = is_done;
  state.may_leave = true;
  writer.join();
  setter.join();
  REQUIRE_FALSE(was_done_early);
  REQUIRE_FALSE(was_inside_after);
}

TEST_CASE("calls of the sink never overlap") {
  struct State {
    std::atomic<bool> is_inside = false;
    int overlaps = 0;
    int calls = 0;
  } state;
  hocket::log::set_sink(
      [](void* context, hocket_log_level, const char*) {
        State& to = *static_cast<State*>(context);
        if (to.is_inside.exchange(true)) ++to.overlaps;
        ++to.calls;
        std::this_thread::yield();
        to.is_inside = false;
      },
      &state);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int each = 0; each < 100; ++each) hocket::log::write(Level::error, "x");
    });
  }
  for (std::thread& thread : threads) thread.join();
  hocket::log::set_sink(nullptr, nullptr);
  REQUIRE(state.overlaps == 0);
  REQUIRE(state.calls == 400);
}

TEST_CASE("a child can log though a thread of its parent did as it was made") {
  struct State {
    std::atomic<bool> is_inside = false;
    std::atomic<bool> may_leave = false;
  } state;
  hocket::log::set_sink(
      [](void* context, hocket_log_level, const char*) {
        State& to = *static_cast<State*>(context);
        to.is_inside = true;
        while (!to.may_leave) std::this_thread::yield();
      },
      &state);
  const hocket::Origin origin;
  std::thread writer([] { hocket::log::write(Level::error, "x"); });
  while (!state.is_inside) std::this_thread::yield();
  hocket::testing::Child child([&] {
    state.may_leave = true;
    alarm(60);
    hocket::log::write(Level::error, "x");
    return origin.is_inherited();
  });
  const bool ended_well = child.ended_well();
  state.may_leave = true;
  writer.join();
  hocket::log::set_sink(nullptr, nullptr);
  REQUIRE(ended_well);
  REQUIRE_FALSE(origin.is_inherited());
}

TEST_CASE("levels have names") {
  REQUIRE(name(Level::error) == "error");
  REQUIRE(name(Level::warning) == "warning");
  REQUIRE(name(Level::info) == "info");
  REQUIRE(name(Level::debug) == "debug");
}
