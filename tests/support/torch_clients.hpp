// A server that serves clients of PyTorch's TCPStore, and such a client.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "net/socket.hpp"
#include "store/server.hpp"
#include "store/tcp_store.hpp"
#include "support/catch.hpp"
#include "support/store_clients.hpp"
#include "support/torch_words.hpp"

namespace hocket::testing {

inline constexpr Duration closing_time = std::chrono::seconds(3);  // on a busy machine

inline const wire::Credentials of_the_job = {.job = "job 1", .secret = "the secret"};

inline std::unique_ptr<store::Server> serve_torch(store::ServerOptions options = {
                                                      .credentials = of_the_job}) {
  options.serves_torch = true;
  return start_server(std::move(options));
}

class TorchSocket {
 public:
  explicit TorchSocket(const store::Server& server,
                       std::string_view greeting = torch_words::greeting)
      : socket_(stranger(server)) {
    say(greeting);
  }

  void say(std::string_view bytes) {
    REQUIRE(net::send_all(socket_.get(), bytes, in(std::chrono::seconds(5))).ok());
  }
  std::string hear(std::size_t count) {
    const auto bytes = net::receive_exactly(socket_.get(), count, in(std::chrono::seconds(5)));
    REQUIRE(bytes.status().to_string() == "ok");
    return *bytes;
  }
  std::string ask(std::string_view bytes, std::size_t count) {
    say(bytes);
    return hear(count);
  }
  /// Whether nothing is on its way: the next answer is that to a ping.
  bool is_in_step() { return ask(torch_words::byte(torch_words::ping) + "ping", 4) == "ping"; }
  bool is_closed() { return is_closed_within(socket_, closing_time); }

 private:
  Fd socket_;
};

inline Result<std::unique_ptr<store::TcpStore>> connect_to(const store::Server& server,
                                                           const char* secret) {
  return store::TcpStore::connect({.server = server.endpoint(),
                                   .credentials = {.job = "job 1", .secret = secret},
                                   .timeout = std::chrono::seconds(10)});
}

}  // namespace hocket::testing
