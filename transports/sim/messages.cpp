// Messages on their way.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transports/sim/fabric.hpp"

namespace hocket::simulated {

void Fabric::take_send(End& end, Send send) {
  send.failure = end.failure.ok() ? end.lost : end.failure;
  const bool is_failed = !send.failure.ok();
  const Message message = {.source = send.op.memory, .tag = send.op.tag};
  end.sends.add(std::move(send));
  if (is_failed) return release(end);
  send_off(end, end.sends.end() - 1, message);
  match(end);
}

/// Into the buffer, if it goes there.
void Fabric::send_off(End& end, std::uint64_t number, Message message) {
  const std::uint64_t bytes = message.source.bytes();
  message.uses_buffer = profile_.buffer_bytes > 0 && !is_stranger(end) &&
                        bytes <= profile_.buffer_bytes - end.buffered_bytes &&
                        random_.chance(profile_.buffer_chance);
  if (!message.uses_buffer) {
    end.messages.add(std::move(message));
    return;
  }
  end.buffered_bytes += bytes;
  const bool is_at_once = random_.chance(0.25);
  const Instant leaves = std::max(now(), members_[end.rank].stalls_until) +
                         (is_at_once ? Duration{} : draw(profile_.latency));
  message.here = leaves + draw(profile_.latency);
  end.messages.add(std::move(message));
  if (leaves == now()) return on_buffer(end, number);
  timeline_.add(leaves, {.kind = Event::Kind::buffer, .end = &end, .number = number});
}

void Fabric::on_buffer(End& end, std::uint64_t number) {
  Message* const message = end.messages.find(number);
  Send* const send = end.sends.find(number);
  if (message == nullptr || send == nullptr || message->is_gone) return;
  message->copy.resize(message->source.bytes());
  const Memory kept{{message->copy.data(), message->copy.size()}, {}};
  copy(message->source, kept, 0, kept.bytes());
  message->source = kept;
  message->is_copied = true;
  send->is_done = send->is_visible = true;
  note(Happening::buffer, end, number, kept.bytes());
  release(end);
}

void Fabric::take_receive(End& end, Receive receive) {
  const std::uint64_t number = end.receives.end();
  if (end.failure.ok() && number >= end.messages_max) end.failure = end.lost;
  receive.failure = end.failure;
  const bool is_failed = !receive.failure.ok();
  end.receives.add(std::move(receive));
  if (is_failed) return release(end);
  match(*end.other);
}

/// Begins what has both a message and a receive.
void Fabric::match(End& end) {
  for (;; ++end.matched) {
    const Message* const message = end.messages.find(end.matched);
    const Receive* const receive = end.other->receives.find(end.matched);
    if (message == nullptr || message->is_gone) return;
    if (receive == nullptr || !receive->failure.ok()) return;
    transfer(end, end.matched);
  }
}

void Fabric::transfer(End& end, std::uint64_t number) {
  const Message& message = *end.messages.find(number);
  Receive& receive = *end.other->receives.find(number);
  const std::uint64_t bytes = message.source.bytes();
  Member& receiver = members_[end.peer];
  if (receive.may_lend && bytes > 0 && bytes <= receive.op.memory.bytes() &&
      random_.chance(profile_.lend_chance)) {
    receive.lent = receiver.loans.make(bytes, profile_.loans_max);
  }

  const double speed = profile_.bytes_per_second_min +
                       (profile_.bytes_per_second_max - profile_.bytes_per_second_min) *
                           static_cast<double>(random_.below(1024)) / 1024;
  const auto crossing =
      Duration(static_cast<Duration::rep>(static_cast<double>(bytes) / speed * 1e9));
  Instant begin = std::max({now(), end.last_here, members_[end.rank].stalls_until});
  if (random_.chance(profile_.channel_stall_chance)) begin += draw(profile_.channel_stall);
  if (message.uses_buffer) {
    begin = std::max(begin, message.here);
  } else {
    begin += draw(profile_.latency);
  }
  end.last_here = begin + crossing;

  // Cut at random places, which come at random times, in order.
  const std::uint64_t cuts = std::min(bytes, random_.below(profile_.pieces_max));
  std::vector<std::uint64_t> places;
  for (std::uint64_t i = 0; i < cuts; ++i) places.push_back(random_.below(bytes));
  std::ranges::sort(places);
  for (const std::uint64_t place : places) {
    begin +=
        Duration(random_.between(0, static_cast<std::uint64_t>((end.last_here - begin).count())));
    timeline_.add(begin,
                  {.kind = Event::Kind::arrive, .end = &end, .number = number, .bytes = place});
  }
  timeline_.add(end.last_here,
                {.kind = Event::Kind::arrive, .end = &end, .number = number, .bytes = bytes});
}

void Fabric::on_arrive(End& end, std::uint64_t number, std::uint64_t bytes) {
  Message* const message = end.messages.find(number);
  Receive* const receive = end.other->receives.find(number);
  if (message == nullptr || receive == nullptr) return;
  if (message->is_gone || !receive->failure.ok() || is_cut(end)) return;
  if (message->source.bytes() > receive->op.memory.bytes()) {
    note(Happening::mismatch, *end.other, number, message->source.bytes());
    receive->op.tag = message->tag;
    return shut(
        *end.other,
        Status(StatusCode::mismatch,
               fmt::format("rank {} sent {} bytes on lane {} where {} were expected", end.rank,
                           message->source.bytes(), end.lane, receive->op.memory.bytes())));
  }
  check_print(*end.other, Kind::recv, receive->op, number);
  copy(message->source, receive->target(message->source.bytes()), receive->arrived,
       bytes - receive->arrived);
  receive->arrived = bytes;
  if (profile_.is_watching) receive->op.print = receive->op.memory.print();
  if (bytes == message->source.bytes()) finish_receive(end, number, bytes);
}

/// Of the message that the end sent.
void Fabric::finish_receive(End& end, std::uint64_t number, std::uint64_t bytes) {
  const Message& message = end.messages.front();
  if (message.uses_buffer) end.buffered_bytes -= bytes;
  if (!message.is_copied) {
    end.sends.find(number)->is_done = true;
    timeline_.add(now() + draw(profile_.latency),
                  {.kind = Event::Kind::sent, .end = &end, .number = number});
  }
  Receive& receive = *end.other->receives.find(number);
  receive.op.tag = message.tag;
  receive.is_done = true;
  end.messages.pop();
  note(Happening::arrive, *end.other, number, bytes);
  release(*end.other);
}

void Fabric::check_print(const End& end, Kind kind, const BorrowedOp& op, std::uint64_t number) {
  if (!profile_.is_watching || op.memory.print() == op.print) return;
  violate(end.rank,
          fmt::format("writes to the memory of {} #{} ({} bytes; peer {}, lane {}) while it "
                      "is in flight",
                      kind == Kind::send ? "send" : "receive", number, op.memory.bytes(), end.peer,
                      end.lane));
}

/// Makes completions of the ops that are over, in their order.
void Fabric::release(End& end) {
  for (; !end.sends.empty(); end.sends.pop()) {
    Send& send = end.sends.front();
    if (send.failure.ok() && !send.is_visible) break;
    const std::uint64_t bytes = send.failure.ok() ? send.op.memory.bytes() : 0;
    release_one(end, Kind::send,
                {.completion = {.token = send.op.token,
                                .bytes = bytes,
                                .tag = send.op.tag,
                                .status = std::move(send.failure)},
                 .op = send.op,
                 .number = end.sends.first()});
  }
  for (; !end.receives.empty(); end.receives.pop()) {
    Receive& receive = end.receives.front();
    const std::uint64_t number = end.receives.first();
    if (receive.failure.ok() && !receive.is_done) break;
    if (!receive.failure.ok()) {
      if (receive.lent != nullptr) members_[end.rank].loans.give_back(receive.lent, random_);
      receive.lent = nullptr;
    }
    if (receive.lent != nullptr) note(Happening::lend, end, number, receive.arrived);
    const std::uint64_t bytes = receive.failure.ok() ? receive.arrived : 0;
    release_one(end, Kind::recv,
                {.completion = {.token = receive.op.token,
                                .bytes = bytes,
                                .tag = receive.op.tag,
                                .lent = receive.lent,
                                .status = std::move(receive.failure)},
                 .op = receive.op,
                 .number = number});
  }
}

void Fabric::release_one(End& end, Kind kind, Finished finished) {
  auto& queue = end.ready[static_cast<std::size_t>(kind)];
  if (queue.empty()) members_[end.rank].ready.push_back({&end, kind});
  queue.push_back(std::move(finished));
}

}  // namespace hocket::simulated
