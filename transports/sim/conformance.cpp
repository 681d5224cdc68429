// The simulated fabric in the conformance suite: as a calm world, and as wild ones.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hocket/transport.hpp"

#include "conformance/transport_conformance.hpp"
#include "support/catch.hpp"
#include "transports/sim/world.hpp"

namespace hocket::testing {
namespace {

/// The suite sends small messages that nobody receives yet, and waits for their sends.
[[nodiscard]] SimProfile buffering(SimProfile profile) noexcept {
  profile.buffer_bytes = 64 << 10;
  profile.buffer_chance = 1;
  return profile;
}

class SimNet final : public TransportNet {
 public:
  explicit SimNet(bool is_wild) noexcept : is_wild_(is_wild) {}

  ~SimNet() override {
    for (const auto& world : worlds_) check(*world);
  }

  /// A world ends where its first rank comes again.
  [[nodiscard]] std::unique_ptr<Transport> make(TransportOptions options) override {
    if (worlds_.empty() || options.rank == 0) {
      const std::uint64_t seed = ++seeds_;
      const SimProfile profile = is_wild_ ? wild_profile(seed) : SimProfile();
      worlds_.push_back(std::make_unique<SimWorld>(
          SimWorldOptions{.size = options.size, .seed = seed, .profile = buffering(profile)}));
    }
    return worlds_.back()->transport(options.rank, options.epoch);
  }

  void pass_time() override { worlds_.back()->step(); }

 private:
  static void check(const SimWorld& world) {
    INFO(world.story());
    CHECK(world.violation().empty());
  }

  inline static std::uint64_t seeds_ = 0;  // other worlds in each test, and the same in each run

  bool is_wild_;
  std::vector<std::unique_ptr<SimWorld>> worlds_;
};

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  static const std::array<TransportSubject, 2> subjects = {{
      {.name = "Calm",
       .make_net = []() -> std::unique_ptr<TransportNet> {
         return std::make_unique<SimNet>(false);
       },
       .crosses_processes = false},
      {.name = "Wild",
       .make_net = []() -> std::unique_ptr<TransportNet> { return std::make_unique<SimNet>(true); },
       .crosses_processes = false},
  }};
  return subjects;
}

}  // namespace hocket::testing
