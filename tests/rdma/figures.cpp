// Latency and bandwidth of a transport between two processes, each with an adapter of its own:
// `figures verbs|straight|tcp`, in the machine of tools/rdma-vm; straight: verbs between registered
// memory. Both ends look without sleeping, as the programs of perftest do. Prints a JSON object:
// microseconds, and MiB/s.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "transports/tcp/transport.hpp"
#include "transports/verbs/transport.hpp"

namespace hocket::testing {
namespace {

constexpr std::uint64_t mebi = 1 << 20;
constexpr int trips = 1000;
constexpr std::uint64_t streamed_mebi = 32;
constexpr std::uint64_t streamed_bytes = streamed_mebi * mebi;

template <class T>
T need(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().to_string());
  return std::move(*result);
}

std::unique_ptr<Transport> make(std::string_view name, std::uint32_t rank) {
  TransportOptions options = {.rank = rank, .size = 2, .host = fmt::format("10.77.0.{}", rank + 1)};
  options.job = "figures";
  options.secret = "of both";
  if (name == "tcp") return need(tcp::TcpTransport::make(options, 1));
  return need(verbs::VerbsTransport::make(options, {.devices = fmt::format("=rxe{}", rank)}));
}

class End {
 public:
  End(std::string_view transport, std::uint32_t rank, int other)
      : rank_(rank),
        is_straight_(transport == "straight"),
        transport_(make(transport == "straight" ? "verbs" : transport, rank)) {
    std::string ours = transport_->address();
    ours.resize(256);
    std::string theirs(256, '\0');
    if (::write(other, ours.data(), ours.size()) != 256 ||
        ::recv(other, theirs.data(), theirs.size(), MSG_WAITALL) != 256) {
      throw std::runtime_error("the other end is gone");
    }
    std::string addresses[] = {ours.c_str(), theirs.c_str()};
    if (rank == 1) std::swap(addresses[0], addresses[1]);
    const Status status = transport_->connect(addresses);
    if (!status.ok()) throw std::runtime_error(status.to_string());
    channel_ = need(transport_->open(1 - rank, 0));
    if (!is_straight_) return;
    transport_->register_memory({out_.data(), out_.size()});
    transport_->register_memory({in_.data(), in_.size(), true});
  }

  void post(TransportOp::Kind kind, std::uint64_t bytes) {
    std::vector<std::byte>& memory = kind == TransportOp::Kind::send ? out_ : in_;
    const TransportOp op = {.kind = kind,
                            .may_lend = !is_straight_,
                            .channel = channel_,
                            .first = {memory.data(), bytes}};
    while (transport_->post({&op, 1}) == 0) wait(0);
    ++under_way_;
  }
  /// Until no more than so many ops are under way.
  void wait(std::uint64_t left) {
    while (under_way_ > left) {
      TransportCompletion completions[16];
      const std::size_t count = transport_->poll(completions);
      for (std::size_t i = 0; i < count; ++i) {
        if (!completions[i].status.ok())
          throw std::runtime_error(completions[i].status.to_string());
        if (completions[i].lent != nullptr) transport_->give_back(completions[i].lent);
      }
      under_way_ -= count;
    }
  }

  void send(std::uint64_t bytes) {
    post(TransportOp::Kind::send, bytes);
    wait(0);
  }
  void receive(std::uint64_t bytes) {
    post(TransportOp::Kind::recv, bytes);
    wait(0);
  }

  /// Half of the median trip.
  double latency_us(std::uint64_t bytes) {
    std::vector<Duration> times;
    for (int i = 0; i < trips + trips / 10; ++i) {
      const Instant begin = monotonic_clock().now();
      rank_ == 0 ? send(bytes) : receive(bytes);
      rank_ == 0 ? receive(bytes) : send(bytes);
      if (i >= trips / 10) times.push_back(monotonic_clock().now() - begin);
    }
    std::ranges::nth_element(times, times.begin() + trips / 2);
    return std::chrono::duration<double, std::micro>(times[trips / 2]).count() / 2;
  }

  /// Of messages one after the other, a few of them under way, in pieces as the engine cuts them.
  double bandwidth(std::uint64_t bytes, bool is_both_ways) {
    const Instant begin = monotonic_clock().now();
    for (std::uint64_t done = 0; done < streamed_bytes; done += bytes) {
      for (std::uint64_t at = 0; at < bytes; at += piece) {
        const std::uint64_t part = std::min(piece, bytes - at);
        if (rank_ == 1 || is_both_ways) post(TransportOp::Kind::recv, part);
        if (rank_ == 0 || is_both_ways) post(TransportOp::Kind::send, part);
        wait(is_both_ways ? 16 : 8);
      }
    }
    wait(0);
    rank_ == 0 ? receive(0) : send(0);
    const std::chrono::duration<double> time = monotonic_clock().now() - begin;
    return static_cast<double>(streamed_mebi) * (is_both_ways ? 2 : 1) / time.count();
  }

 private:
  static constexpr std::uint64_t piece = 256 << 10;

  std::uint32_t rank_;
  bool is_straight_;
  // Outlive the transport that knows them.
  std::vector<std::byte> out_ = std::vector<std::byte>(4 * mebi, std::byte{1});
  std::vector<std::byte> in_ = std::vector<std::byte>(4 * mebi);
  std::unique_ptr<Transport> transport_;
  ChannelId channel_ = 0;
  std::uint64_t under_way_ = 0;
};

void measure(std::string_view transport, std::uint32_t rank, int other) {
  End end(transport, rank, other);
  const double latency = end.latency_us(8);
  static_cast<void>(end.bandwidth(mebi, false));  // to warm up
  const double one = end.bandwidth(mebi, false);
  const double four = end.bandwidth(4 * mebi, false);
  const double both = end.bandwidth(mebi, true);
  if (rank != 0) return;
  fmt::print(
      "{{\"latency_8\": {:.1f}, \"stream_1M\": {:.1f}, \"stream_4M\": {:.1f}, "
      "\"both_1M\": {:.1f}}}\n",
      latency, one, four, both);
}

int run(std::string_view transport) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t child = fork();
  measure(transport, child == 0 ? 1 : 0, ends[child == 0 ? 1 : 0]);
  if (child == 0) return 0;
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hocket::testing

int main(int argc, char** argv) try {
  return hocket::testing::run(argc > 1 ? argv[1] : "verbs");
} catch (const std::exception& error) {
  std::fprintf(stderr, "figures: %s\n", error.what());
  return 1;
}
