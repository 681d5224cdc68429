// The descriptors that Asio opens for itself and shows to nobody, so that children don't keep them.
#pragma once

#include <vector>

namespace hocket::store {

/// The epoll by which an io_context watches one of its sockets, and what that epoll watches
/// besides: a timer and what wakes it up. A child made by fork() closes them, as long as this
/// lives. Without /proc it finds none, and children keep them, which does no harm but that they are
/// open.
class ReactorFiles {
 public:
  /// Of the io_context that works on this socket and on no other yet.
  explicit ReactorFiles(int socket);
  ReactorFiles(const ReactorFiles&) = delete;
  ReactorFiles& operator=(const ReactorFiles&) = delete;
  ~ReactorFiles();

 private:
  std::vector<int> files_;
};

}  // namespace hocket::store
