// What a store is measured with: a server in a process of its own, the peers that it is measured
// against, and a load of pipelined requests. All of it throws Error on a failure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/fd.hpp"
#include "net/endpoint.hpp"
#include "store/connection.hpp"

namespace hocket::bench {

/// Runs a process, with all the threads that it has by now, on one core; on any core for -1. 0 is
/// this process.
void pin(pid_t process, int core);

/// A store's server with a secret. Made before this process has threads.
class ServerProcess {
 public:
  ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] store::ConnectOptions address() const;
  [[nodiscard]] std::size_t resident_bytes() const;

 private:
  pid_t pid_ = -1;
  std::string secret_;
  net::Endpoint endpoint_;
};

/// A process that sends back what it gets, with blocking calls: the least that a trip over TCP
/// takes.
class EchoProcess {
 public:
  EchoProcess();
  EchoProcess(const EchoProcess&) = delete;
  EchoProcess& operator=(const EchoProcess&) = delete;
  ~EchoProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void trip();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

/// PyTorch's TCPStore, its server and its client in processes of their own.
class TorchStore {
 public:
  /// Null where PyTorch is not installed.
  [[nodiscard]] static std::unique_ptr<TorchStore> start();
  TorchStore(const TorchStore&) = delete;
  TorchStore& operator=(const TorchStore&) = delete;
  ~TorchStore();

  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  /// The client on one core, the server on another one or the same.
  void pin(int client, int server) const;
  /// The mean time of that many calls of add.
  [[nodiscard]] double seconds_a_trip(int trips);

 private:
  TorchStore(pid_t pid, Fd pipe, std::string version);

  pid_t pid_;
  Fd pipe_;
  std::string version_;
};

struct Load {
  int clients = 8;  // a thread and a connection each
  int in_flight = 32;
  int requests = 40'000;  // of each client
};
[[nodiscard]] double requests_a_second(const store::ConnectOptions& server, const Load& load);

}  // namespace hocket::bench
