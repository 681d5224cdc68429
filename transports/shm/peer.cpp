#include "transports/shm/peer.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace hocket::shm {
namespace {

Status not_there(std::uint32_t rank, int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    return Status(StatusCode::limit_exceeded,
                  fmt::format("rank {} can't be reached over shared memory", rank))
        .with_peer(static_cast<int>(rank))
        .with_system_error(error)
        .with_hint("raise the limit of open files: ulimit -n");
  }
  return Status(StatusCode::peer_lost, fmt::format("rank {} has no shared memory any more", rank))
      .with_peer(static_cast<int>(rank))
      .with_system_error(error)
      .with_hint("see why its process has ended; or, if it runs, set HOCKET_TRANSPORT=tcp");
}

std::string path_of(const Address& address, int descriptor) {
  return fmt::format("/proc/{}/fd/{}", address.pid, descriptor);
}

/// A descriptor of the same file as the peer has. What is not of that kind any more is not opened,
/// as that could wait, or do something.
Fd open_descriptor(const Address& address, int descriptor, mode_t kind) {
  const std::string path = path_of(address, descriptor);
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & S_IFMT) != kind) {
    errno = ENOENT;
    return {};
  }
  return Fd::open_unforked(
      [&] { return ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); });
}

/// Whether the process of that number has the board too, and so is the peer's.
bool has_board(const Address& address, const Fd& board) {
  struct stat theirs = {};
  struct stat ours = {};
  if (::stat(path_of(address, address.board).c_str(), &theirs) != 0) return false;
  if (::fstat(board.get(), &ours) != 0) return false;
  errno = ENOENT;  // if it is another file
  return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

}  // namespace

Status peer_lost(std::uint32_t rank, std::string_view how) {
  return Status(StatusCode::peer_lost, fmt::format("rank {} {}", rank, how))
      .with_peer(static_cast<int>(rank));
}

Result<Fd> Peer::hold(const Address& address, const Expected& expected) {
  Fd file = open_descriptor(address, address.board, S_IFREG);
  if (!file) return not_there(expected.rank, errno);
  struct stat status = {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return not_there(expected.rank, ENOENT);
  if (::fstat(file.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) < sizeof(Header)) {
    return not_there(expected.rank, ENOENT);
  }
  const bool is_whole =
      static_cast<std::uint64_t>(status.st_size) >= BoardView::base_bytes(expected.size);
  auto view = BoardView::make(file.get(), is_whole ? expected.size : 1);
  if (!view.ok()) return view.status();
  const Header& header = view->header();
  if (header.mark != board_mark || header.secret != address.secret ||
      header.rank != expected.rank) {
    return not_there(expected.rank, ENOENT);
  }
  if (header.epoch != expected.epoch || header.size != expected.size) {
    return Status(StatusCode::mismatch,
                  fmt::format("rank {} is of epoch {} of a world of {}, and rank {} of epoch {} of "
                              "one of {}",
                              expected.rank, header.epoch, header.size, expected.reader,
                              expected.epoch, expected.size))
        .with_peer(static_cast<int>(expected.rank));
  }
  view->hold(expected.reader).store(Hold::file, std::memory_order_release);
  return file;
}

/// Where the process has ended there is nobody to wake, but what it wrote can be read.
Result<Peer> Peer::reach(Fd& board, const Address& address, const Expected& expected, Pair& own) {
  Peer made;
  made.rank_ = expected.rank;
  made.process_ = Fd::open_unforked([&] {
    return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(address.pid), 0));
  });
  if (made.process_ && has_board(address, board)) {
    made.bell_ = open_descriptor(address, address.bell, S_IFIFO);
  }
  if (!made.bell_) {
    const bool has_ended = errno == ESRCH || errno == ENOENT;
    if (!has_ended) return not_there(expected.rank, errno);
    made.process_ = {};
  }
  auto view = BoardView::make(board.get(), expected.size);
  if (!view.ok()) return view.status();
  made.view_ = *std::move(view);
  made.file_ = std::move(board);
  made.theirs_ = &made.view_.pair(expected.reader);
  made.ours_ = &own;
  made.view_.hold(expected.reader).store(Hold::mapping, std::memory_order_release);
  made.header().readers.fetch_add(1, std::memory_order_seq_cst);
  return made;
}

void Peer::ring() noexcept {
  std::atomic<std::uint32_t>& is_asleep = header().is_asleep;
  if (is_asleep.load(std::memory_order_relaxed) == 0) return;
  if (is_asleep.exchange(0, std::memory_order_relaxed) == 0) return;
  const char one = 1;
  // A pipe that is full wakes it as well.
  static_cast<void>(!::write(bell_.get(), &one, 1));
}

}  // namespace hocket::shm
