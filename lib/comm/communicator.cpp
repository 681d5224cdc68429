#include "hocket/communicator.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "comm/context.hpp"
#include "comm/group.hpp"
#include "comm/kinds.hpp"

namespace hocket::inline v0 {
namespace {

/// The place of a rank among these, which are of so many; -1: it is none of them.
Result<int> place_among(std::span<const int> ranks, int own_rank, std::size_t size) {
  int place = -1;
  std::vector<bool> is_named(size);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(ranks[i]);
    if (rank >= is_named.size() || is_named[rank]) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("subgroup: rank {} is {}", ranks[i],
                                rank >= size ? "none of this communicator" : "named twice"));
    }
    is_named[rank] = true;
    if (ranks[i] == own_rank) place = static_cast<int>(i);
  }
  return place;
}

}  // namespace

std::string_view name(CollectiveKind kind) noexcept {
  return comm::is_known(kind) ? plan::name(comm::operation_of(kind)) : "unknown";
}

Communicator::Communicator() noexcept = default;
Communicator::Communicator(std::shared_ptr<comm::Group> group) noexcept
    : group_(std::move(group)) {}
Communicator::Communicator(const Communicator&) noexcept = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(const Communicator&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return static_cast<int>(group_->place().rank); }
int Communicator::size() const { return static_cast<int>(group_->place().size); }

std::string_view Communicator::transport() const { return group_->context().transport; }

Received Communicator::sendrecv(const Message& sent, const Message& received) {
  Work receiving = start(received);
  run(sent);
  receiving.wait();
  return receiving.received();
}

void Communicator::monitored_barrier(std::optional<std::chrono::nanoseconds> timeout) {
  group_->check_process();
  Status status = group_->monitored_barrier(timeout);
  if (!status.ok()) throw_error(std::move(status));
}

void Communicator::abort(std::string_view reason) noexcept {
  if (group_ != nullptr && !group_->is_inherited()) group_->abort(reason);
}

Communicator Communicator::split(int color, int key) {
  group_->check_process();
  return Communicator(value_of(group_->split(color, key), "split"));
}

Communicator Communicator::subgroup(std::span<const int> ranks) {
  group_->check_process();
  const auto among = group_->core().guarded(
      "subgroup", [&] { return place_among(ranks, rank(), group_->place().size); });
  if (!among.ok()) throw_error(among.status());
  const int place = *among;
  return Communicator(value_of(group_->split(place < 0 ? -1 : 0, place), "subgroup"));
}

Communicator Communicator::dup() {
  group_->check_process();
  return Communicator(value_of(group_->split(0, rank()), "dup"));
}

Communicator join(const JoinOptions& options) {
  return as_errors([&] {
    const auto context = value_of(comm::make_context(options), "join");
    const world::World& world = context->world;
    return Communicator(
        comm::make_group(context,
                         comm::Membership::of_world(static_cast<std::uint32_t>(world.rank),
                                                    static_cast<std::uint32_t>(world.size)),
                         options.operation_timeout));
  });
}

}  // namespace hocket::inline v0
