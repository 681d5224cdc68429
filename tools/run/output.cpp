#include "run/output.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "run/process.hpp"

namespace hocket::run {
namespace {

constexpr std::size_t queue_bytes_max = 256 << 10;
constexpr std::size_t tail_bytes_max = 8 << 10;
constexpr int tail_lines_max = 20;

constexpr int colors[] = {36, 33, 32, 35, 34, 96, 93, 92, 95, 94};  // as terminals number them

std::string tag(int rank, bool has_colors) {
  if (!has_colors) return fmt::format("[{}] ", rank);
  const auto color = colors[static_cast<std::size_t>(rank) % std::size(colors)];
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", color, rank);
}

bool is_one_file(int one, int other) {
  struct stat a {};
  struct stat b {};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

void complain(std::string_view line) {
  constexpr int patience_ms = 1000;
  const std::string text = fmt::format("{}\n", line);
  for (std::string_view rest = text; !rest.empty();) {
    pollfd waited = {STDERR_FILENO, POLLOUT, 0};
    if (poll(&waited, 1, patience_ms) <= 0) return;
    // A pipe that is ready takes at least as much as this without blocking.
    const std::size_t little = std::min<std::size_t>(rest.size(), PIPE_BUF);
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), little);
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

Printer::Printer(Loop& loop, int descriptor)
    : loop_(loop),
      descriptor_(descriptor),
      has_colors_(isatty(descriptor) == 1 && std::getenv("NO_COLOR") == nullptr) {
  struct stat found {};
  fstat(descriptor, &found);
  if (S_ISSOCK(found.st_mode)) kind_ = Kind::socket;
  if (S_ISREG(found.st_mode)) kind_ = Kind::file;
  if (S_ISFIFO(found.st_mode) || isatty(descriptor) == 1) {
    const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
    own_.reset(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own_) kind_ = Kind::nonblocking;
  }
  loop_.add(*this);
}

Printer::~Printer() { loop_.remove(*this); }

bool Printer::is_full() const noexcept { return queue_.size() - begin_ >= queue_bytes_max; }

pollfd Printer::wanted() const { return {is_empty() ? -1 : descriptor_, POLLOUT, 0}; }

ssize_t Printer::put(std::string_view bytes) const {
  // A pipe that is ready takes at least as much as this without blocking.
  const std::size_t little = std::min<std::size_t>(bytes.size(), PIPE_BUF);
  switch (kind_) {
    case Kind::nonblocking:
      return ::write(own_.get(), bytes.data(), bytes.size());
    case Kind::socket:
      return ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    case Kind::file:
      return ::write(descriptor_, bytes.data(), bytes.size());
    case Kind::other:
      break;
  }
  return ::write(descriptor_, bytes.data(), little);
}

void Printer::ready() {
  const ssize_t written = put(std::string_view(queue_).substr(begin_));
  if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (written < 0) error_number_ = errno;
  if (written > 0) begin_ += static_cast<std::size_t>(written);
  if (error_number_ != 0 || begin_ == queue_.size()) {
    queue_.clear();
    begin_ = 0;
  } else if (begin_ > queue_bytes_max) {
    queue_.erase(0, begin_);
    begin_ = 0;
  }
}

Result<std::unique_ptr<Output>> Output::open(Loop& loop, OutputOptions options) {
  std::unique_ptr<Output> output(new Output(loop, std::move(options)));
  if (Status status = output->open_files(); !status.ok()) return status;
  return output;
}

Output::Output(Loop& loop, OutputOptions options)
    : options_(std::move(options)),
      output_(loop, STDOUT_FILENO),
      error_(loop, STDERR_FILENO),
      is_one_file_(is_one_file(STDOUT_FILENO, STDERR_FILENO)),
      sources_(2 * static_cast<std::size_t>(options_.ranks)) {}

Status Output::open_files() {
  if (options_.folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(options_.folder, error);
  for (int rank = options_.first_rank; knows(rank); ++rank) {
    for (const Stream stream : {Stream::output, Stream::error}) {
      const std::string path = fmt::format("{}/rank-{}.{}", options_.folder, rank,
                                           stream == Stream::output ? "out" : "err");
      Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (!file) {
        return Status(StatusCode::system_error, fmt::format("{} can't be written", path))
            .with_system_error(errno)
            .with_hint("--output-dir names the folder of the ranks' files");
      }
      source(rank, stream).file = std::move(file);
    }
  }
  return {};
}

std::size_t Output::index(int rank, Stream stream) const noexcept {
  return 2 * static_cast<std::size_t>(rank - options_.first_rank) +
         static_cast<std::size_t>(stream);
}

Output::Source& Output::source(int rank, Stream stream) noexcept {
  return sources_[index(rank, stream)];
}

const Printer& Output::printer(Stream stream) const noexcept {
  return stream == Stream::output || is_one_file_ ? output_ : error_;
}

Printer& Output::printer(Stream stream) noexcept {
  return stream == Stream::output || is_one_file_ ? output_ : error_;
}

void Output::write(int rank, Stream stream, std::string_view bytes) {
  Source& from = source(rank, stream);
  write_file(from, bytes);
  if (stream == Stream::error) {
    from.tail.append(bytes);
    if (from.tail.size() > 2 * tail_bytes_max) {
      from.tail.erase(0, from.tail.size() - tail_bytes_max);
    }
  }
  print_lines(rank, stream, bytes);
}

void Output::print_lines(int rank, Stream stream, std::string_view bytes) {
  std::string& begun = source(rank, stream).line;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t room = line_bytes_max - begun.size();
    const std::size_t size = std::min({end == bytes.npos ? end : end + 1, bytes.size(), room});
    const std::string_view part = bytes.substr(0, size);
    bytes.remove_prefix(size);
    const bool is_whole = part.ends_with('\n') || size == room;
    if (is_whole && begun.empty()) {
      print_line(rank, stream, part);
      continue;
    }
    begun.append(part);
    if (!is_whole) return;
    print_line(rank, stream, begun);
    begun.clear();
  }
}

void Output::print_line(int rank, Stream stream, std::string_view line) {
  Printer& to = printer(stream);
  if (options_.tags) to.write(tag(rank, to.has_colors()));
  to.write(line);
  if (options_.tags && !line.ends_with('\n')) to.write("\n");
}

void Output::write_file(Source& source, std::string_view bytes) {
  while (source.file && !bytes.empty()) {
    const ssize_t written = ::write(source.file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      file_error_ = errno;
      source.file.reset();
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Output::finish(int rank) {
  for (const Stream stream : {Stream::output, Stream::error}) {
    std::string& line = source(rank, stream).line;
    if (!line.empty()) print_line(rank, stream, line);
    line.clear();
  }
}

void Output::finish_all() {
  for (int rank = options_.first_rank; knows(rank); ++rank) {
    finish(rank);
    source(rank, Stream::error).tail.clear();
  }
}

void Output::say(std::string_view line) { printer(Stream::error).write(fmt::format("{}\n", line)); }

std::string Output::last_lines(int rank) const {
  const std::string& tail = sources_[index(rank, Stream::error)].tail;
  std::string_view kept = tail;
  if (kept.ends_with('\n')) kept.remove_suffix(1);
  std::size_t begin = kept.size();
  for (int lines = 0; lines < tail_lines_max && begin != kept.npos && begin > 0; ++lines) {
    begin = kept.rfind('\n', begin - 1);
  }
  if (begin != kept.npos && begin < kept.size()) kept.remove_prefix(begin + 1);
  return std::string(kept);
}

bool Output::is_flushed() const noexcept { return output_.is_empty() && error_.is_empty(); }

std::optional<Status> Output::failure() const {
  if (file_error_ != 0) {
    return Status(StatusCode::system_error, "a file of --output-dir can't be written")
        .with_system_error(file_error_);
  }
  for (const auto& [printer, name] :
       {std::pair(&output_, "stdout"), std::pair(&error_, "stderr")}) {
    if (printer->broken() == 0) continue;
    return Status(StatusCode::system_error, fmt::format("{} can't be written", name))
        .with_system_error(printer->broken());
  }
  return {};
}

}  // namespace hocket::run
