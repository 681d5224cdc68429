#include "transports/sim/fabric.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hocket::simulated {
namespace {

[[nodiscard]] Status wrong_use(std::uint32_t rank, std::string what) {
  return Status(StatusCode::invalid_argument, std::move(what)).with_rank(static_cast<int>(rank));
}

}  // namespace

Fabric::Fabric(std::uint32_t size, std::uint64_t seed, const SimProfile& profile)
    : profile_(profile), random_(seed), members_(size) {
  for (Member& member : members_) member.lost.resize(size, Loss::none);
  draw_fates();
}

Duration Fabric::draw(const SimSpan& span) noexcept {
  return Duration(random_.between(static_cast<std::uint64_t>(span.least.count()),
                                  static_cast<std::uint64_t>(span.most.count())));
}

void Fabric::note(Happening what, const End& end, std::uint64_t number, std::uint64_t bytes,
                  bool is_send) {
  trace_.add({.at = now(),
              .what = what,
              .is_send = is_send,
              .rank = end.rank,
              .peer = end.peer,
              .lane = end.lane,
              .number = number,
              .bytes = bytes});
}

void Fabric::note(Happening what, std::uint32_t rank, std::uint32_t peer, std::uint64_t number,
                  std::uint64_t bytes) {
  trace_.add(
      {.at = now(), .what = what, .rank = rank, .peer = peer, .number = number, .bytes = bytes});
}

void Fabric::violate(std::uint32_t rank, const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = fmt::format("at {} ns rank {} {}", now().time_since_epoch().count(), rank, what);
}

void Fabric::enter(std::uint32_t rank, std::uint64_t epoch) {
  Member& member = members_[rank];
  if (member.has_entered) violate(rank, "has a second transport");
  member.has_entered = true;
  member.epoch = epoch;
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (!members_[peer].has_entered || members_[peer].epoch == epoch) continue;
    tell_loss(rank, peer, Loss::stranger);
    tell_loss(peer, rank, Loss::stranger);
  }
}

Status Fabric::connect(std::uint32_t rank, std::span<const std::string> addresses) {
  Member& member = members_[rank];
  if (member.is_connected) return wrong_use(rank, "connect() was called before");
  if (addresses.size() != size()) {
    return wrong_use(rank, fmt::format("connect() got {} addresses for a world of {} ranks",
                                       addresses.size(), size()));
  }
  if (Status bad = bad_address(rank, addresses); !bad.ok()) return bad;
  for (const std::string& address : addresses) member.has_address.push_back(!address.empty());
  member.is_connected = true;
  return {};
}

Status Fabric::bad_address(std::uint32_t rank, std::span<const std::string> addresses) const {
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (addresses[peer].empty() || addresses[peer] == fmt::format("sim:{}", peer)) continue;
    return wrong_use(rank, fmt::format("\"{}\" is not the address of rank {} in this world",
                                       addresses[peer], peer))
        .with_peer(static_cast<int>(peer))
        .with_hint("all transports of a simulated world come from one SimWorld");
  }
  return {};
}

Status Fabric::can_reach(std::uint32_t rank, std::uint32_t peer) const {
  const Member& member = members_[rank];
  if (!member.is_connected) return wrong_use(rank, "can_reach() before connect()");
  if (peer >= size()) {
    return wrong_use(rank, fmt::format("no rank {} in a world of {}", peer, size()));
  }
  if (member.has_address[peer]) return {};
  return Status(StatusCode::unsupported,
                fmt::format("rank {} gave no address of the simulated fabric", peer))
      .with_rank(static_cast<int>(rank))
      .with_peer(static_cast<int>(peer));
}

End& Fabric::end_of(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane) {
  auto& here = ends_[{rank, peer, lane}];
  if (here == nullptr) {
    here = std::make_unique<End>(End{.rank = rank, .peer = peer, .lane = lane});
    here->other = rank == peer ? here.get() : &end_of(peer, rank, lane);
    here->other->other = here.get();
  }
  return *here;
}

Result<ChannelId> Fabric::open(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane) {
  if (Status unreachable = can_reach(rank, peer); !unreachable.ok()) return unreachable;
  End& end = end_of(rank, peer, lane);
  if (end.is_open) {
    return wrong_use(rank, fmt::format("lane {} to rank {} is open already", lane, peer));
  }
  end.is_open = true;
  Member& member = members_[rank];
  const auto channel = static_cast<ChannelId>(member.ends.size());
  member.ends.push_back(&end);
  note(Happening::open, end);
  shut_if_closed(end);
  shut_if_closed(*end.other);
  if (const Loss loss = member.lost[peer]; loss != Loss::none) {
    lose(end, loss);
  }
  return channel;
}

bool Fabric::begins(Pause& pause, double chance) {
  if (std::exchange(pause.was_there, false) || !random_.chance(chance)) return false;
  pause = {now() + draw(profile_.pause), true};
  alarm(pause.until);
  return true;
}

std::size_t Fabric::room(std::uint32_t rank, std::size_t ops) {
  Member& member = members_[rank];
  // Whoever has nothing in flight waits for nothing, and could not be told when there is room.
  const std::size_t least = member.in_flight == 0 ? 1 : 0;
  if (now() < member.refusing.until) return std::min(least, ops);
  if (ops <= least || !begins(member.refusing, profile_.refuse_chance)) return ops;
  const std::size_t taken = random_.between(least, ops - 1);
  note(Happening::refuse, rank, 0, ops - taken);
  return taken;
}

bool Fabric::is_wrong(std::uint32_t rank, const TransportOp& op) {
  const auto is_bad = [](const MemoryPart& part) { return part.data == nullptr && part.bytes > 0; };
  if (op.channel >= members_[rank].ends.size()) {
    violate(rank, fmt::format("posts on channel {}, which it has not opened", op.channel));
  } else if (is_bad(op.first) || is_bad(op.rest)) {
    violate(rank, fmt::format("posts an op of {} bytes without memory", op.bytes()));
  } else {
    return false;
  }
  return true;
}

std::size_t Fabric::post(std::uint32_t rank, std::span<const TransportOp> ops) {
  Member& member = members_[rank];
  if (!member.is_alive || ops.empty()) return 0;
  const std::size_t count = room(rank, ops.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (meets_fate(rank, Fate::When::post, member.posted) || is_wrong(rank, ops[i])) return i;
    ++member.posted;
    ++member.in_flight;
    take(*member.ends[ops[i].channel], ops[i]);
  }
  return count;
}

void Fabric::take(End& end, const TransportOp& op) {
  const bool is_send = op.kind == Kind::send;
  BorrowedOp borrowed{
      .memory = {op.first, op.rest}, .token = op.token, .tag = is_send ? op.tag : 0};
  const std::uint64_t number = is_send ? end.sends.end() : end.receives.end();
  note(is_send ? Happening::post_send : Happening::post_recv, end, number, op.bytes());
  if (profile_.is_watching) {
    if (!is_send) borrowed.memory.poison(random_);
    borrowed.print = borrowed.memory.print();
  }
  if (is_send) {
    take_send(end, {.op = borrowed});
  } else {
    take_receive(end, {.op = borrowed, .may_lend = op.may_lend});
  }
}

std::size_t Fabric::poll(std::uint32_t rank, std::span<TransportCompletion> completions) {
  Member& member = members_[rank];
  if (has_nothing_ready(rank)) return 0;
  const std::size_t count = poll_some(rank, completions.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (member.ready.empty() || meets_fate(rank, Fate::When::poll, member.polled)) return i;
    completions[i] = pop_ready(rank, random_.below(member.ready.size()));
    ++member.polled;
    --member.in_flight;
  }
  return count;
}

std::size_t Fabric::poll_some(std::uint32_t rank, std::size_t room) {
  Member& member = members_[rank];
  if (room == 0 || !begins(member.holding, profile_.hold_chance)) return room;
  return random_.below(std::min(room, member.ready.size()) + 1);
}

TransportCompletion Fabric::pop_ready(std::uint32_t rank, std::size_t index) {
  std::vector<Ready>& ready = members_[rank].ready;
  const auto [end, kind] = ready[index];
  auto& queue = end->ready[static_cast<std::size_t>(kind)];
  Finished finished = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) {
    ready[index] = ready.back();
    ready.pop_back();
  }
  check_print(*end, kind, finished.op, finished.number);
  const bool is_ok = finished.completion.status.ok();
  note(is_ok ? Happening::complete : Happening::fail, *end, finished.number,
       finished.completion.bytes, kind == Kind::send);
  return std::move(finished.completion);
}

bool Fabric::has_nothing_ready(std::uint32_t rank) const noexcept {
  const Member& member = members_[rank];
  return !member.is_alive || member.ready.empty() ||
         now() < std::max(member.holding.until, member.stalls_until);
}

void Fabric::give_back(std::uint32_t rank, const std::byte* lent) {
  Member& member = members_[rank];
  if (!member.is_alive) return;
  if (const auto bytes = member.loans.give_back(lent, random_)) {
    note(Happening::give_back, rank, 0, 0, *bytes);
  } else {
    violate(rank, "gives back what it was not lent, or has given back already");
  }
}

bool Fabric::step() {
  if (timeline_.empty()) return false;
  const Event event = timeline_.take_next();
  switch (event.kind) {
    case Event::Kind::nothing:
      break;
    case Event::Kind::buffer:
      on_buffer(*event.end, event.number);
      break;
    case Event::Kind::arrive:
      on_arrive(*event.end, event.number, event.bytes);
      break;
    case Event::Kind::sent:
      if (Send* send = event.end->sends.find(event.number)) send->is_visible = true;
      release(*event.end);
      break;
    case Event::Kind::peer_close:
      lose(*event.end, Loss::closed, event.number);
      break;
    case Event::Kind::peer_lost:
      on_peer_lost(event.rank, event.peer, static_cast<Loss>(event.number));
      break;
    case Event::Kind::fate:
      meet(fates_[event.number]);
      break;
  }
  return true;
}

void Fabric::alarm(Instant at) { timeline_.add(std::max(at, now()), {}); }

}  // namespace hocket::simulated
