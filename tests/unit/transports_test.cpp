// Which transports a rank has, and how it says so to ranks that have others.
#include "engine/transports.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/mixed.hpp"
#include "support/require.hpp"

namespace hocket::testing {
namespace {

/// Reaches the ranks whose address it knows, and does nothing else.
class Fake final : public Transport {
 public:
  explicit Fake(std::string address) : address_(std::move(address)) {}
  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return address_; }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override {
    known_.assign(addresses.begin(), addresses.end());
    return {};
  }
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override {
    return known_.at(peer).empty() ? Status(StatusCode::unsupported, "not there") : Status();
  }
  [[nodiscard]] Result<ChannelId> open(std::uint32_t, std::uint64_t) override {
    return ChannelId{0};
  }
  [[nodiscard]] std::size_t post(std::span<const TransportOp>) noexcept override { return 0; }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion>) noexcept override { return 0; }
  void give_back(const std::byte*) noexcept override {}
  [[nodiscard]] int descriptor() const noexcept override { return -1; }
  [[nodiscard]] bool prepare_to_sleep() noexcept override { return false; }
  void close(ChannelId, const Status&) noexcept override {}
  void close_lanes(std::uint64_t, std::uint64_t, const Status&) noexcept override {}
  void register_memory(const RegisteredMemory& memory) noexcept override {
    registered.emplace_back(address_, memory);
  }
  void deregister_memory(const RegisteredMemory& memory) noexcept override {
    std::erase(registered, std::pair(address_, memory));
  }

  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                              std::span<const std::uint32_t> peers) override {
    if (refuses == peers.back()) return {StatusCode::unsupported, "not this memory"};
    REQUIRE(dma_buf == 7);
    for (const std::uint32_t peer : peers) REQUIRE(can_reach(peer).ok());
    registered.emplace_back(address_, memory);
    return {};
  }

  /// With all of them, and by which.
  static inline std::vector<std::pair<std::string, RegisteredMemory>> registered = {};
  /// Whoever has this as its last peer takes no memory of a device.
  static inline std::uint32_t refuses = UINT32_MAX;

 private:
  std::string address_;
  std::vector<std::string> known_ = {};
  TransportCaps caps_ = {};
};

Status well(std::span<const Setting>) { return {}; }
Status absent(std::span<const Setting>) { return Status(StatusCode::unsupported, "no adapter"); }
Result<std::unique_ptr<Transport>> make(const TransportOptions& options) {
  return std::unique_ptr<Transport>(std::make_unique<Fake>("rank " + std::to_string(options.rank)));
}
Result<std::unique_ptr<Transport>> refuse(const TransportOptions&) {
  return Status(StatusCode::unsupported, "not with TLS");
}
Result<std::unique_ptr<Transport>> break_down(const TransportOptions&) {
  return Status(StatusCode::limit_exceeded, "no memory");
}

constexpr TransportKind good = {"good", "", well, make};
constexpr TransportKind other = {"other", "", well, make};
constexpr TransportKind missing = {"missing", "", absent, make};
constexpr TransportKind unwilling = {"unwilling", "", well, refuse};
constexpr TransportKind broken = {"broken", "", well, break_down};

std::vector<std::string> names(const engine::FoundTransports& found, std::string_view wanted) {
  std::vector<std::string> chosen;
  for (const TransportKind* const kind : require(engine::choose_transports(found, wanted, {}))) {
    chosen.emplace_back(kind->name);
  }
  return chosen;
}

}  // namespace

TEST_CASE("a loaded transport is used alone, unless several are asked for") {
  const engine::FoundTransports found = {.kinds = {&missing, &good, &other}};
  REQUIRE(names(found, "") == std::vector<std::string>{"good"});
  REQUIRE(names(found, "other") == std::vector<std::string>{"other"});
  REQUIRE(names(found, "other, good, missing") == std::vector<std::string>{"good", "other"});
  const Status none = engine::choose_transports(found, "missing", {}).status();
  REQUIRE(none.code() == StatusCode::unsupported);
  REQUIRE(none.what().find("missing: no adapter") != std::string_view::npos);
  REQUIRE(engine::choose_transports(found, "nobody", {}).status().what().find("nobody") !=
          std::string_view::npos);
}

TEST_CASE("those that came with Hocket are used together") {
  engine::FoundTransports found = engine::find_transports("");
  std::size_t available = 0;
  for (const TransportKind* const kind : found.kinds)
    available += kind->available({}).ok() ? 1U : 0U;
  REQUIRE(names(found, "").size() == available);
}

TEST_CASE("a transport that can't do what is asked is left out, one that breaks down is told of") {
  const TransportKind* const some[] = {&unwilling, &good};
  const engine::MadeTransport made = require(engine::make_transport(some, {.rank = 3}));
  REQUIRE(made.name() == "good");
  REQUIRE(engine::address_in(made.address(), "good") == "rank 3");
  const TransportKind* const none[] = {&unwilling};
  REQUIRE(engine::make_transport(none, {}).status().code() == StatusCode::unsupported);
  const TransportKind* const bad[] = {&broken, &good};
  REQUIRE(engine::make_transport(bad, {}).status().code() == StatusCode::limit_exceeded);
}

TEST_CASE("a rank is reached by the first transport that both have") {
  const TransportKind* const both[] = {&good, &other};
  const TransportKind* const one[] = {&other};
  const engine::MadeTransport ours = require(engine::make_transport(both, {.rank = 0}));
  REQUIRE(ours.name() == "good,other");
  const engine::MadeTransport theirs = require(engine::make_transport(one, {.rank = 1}));
  require(ours.connect({ours.address(), theirs.address(), ""}));
  require(ours.transport->can_reach(1));
  const Status nowhere = ours.transport->can_reach(2);
  REQUIRE(nowhere.what().find("good: not there; other: not there") != std::string_view::npos);
  require(theirs.connect({ours.address(), theirs.address(), ""}));
  require(theirs.transport->can_reach(0));
}

TEST_CASE("memory is registered with all transports of a rank") {
  const TransportKind* const both[] = {&good, &other};
  const engine::MadeTransport made = require(engine::make_transport(both, {.rank = 0}));
  const std::byte bytes[3] = {};
  const RegisteredMemory memory = {bytes, 3, true};
  made.transport->register_memory(memory);
  REQUIRE(Fake::registered == std::vector(2, std::pair(std::string("rank 0"), memory)));
  made.transport->deregister_memory(memory);
  REQUIRE(Fake::registered.empty());
}

TEST_CASE("memory of a device is registered with the one transport that reaches all peers") {
  const TransportKind* const both[] = {&good, &other};
  const engine::MadeTransport made = require(engine::make_transport(both, {.rank = 0}));
  const std::string first = engine::list_item("good", "a") + engine::list_item("other", "b");
  const std::string second = engine::list_item("other", "c");
  require(made.connect({made.address(), first, second, "", first}));
  const std::byte bytes[3] = {};
  const RegisteredMemory memory = {bytes, 3, true};
  const auto add = [&](std::vector<std::uint32_t> peers) {
    return made.transport->register_device_memory(memory, 7, peers);
  };
  for (const auto& peers : {std::vector<std::uint32_t>{1, 4}, {2}}) {
    require(add(peers));
    REQUIRE(Fake::registered.size() == 1);
    made.transport->deregister_memory(memory);
    REQUIRE(Fake::registered.empty());
  }
  require(add({}));
  REQUIRE(add({1, 2, 4}).what() == "several transports are used at once");
  REQUIRE(add({1, 3}).code() == StatusCode::unsupported);
  Fake::refuses = 4;
  REQUIRE(add({1, 4}).what() == "not this memory");
  Fake::refuses = UINT32_MAX;
  REQUIRE(Fake::registered.empty());
}

TEST_CASE("addresses of any bytes are found in a list, and nothing in what is none") {
  const std::string odd("a 3 \0,\n", 7);
  const std::string list = engine::list_item("first", odd) + engine::list_item("second", "");
  REQUIRE(engine::address_in(list, "first") == odd);
  REQUIRE(engine::address_in(list, "second").empty());
  for (std::size_t i = 0; i < list.size(); ++i) {
    REQUIRE(engine::address_in(std::string_view(list).substr(0, i), "second").empty());
  }
  for (const char* const bad : {"first", "first x y", "first 99 abc", "first -1 abc", " "}) {
    REQUIRE(engine::address_in(bad, "first").empty());
  }
}

}  // namespace hocket::testing
