// The connection between who conducts a job (the head) and the agent on one of its hosts: the stdin
// and stdout of the remote shell.
//
// A message is a line of JSON; where it has "bytes", so many bytes of data follow the line. Texts
// that need not be UTF-8 (words, variables) are JSON strings of one character, U+0000 to U+00FF,
// for each byte. Before its first message the agent writes the line `greeting`; what comes before
// that, a line without an end too, is the login shell's and is skipped. Who sees the other's end
// closed, or hears nothing of it for `silence_max`, takes it for dead.
//
//   the head                                          the agent
//   {"do": "join", "grace_ns", "directory",           {"is": "ready", "store_port", "master_port"}
//    "environment", "job", "secret", "serve"}         {"is": "refused", "why"}
//   {"do": "start", "command", "ranks":               {"is": "output", "rank", "stream", "bytes"}
//    [{"rank", "environment"}]}                       {"is": "rank_end", "rank", "pid", "status",
//   {"do": "signal", "signal"}                         "text", "lasted_ns"}
//   {"do": "kill_after", "grace_ns"}                  {"is": "attempt_end"}
//   {"do": "taken", "stream", "count"}                {"is": "taken"}
//   {"do": "input", "bytes"}                          {"is": "lost", "why"}
//   {"do": "alive"}                                   {"is": "alive"}
//
// Data flows under a window, so that a message never waits behind much of it: the agent sends no
// more output than `window_bytes` of a stream that were not "taken"; the head sends the next
// "input" when the last was "taken". An input of no bytes is the end of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "program/json.hpp"
#include "run/loop.hpp"

namespace hocket::run {

using program::Json;

inline constexpr std::string_view greeting_of_all_versions = "hocket agent ";
inline constexpr std::string_view greeting = "hocket agent 1";
inline constexpr std::size_t window_bytes = 256 << 10;
inline constexpr std::chrono::seconds alive_interval{5};
inline constexpr std::chrono::seconds silence_max{60};

// Bytes as the text of a JSON string, and back.
[[nodiscard]] std::string to_text(std::string_view bytes);
[[nodiscard]] std::string to_bytes(std::string_view text);
[[nodiscard]] Json to_texts(const std::vector<std::string>& words);
[[nodiscard]] std::vector<std::string> to_words(const Json& texts);

class ChannelListener {
 public:
  ChannelListener() = default;
  ChannelListener(const ChannelListener&) = delete;
  ChannelListener& operator=(const ChannelListener&) = delete;
  virtual ~ChannelListener() = default;

  virtual void on_message(const Json& message, std::string_view data) = 0;
  /// The last call.
  virtual void on_closed(std::string_view why) = 0;
};

class Channel {
 public:
  /// `greets`: it is the agent's side.
  Channel(Loop& loop, ChannelListener& listener, Fd from, Fd to, bool greets);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() = default;

  void send(const Json& message, std::string_view data = {});
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }

 private:
  class Reader final : public Watcher {
   public:
    Reader(Channel& channel, Fd fd);
    ~Reader() override;
    [[nodiscard]] pollfd wanted() const override { return {fd_.get(), POLLIN, 0}; }
    void ready() override;
    [[nodiscard]] Deadline deadline() const override { return silence_; }
    void due() override;
    void close() noexcept { fd_.reset(); }

    bool is_greeted = false;

   private:
    [[nodiscard]] bool read_message();

    Channel& channel_;
    Fd fd_;
    std::string bytes_;
    Deadline silence_;
  };
  class Writer final : public Watcher {
   public:
    Writer(Channel& channel, Fd fd, const Json& alive);
    ~Writer() override;
    void write(std::string_view bytes) { bytes_.append(bytes); }
    [[nodiscard]] pollfd wanted() const override;
    void ready() override;
    [[nodiscard]] Deadline deadline() const override { return alive_at_; }
    void due() override;
    void close() noexcept;

   private:
    Channel& channel_;
    Fd fd_;
    std::string alive_;
    std::string bytes_;
    Deadline alive_at_;
  };

  void close(std::string_view why);

  Loop& loop_;
  ChannelListener& listener_;
  bool is_open_ = true;
  Reader reader_;
  Writer writer_;
};

}  // namespace hocket::run
