// A flood of strangers with wrong proofs, and a world that works meanwhile.
//
//   flood ranks                       joins, repeats an all-reduce of 8 bytes until the stdin of
//   rank
//                                     0 ends, and lets rank 0 print how many there were, each 50 ms
//   flood attack PORT JOB PURPOSE N   keeps N handshakes with another secret going, each again as
//                                     soon as it is refused, until it is killed
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "base/rng.hpp"
#include "net/socket.hpp"
#include "wire/handshake.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Deadline;
using hocket::monotonic_clock;

bool has_stdin_ended() {
  pollfd in = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char byte = 0;
  return ::poll(&in, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) <= 0;
}

int work() {
  hocket::Communicator world = hocket::join();
  std::uint64_t operations = 0;
  auto next = monotonic_clock().now();
  for (bool is_over = false; !is_over;) {
    std::int64_t ends = 0;
    const auto now = monotonic_clock().now();
    if (world.rank() == 0 && now >= next) {
      next = now + 50ms;
      fmt::print("{} {}\n", monotonic_clock().now().time_since_epoch().count(), operations);
      std::fflush(stdout);
      ends = has_stdin_ended() ? 1 : 0;
    }
    world.all_reduce(std::span(&ends, 1));
    is_over = ends != 0;
    ++operations;
  }
  return 0;
}

/// One connection after the other: as far as the other side lets it.
void attack(const hocket::net::Address& address, const std::string& job,
            hocket::wire::Purpose purpose) {
  const hocket::wire::Credentials wrong = {.job = job, .secret = "a guess"};
  for (;;) {
    const Deadline deadline = Deadline::after(monotonic_clock(), 10s);
    const auto socket = hocket::net::connect_to(address, deadline);
    if (!socket.ok()) continue;
    hocket::wire::Nonce nonce{};
    hocket::random_bytes(nonce);
    hocket::wire::ClientHandshake handshake(wrong, purpose, nonce);
    if (!hocket::net::send_all(socket->get(), handshake.hello(), deadline).ok()) continue;
    const auto challenge =
        hocket::net::receive_exactly(socket->get(), hocket::wire::challenge_bytes, deadline);
    if (!challenge.ok()) continue;
    const auto proof = handshake.on_challenge(*challenge);
    if (!proof.ok() || !hocket::net::send_all(socket->get(), *proof, deadline).ok()) continue;
    static_cast<void>(
        hocket::net::receive_exactly(socket->get(), hocket::wire::answer_bytes, deadline));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2) return work();
  if (argc != 6) return 2;
  const std::string host_and_port = fmt::format("127.0.0.1:{}", argv[2]);
  const auto endpoint = hocket::net::parse_endpoint(host_and_port);
  const auto addresses = hocket::net::resolve(*endpoint, Deadline::after(monotonic_clock(), 5s));
  const auto purpose = static_cast<hocket::wire::Purpose>(std::atoi(argv[4]));
  std::vector<std::thread> others;
  for (int i = 1; i < std::atoi(argv[5]); ++i) {
    others.emplace_back([&] { attack(addresses->front(), argv[3], purpose); });
  }
  attack(addresses->front(), argv[3], purpose);
} catch (const hocket::Error& error) {
  fmt::print("{}\n", error.what());
  return 1;
}
