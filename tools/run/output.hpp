// What the ranks write, on its way to the launcher's own stdout and stderr: line by line, tagged
// with the rank.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "run/loop.hpp"

namespace hocket::run {

enum class Stream { output = 0, error = 1 };

/// Writes a line to stderr where there is no Output. Gives up without a word when stderr is broken,
/// or nobody reads it for a moment.
void complain(std::string_view line);

/// One of the launcher's streams. It is never waited for but by the loop, and leaves the
/// descriptor, which other processes share, as it is.
class Printer final : public Watcher {
 public:
  Printer(Loop& loop, int descriptor);
  ~Printer() override;

  /// Takes everything; who respects is_full() keeps the memory bounded.
  void write(std::string_view bytes) {
    if (error_number_ == 0) queue_.append(bytes);
  }
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return begin_ == queue_.size(); }
  /// The errno with which it broke. From then on what is written is thrown away.
  [[nodiscard]] int broken() const noexcept { return error_number_; }
  [[nodiscard]] bool has_colors() const noexcept { return has_colors_; }

  [[nodiscard]] pollfd wanted() const override;
  void ready() override;

 private:
  enum class Kind { nonblocking, socket, file, other };
  [[nodiscard]] ssize_t put(std::string_view bytes) const;

  Loop& loop_;
  int descriptor_;
  Fd own_;  // the same file opened anew, where that can be done: then a call never blocks
  Kind kind_ = Kind::other;
  bool has_colors_;
  std::string queue_;
  std::size_t begin_ = 0;
  int error_number_ = 0;
};

struct OutputOptions {
  int first_rank = 0;
  int ranks = 1;
  bool tags = true;
  std::string folder = {};  // of the files rank-0.out, rank-0.err, …; empty for none
};

class Output {
 public:
  /// Lines up to this length are never mixed with others; longer ones come in pieces, each tagged.
  static constexpr std::size_t line_bytes_max = 64 << 10;

  static Result<std::unique_ptr<Output>> open(Loop& loop, OutputOptions options);

  /// Whether more is to be read of the ranks for this stream.
  [[nodiscard]] bool wants(Stream stream) const noexcept { return !printer(stream).is_full(); }
  void write(int rank, Stream stream, std::string_view bytes);
  /// The rank has written all; a last line without an end gets one.
  void finish(int rank);
  /// All ranks have; and what they wrote is not remembered.
  void finish_all();
  /// Whether it was told of this rank.
  [[nodiscard]] bool knows(int rank) const noexcept {
    return rank >= options_.first_rank && rank < options_.first_rank + options_.ranks;
  }

  /// A line of the launcher itself.
  void say(std::string_view line);
  /// The last lines that the rank wrote to stderr.
  [[nodiscard]] std::string last_lines(int rank) const;

  /// All was written.
  [[nodiscard]] bool is_flushed() const noexcept;
  /// Why it can't be written; with the errno.
  [[nodiscard]] std::optional<Status> failure() const;

 private:
  struct Source {
    std::string line;  // as far as it has come
    Fd file;
    std::string tail;  // of stderr
  };

  Output(Loop& loop, OutputOptions options);
  Status open_files();
  [[nodiscard]] Source& source(int rank, Stream stream) noexcept;
  [[nodiscard]] std::size_t index(int rank, Stream stream) const noexcept;
  [[nodiscard]] const Printer& printer(Stream stream) const noexcept;
  [[nodiscard]] Printer& printer(Stream stream) noexcept;
  void print_lines(int rank, Stream stream, std::string_view bytes);
  void print_line(int rank, Stream stream, std::string_view line);
  void write_file(Source& source, std::string_view bytes);

  OutputOptions options_;
  Printer output_;
  Printer error_;
  bool is_one_file_;  // where one Printer writes both, lest they cut into each other's lines
  std::vector<Source> sources_;  // two for each rank
  int file_error_ = 0;
};

}  // namespace hocket::run
