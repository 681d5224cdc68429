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

/// A descriptor of the same file as the peer has. What is not of that kind any more is not opened,
/// as that could wait, or do something.
Fd open_descriptor(const Address& address, int descriptor, mode_t kind) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, descriptor);
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & S_IFMT) != kind) {
    errno = ENOENT;
    return {};
  }
  return Fd::open_unforked(
      [&] { return ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); });
}

}  // namespace

Status peer_lost(std::uint32_t rank, std::string_view how) {
  return Status(StatusCode::peer_lost, fmt::format("rank {} {}", rank, how))
      .with_peer(static_cast<int>(rank));
}

/// The process first: if the board is the right one then, so is the process.
Result<Peer> Peer::reach(const Address& address, const Expected& expected, Pair& own) {
  Peer made;
  made.rank_ = expected.rank;
  made.process_ = Fd::open_unforked([&] {
    return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(address.pid), 0));
  });
  if (!made.process_) return not_there(expected.rank, errno);
  made.file_ = open_descriptor(address, address.board, S_IFREG);
  if (!made.file_) return not_there(expected.rank, errno);
  struct stat status = {};
  const auto bytes = BoardView::base_bytes(expected.size);
  const int seals = ::fcntl(made.file_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return not_there(expected.rank, ENOENT);
  if (::fstat(made.file_.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) < sizeof(Header)) {
    return not_there(expected.rank, ENOENT);
  }
  const bool is_whole = static_cast<std::uint64_t>(status.st_size) >= bytes;
  auto view = BoardView::make(made.file_.get(), is_whole ? expected.size : 1);
  if (!view.ok()) return view.status();
  made.view_ = *std::move(view);
  const Header& header = made.header();
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
  made.bell_ = open_descriptor(address, address.bell, S_IFIFO);
  if (!made.bell_) return not_there(expected.rank, errno);
  made.theirs_ = &made.view_.pair(expected.reader);
  made.ours_ = &own;
  made.theirs_->has_reader.store(1, std::memory_order_release);
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
