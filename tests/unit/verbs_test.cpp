// What of the verbs transport needs no adapter: which port and GID are chosen, what goes over the
// wire, and what is said of failures.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/require.hpp"
#include "transports/verbs/channel.hpp"
#include "transports/verbs/errors.hpp"
#include "transports/verbs/library.hpp"
#include "transports/verbs/port.hpp"
#include "transports/verbs/wire.hpp"

namespace hocket::testing {
namespace {

using verbs::GidEntry;
using verbs::GidKind;
using verbs::Port;

verbs::Gid v4(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
}

verbs::Gid v6(std::uint8_t first, std::uint8_t second) { return {first, second, 0, 0, 0, 0, 0, 1}; }

/// As adapters list them: link-local first, each as RoCE v1 and v2.
std::vector<GidEntry> usual_gids(std::uint8_t host) {
  return {{.index = 0, .kind = GidKind::roce_v1, .gid = v6(0xFE, 0x80)},
          {.index = 1, .kind = GidKind::roce_v2, .gid = v6(0xFE, 0x80)},
          {.index = 2, .kind = GidKind::roce_v1, .gid = v4(host)},
          {.index = 3, .kind = GidKind::roce_v2, .gid = v4(host)},
          {.index = 4, .kind = GidKind::roce_v2, .gid = v6(0xFD, 0)}};
}

Port port(std::string device, std::uint8_t host, int speed_mbps = 100'000) {
  return {.device = std::move(device),
          .is_active = true,
          .is_ethernet = true,
          .mtu = 5,
          .speed_mbps = speed_mbps,
          .gids = usual_gids(host)};
}

std::string names(const std::vector<Port>& ports, std::string_view wish,
                  std::string_view host = "") {
  std::string text;
  for (const auto& each : require(choose_ports(ports, {.devices = wish, .host = host}))) {
    text += (text.empty() ? "" : " ") + each.port.name();
  }
  return text;
}

}  // namespace

TEST_CASE("RoCE v2 with an IPv4 address is preferred, and any index can be had") {
  const Port ethernet = port("mlx5_0", 1);
  REQUIRE(require(choose_gid(ethernet, -1)).index == 3);
  for (std::uint32_t i = 0; i < 5; ++i) REQUIRE(require(choose_gid(ethernet, i)).index == i);
  const Status missing = choose_gid(ethernet, 9).status();
  REQUIRE(missing.code() == StatusCode::invalid_argument);
  REQUIRE(missing.what().find("index 9") != std::string_view::npos);

  Port without_v4 = ethernet;
  without_v4.gids.erase(without_v4.gids.begin() + 2, without_v4.gids.begin() + 4);
  REQUIRE(require(choose_gid(without_v4, -1)).index == 4);
  without_v4.gids.pop_back();
  REQUIRE(require(choose_gid(without_v4, -1)).index == 1);
  without_v4.gids.clear();
  REQUIRE(choose_gid(without_v4, -1).status().code() == StatusCode::unsupported);
}

TEST_CASE("without a wish the port with the host's address is used, then the fastest") {
  std::vector<Port> ports = {port("mlx5_0", 1), port("mlx5_1", 2, 400'000), port("rxe0", 3, 10)};
  REQUIRE(names(ports, "") == "mlx5_1:1");
  REQUIRE(names(ports, "", "10.0.0.3") == "rxe0:1");
  REQUIRE(names(ports, "^mlx5_1") == "mlx5_0:1");
  ports[1].is_active = false;
  REQUIRE(names(ports, "") == "mlx5_0:1");
  REQUIRE(names(ports, "", "10.0.0.2") == "mlx5_0:1");
}

TEST_CASE("HOCKET_IB_HCA names ports, in its order") {
  std::vector<Port> ports = {port("mlx5_0", 1), port("mlx5_1", 2), port("mlx5_10", 3)};
  ports.push_back(ports[0]);
  ports.back().number = 2;
  REQUIRE(names(ports, "mlx5_1") == "mlx5_1:1 mlx5_10:1");
  REQUIRE(names(ports, "=mlx5_1") == "mlx5_1:1");
  REQUIRE(names(ports, "mlx5_0:2, =mlx5_10") == "mlx5_0:2 mlx5_10:1");
  REQUIRE(names(ports, "mlx5") == "mlx5_0:1 mlx5_1:1 mlx5_10:1 mlx5_0:2");
  const Status missing = verbs::choose_ports(ports, {.devices = "bnxt"}).status();
  REQUIRE(missing.code() == StatusCode::unsupported);
  REQUIRE(missing.what().find("mlx5_10:1 is active, Ethernet") != std::string_view::npos);
  REQUIRE_FALSE(verbs::choose_ports({}, {}).ok());
}

TEST_CASE("cards and headers are read as they were written") {
  verbs::Card card = {.rails = 2};
  card.ends[1] = {.gid = v4(7),
                  .queue_pair = 0x123456,
                  .first_packet = 9,
                  .lid = 77,
                  .mtu = 5,
                  .is_ethernet = true};
  const std::string bytes = card.encode();
  REQUIRE(bytes.size() == verbs::card_bytes);
  const verbs::Card read = require(verbs::Card::decode(bytes));
  REQUIRE(read.encode() == bytes);
  REQUIRE(read.ends[1].gid == v4(7));
  std::string other = bytes;
  other[0] = 9;
  REQUIRE(verbs::Card::decode(other).status().code() == StatusCode::mismatch);
  other = bytes;
  other[4] = 99;
  REQUIRE_FALSE(verbs::Card::decode(other).ok());
  REQUIRE_FALSE(verbs::Card::decode(bytes.substr(1)).ok());

  const verbs::Header grant = {.lane = ~std::uint64_t{0},
                               .number = 1,
                               .consumed = 2,
                               .kind = verbs::Kind::grant,
                               .rail = 3,
                               .slot = 4,
                               .length = 5,
                               .offset = 6,
                               .address = 7,
                               .key = 8};
  std::array<std::byte, verbs::header_bytes_max> memory = {};
  grant.encode(memory.data());
  const verbs::Header same = require(verbs::Header::decode(memory.data(), grant.bytes()));
  std::array<std::byte, verbs::header_bytes_max> again = {};
  same.encode(again.data());
  REQUIRE(again == memory);
  for (std::size_t i = 0; i < grant.bytes(); ++i) {
    REQUIRE_FALSE(verbs::Header::decode(memory.data(), i).ok());
  }
  memory[16] = std::byte{99};
  REQUIRE_FALSE(verbs::Header::decode(memory.data(), grant.bytes()).ok());
}

TEST_CASE("numbers of messages go on where their low bits begin anew") {
  constexpr std::uint64_t wrap = std::uint64_t{1} << 32;
  for (const std::uint64_t near : {std::uint64_t{5}, wrap - 1, wrap, 3 * wrap + 7}) {
    for (const std::uint64_t number : {near, near + 1, near + 63, near - 3}) {
      REQUIRE(verbs::widen(static_cast<std::uint32_t>(number), near) == number);
    }
  }
}

TEST_CASE("of a message in two parts, a stretch is what lies in one of them") {
  std::array<std::byte, 100> memory = {};
  const common::OpMemory parts = {.first = {memory.data(), 30}, .rest = {memory.data() + 50, 40}};
  const auto is_at = [&](MemoryPart part, std::size_t at, std::uint64_t bytes) {
    return part.data == memory.data() + at && part.bytes == bytes;
  };
  REQUIRE(is_at(parts.stretch(0, 70), 0, 30));
  REQUIRE(is_at(parts.stretch(10, 5), 10, 5));
  REQUIRE(is_at(parts.stretch(29, 5), 29, 1));
  REQUIRE(is_at(parts.stretch(30, 5), 50, 5));
  REQUIRE(is_at(parts.stretch(60, 99), 80, 10));
}

TEST_CASE("a failed completion says peer, adapter, status and what to try") {
  const Port ours = port("mlx5_0", 1);
  const verbs::FailureScene scene = {.peer = 3, .ours = {.port = ours, .gid = ours.gids[3]}};
  for (int i = IBV_WC_LOC_LEN_ERR; i <= IBV_WC_GENERAL_ERR; ++i) {
    ibv_wc completion = {};
    completion.status = static_cast<ibv_wc_status>(i);
    completion.vendor_err = 0x81;
    const Status status = verbs::describe_failure(completion, scene, "words");
    REQUIRE(status.code() == StatusCode::peer_lost);
    REQUIRE(status.peer() == 3);
    for (const char* part : {"rank 3", "mlx5_0:1", "\"words\"", "0x81"}) {
      REQUIRE(status.what().find(part) != std::string_view::npos);
    }
    REQUIRE_FALSE(status.hint().empty());
  }
  ibv_wc silent = {};
  silent.status = IBV_WC_RETRY_EXC_ERR;
  REQUIRE(verbs::describe_failure(silent, scene, "").hint().find("GID index") !=
          std::string_view::npos);
  const Status down =
      verbs::describe_failure(silent, {.peer = 3, .ours = scene.ours, .is_port_active = false}, "");
  REQUIRE(down.hint().find("is down") != std::string_view::npos);
}

TEST_CASE("without libibverbs it is said what to install") {
  constexpr const char* libraries[] = {"libibverbs-of-nobody.so.1"};
  const Status status = verbs::load_ibverbs(libraries).status();
  REQUIRE(status.code() == StatusCode::unsupported);
  REQUIRE(status.hint().find("libibverbs1") != std::string_view::npos);
}

}  // namespace hocket::testing
