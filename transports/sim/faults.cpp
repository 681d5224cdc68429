// What breaks, and how the ranks learn of it.
#include <algorithm>

#include <fmt/format.h>

#include "transports/sim/fabric.hpp"

namespace hocket::simulated {

void Fabric::draw_fates() {
  const auto draw_one = [&](std::uint32_t rank, std::uint32_t peer) {
    const auto when = static_cast<Fate::When>(random_.below(3));
    fates_.push_back(
        {when, rank, peer, random_.below(std::max<std::uint64_t>(profile_.fault_ops, 1))});
    if (when != Fate::When::time) return;
    const Instant at = now() + draw({Duration{}, profile_.fault_time});
    timeline_.add(at, {.kind = Event::Kind::fate, .number = fates_.size() - 1});
  };
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (random_.chance(profile_.death_chance)) draw_one(rank, rank);
    if (!random_.chance(profile_.cut_chance) || size() == 1) continue;
    draw_one(rank, static_cast<std::uint32_t>((rank + random_.between(1, size() - 1)) % size()));
  }
}

void Fabric::meet(const Fate& fate) {
  if (fate.peer == fate.rank) return kill(fate.rank);
  cut(fate.rank, fate.peer);
}

/// Whether it dies.
bool Fabric::meets_fate(std::uint32_t rank, Fate::When when, std::uint64_t progress) {
  for (const Fate& fate : fates_) {
    if (fate.rank == rank && fate.when == when && fate.progress == progress) meet(fate);
  }
  return !members_[rank].is_alive;
}

void Fabric::kill(std::uint32_t rank) {
  if (!members_[rank].is_alive) return;
  note(Happening::die, rank);
  depart(rank, Loss::died);
}

void Fabric::leave(std::uint32_t rank) {
  if (!members_[rank].is_alive) return;
  note(Happening::leave, rank);
  depart(rank, Loss::left);
}

/// Nothing touches its memory from here on.
void Fabric::depart(std::uint32_t rank, Loss loss) {
  Member& member = members_[rank];
  member.is_alive = false;
  member.ready.clear();
  for (End* const end : member.ends) {
    bool is_gone = false;  // and so are those behind it
    for (std::uint64_t i = end->messages.first(); i < end->messages.end(); ++i) {
      Message& message = *end->messages.find(i);
      message.is_gone = is_gone |= !message.is_copied;
    }
    end->sends.clear();
    end->receives.clear();
    for (auto& queue : end->ready) queue.clear();
  }
  for (std::uint32_t peer = 0; peer < size(); ++peer) tell_loss(peer, rank, loss);
}

void Fabric::tell_loss(std::uint32_t rank, std::uint32_t peer, Loss loss) {
  if (!members_[rank].is_alive) return;
  const Duration delay = draw(loss == Loss::left ? profile_.latency : profile_.detection);
  timeline_.add(now() + delay, {.kind = Event::Kind::peer_lost,
                                .rank = rank,
                                .peer = peer,
                                .number = static_cast<std::uint64_t>(loss)});
}

void Fabric::cut(std::uint32_t rank, std::uint32_t peer) {
  if (!cuts_.insert(std::minmax(rank, peer)).second) return;
  note(Happening::cut, rank, peer);
  tell_loss(rank, peer, Loss::cut);
  tell_loss(peer, rank, Loss::cut);
}

bool Fabric::is_stranger(const End& end) const {
  return members_[end.rank].epoch != members_[end.peer].epoch;
}

bool Fabric::is_cut(const End& end) const {
  if (is_stranger(end)) return true;
  return !cuts_.empty() && cuts_.contains(std::minmax(end.rank, end.peer));
}

void Fabric::stall(std::uint32_t rank, Duration duration) {
  note(Happening::stall, rank);
  members_[rank].stalls_until = std::max(members_[rank].stalls_until, now() + duration);
  alarm(members_[rank].stalls_until);
}

Status Fabric::loss_status(const End& end, Loss loss, std::uint64_t reason) {
  constexpr std::string_view hint = "it is a simulated world: SimWorld::story() says what happened";
  if (loss == Loss::closed) {
    return closed_by_peer(end.peer, reason)
        .with_rank(static_cast<int>(end.rank))
        .with_hint(std::string(hint));
  }
  const char* const what = loss == Loss::died   ? "is dead"
                           : loss == Loss::left ? "has left"
                           : loss == Loss::cut  ? "is cut off"
                                                : "is of another epoch";
  return Status(StatusCode::peer_lost,
                fmt::format("lane {} to rank {}: rank {} {}", end.lane, end.peer, end.peer, what))
      .with_rank(static_cast<int>(end.rank))
      .with_peer(static_cast<int>(end.peer))
      .with_hint(std::string(hint));
}

void Fabric::on_peer_lost(std::uint32_t rank, std::uint32_t peer, Loss loss) {
  Member& member = members_[rank];
  if (!member.is_alive || member.lost[peer] >= loss) return;
  member.lost[peer] = loss;
  note(Happening::lose, rank, peer);
  for (End* const end : member.ends) {
    if (end->peer == peer) lose(*end, loss);
  }
}

/// The other end is gone. Messages that need no sender any more still come; a dead one may take
/// them with it, and a broken link brings nothing.
void Fabric::lose(End& end, Loss loss, std::uint64_t reason) {
  if (!members_[end.rank].is_alive) return;
  if (end.lost.ok()) end.lost = loss_status(end, loss, reason);
  const bool is_coming = loss == Loss::died ? random_.chance(0.5) : loss < Loss::cut;
  Sequence<Message>& messages = end.other->messages;
  std::uint64_t count = messages.first();
  for (; is_coming && count < messages.end(); ++count) {
    const Message& next = *messages.find(count);
    if (next.is_gone || !next.is_copied) break;
  }
  end.messages_max = std::min(end.messages_max, count);
  fail_sends(end, end.lost);
  fail_receives(end, end.lost);
  release(end);
}

/// From the first on that is not done.
void Fabric::fail_sends(End& end, const Status& why) {
  bool is_failing = false;
  for (std::uint64_t i = end.sends.first(); i < end.sends.end(); ++i) {
    Send& send = *end.sends.find(i);
    is_failing |= !send.is_done;
    if (!is_failing || !send.failure.ok()) continue;
    send.failure = why;
    if (Message* message = end.messages.find(i)) message->is_gone = true;
  }
}

/// Those that can get no message any more.
void Fabric::fail_receives(End& end, const Status& why) {
  for (std::uint64_t i = end.receives.first(); i < end.receives.end(); ++i) {
    Receive& receive = *end.receives.find(i);
    if (i < end.messages_max || receive.is_done || !receive.failure.ok()) continue;
    receive.failure = why;
    if (end.failure.ok()) end.failure = why;
  }
}

void Fabric::close(std::uint32_t rank, ChannelId channel, const Status& reason) {
  Member& member = members_[rank];
  if (!member.is_alive) return;
  if (channel >= member.ends.size()) {
    return violate(rank, fmt::format("closes channel {}, which it has not opened", channel));
  }
  note(Happening::close, *member.ends[channel]);
  shut(*member.ends[channel], reason);
}

void Fabric::close_lanes(std::uint32_t rank, std::uint64_t first, std::uint64_t last,
                         const Status& reason) {
  Member& member = members_[rank];
  if (!member.is_alive) return;
  member.closed.push_back({.first = first, .last = last, .reason = reason});
  for (const auto& [key, end] : ends_) {
    if (end->rank == rank) shut_if_closed(*end);
  }
}

/// If its lane is over, though its rank may never have opened it. Once.
void Fabric::shut_if_closed(End& end) {
  if (end.messages_max == 0 && !end.failure.ok()) return;
  for (const ClosedLanes& closed : members_[end.rank].closed) {
    if (closed.first <= end.lane && end.lane <= closed.last) return shut(end, closed.reason);
  }
}

/// This end does no more, for a reason of its own.
void Fabric::shut(End& end, const Status& reason) {
  if (end.failure.ok()) {
    Status why = reason;
    end.failure =
        std::move(why).with_rank(static_cast<int>(end.rank)).with_peer(static_cast<int>(end.peer));
  }
  end.messages_max = 0;
  fail_sends(end, end.failure);
  fail_receives(end, end.failure);
  release(end);
  if (!members_[end.peer].is_alive) return;
  timeline_.add(now() + draw(profile_.latency),
                {.kind = Event::Kind::peer_close, .end = end.other, .number = pack_reason(reason)});
}

}  // namespace hocket::simulated
