#include "transports/sim/world.hpp"

#include <span>

#include <fmt/format.h>

#include "transports/sim/fabric.hpp"

namespace hocket {
namespace {

using simulated::Fabric;

/// A rank's window to the fabric.
class SimTransport final : public Transport {
 public:
  SimTransport(Fabric& fabric, std::uint32_t rank) noexcept : fabric_(fabric), rank_(rank) {}
  ~SimTransport() override { fabric_.leave(rank_); }

  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return fmt::format("sim:{}", rank_); }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override {
    return fabric_.connect(rank_, addresses);
  }
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override {
    return fabric_.can_reach(rank_, peer);
  }
  [[nodiscard]] Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override {
    return fabric_.open(rank_, peer, lane);
  }
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    return fabric_.post(rank_, ops);
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    return fabric_.poll(rank_, completions);
  }
  void give_back(const std::byte* lent) noexcept override { fabric_.give_back(rank_, lent); }
  [[nodiscard]] int descriptor() const noexcept override { return -1; }
  [[nodiscard]] bool prepare_to_sleep() noexcept override {
    return fabric_.has_nothing_ready(rank_);
  }
  void close(ChannelId channel, const Status& reason) noexcept override {
    fabric_.close(rank_, channel, reason);
  }
  void close_lanes(std::uint64_t first, std::uint64_t last,
                   const Status& reason) noexcept override {
    fabric_.close_lanes(rank_, first, last, reason);
  }

 private:
  Fabric& fabric_;
  std::uint32_t rank_;
  TransportCaps caps_ = {.small_bytes_max = 256, .segment_bytes = 4 << 10};
};

}  // namespace

SimWorld::SimWorld(const SimWorldOptions& options)
    : seed_(options.seed),
      profile_(options.profile),
      fabric_(std::make_unique<Fabric>(options.size, options.seed, options.profile)) {}

SimWorld::~SimWorld() = default;

const Clock& SimWorld::clock() const noexcept { return fabric_->timeline(); }

std::unique_ptr<Transport> SimWorld::transport(std::uint32_t rank, std::uint64_t epoch) {
  fabric_->enter(rank, epoch);
  return std::make_unique<SimTransport>(*fabric_, rank);
}

bool SimWorld::step() { return fabric_->step(); }
void SimWorld::alarm(Instant at) { fabric_->alarm(at); }
void SimWorld::kill(std::uint32_t rank) { fabric_->kill(rank); }
bool SimWorld::is_alive(std::uint32_t rank) const noexcept { return fabric_->is_alive(rank); }
void SimWorld::cut(std::uint32_t rank, std::uint32_t peer) { fabric_->cut(rank, peer); }
void SimWorld::stall(std::uint32_t rank, Duration duration) { fabric_->stall(rank, duration); }

const std::string& SimWorld::violation() const noexcept { return fabric_->violation(); }
std::uint64_t SimWorld::fingerprint() const noexcept { return fabric_->trace().fingerprint(); }
std::size_t SimWorld::loans(std::uint32_t rank) const noexcept { return fabric_->loans(rank); }

std::string SimWorld::story() const {
  return fmt::format("simulated world of {} ranks, seed {} ({})\n{}{}{}", fabric_->size(), seed_,
                     profile_.to_string(), violation(), violation().empty() ? "" : "\n",
                     fabric_->trace().to_string());
}

}  // namespace hocket
