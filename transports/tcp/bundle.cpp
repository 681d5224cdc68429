#include "transports/tcp/bundle.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "transports/common/failures.hpp"

namespace hocket::tcp {
namespace {

/// In ticks: 2 s.
constexpr int silence_max = 8;
/// The pieces of what is not longer go wherever there is room.
constexpr std::uint64_t small_bytes_max = 16 << 10;
constexpr std::uint64_t pieces_max = limits::bundle_bytes_max / frame_header_bytes;
constexpr std::uint64_t complete = ~std::uint64_t{0};

}  // namespace

Bundle::Bundle(ChannelId of, Queues& queues, std::size_t rails, common::Poller& poller)
    : channel(of), queues_(queues), poller_(poller) {
  for (std::size_t i = 0; i < rails; ++i) rails_.push_back(std::make_unique<Rail>(*this, queues));
}

bool Bundle::is_linked() const noexcept {
  return std::ranges::any_of(rails_, [](const auto& rail) { return rail->is_linked(); });
}

Status Bundle::adopt(std::size_t rail, link::Link link) {
  if (!end_.ok()) return {};
  rails_[rail]->is_out = false;
  was_linked_ = true;
  rails_[rail]->adopt(std::move(link));
  return poller_.add(rails_[rail]->socket(), *rails_[rail]);
}

Status Bundle::give_up(std::size_t rail, const Status& why) {
  rails_[rail]->is_out = true;
  const auto left = std::ranges::count_if(rails_, [](const auto& each) { return !each->is_out; });
  if (left == 0) return end_.ok() ? why : end_;
  log::line(log::Level::warning, "rank {} is reached with a connection less, over {} other{}: {}",
            queues_.peer, left, left == 1 ? "" : "s", why.to_string());
  return {};
}

// --- turns ---

bool Bundle::is_ready() const noexcept {
  if (is_due) return true;
  return std::ranges::any_of(rails_, [this](const auto& rail) {
    return rail->is_readable() || (rail->is_writable() && (rail->is_sending() || has_frame(*rail)));
  });
}

Status Bundle::move(Scratch& scratch) {
  is_due = false;
  for (const auto& rail : rails_) rail->begin_turn();
  std::vector<std::pair<std::size_t, Status>> lost;  // behind last words that came on others
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (!rails_[i]->is_readable()) continue;
    Status status = rails_[i]->receive(scratch);
    if (status.code() == StatusCode::peer_lost) {
      lost.emplace_back(i, std::move(status));
    } else if (!status.ok()) {
      return status;
    }
  }
  for (const auto& [number, why] : lost) lose(number, why);
  if (Status status = take_kept(); !status.ok()) return status;
  send();
  if (last_ <= arrived_.begin() && end_.ok()) end();
  return is_over() ? end_ : Status();
}

bool Bundle::has_moved() const noexcept {
  return std::ranges::any_of(rails_, [](const auto& rail) { return rail->has_moved(); });
}

/// What came before the end is received before the end is known.
bool Bundle::is_over() const {
  if (end_.ok()) return false;
  const bool has_sends = is_owed() || message_ < queues_.sends.end();
  return has_sends || bytes_of_messages_.begin() < queues_.receives.end() || kept_.empty();
}

/// The other end has gone, and all that it sent has come.
void Bundle::end() {
  leave(Frame::Kind::left, 0, [](Fd&&) {});
  for (const auto& rail : rails_) rail->is_out = true;
  end_ = is_closed_ ? closed_by_peer(queues_.peer, reason_)
                    : common::lost_peer(queues_.peer, "its connection ended");
}

void Bundle::lose(std::size_t number, const Status& why) {
  Rail& rail = *rails_[number];
  poller_.forget(rail, rail.socket());
  static_cast<void>(rail.leave(last_words(Frame::Kind::word)));
  rail.is_out = true;
  last_heard_ = nullptr;
  owes_word_ = true;  // what was said on it may be lost
  spare_none();
  for (std::uint64_t i = pieces_.begin(); i < pieces_.end(); ++i) {
    if (pieces_[i].rail == &rail) again_.insert(i);
  }
  const auto left = std::ranges::count_if(rails_, [](const auto& each) { return !each->is_out; });
  if (left == 0) {
    end_ = is_closed_ ? closed_by_peer(queues_.peer, reason_)
                      : common::lost_peer(queues_.peer, why.what(), why.system_error());
  } else if (std::ranges::none_of(rails_, [](const auto& each) { return each->is_ending; })) {
    untold_.insert(number);
    log::line(log::Level::warning,
              "rank {} is reached without the connection from {} any more: {}; {} pieces go "
              "again over {} other{}",
              queues_.peer, rail.name(), why.what(), again_.size(), left, left == 1 ? "" : "s");
  }
}

void Bundle::tick() {
  is_due = true;
  spare_none();
  const bool is_heard =
      std::ranges::any_of(rails_, [](const auto& each) { return each->has_heard; });
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    Rail& rail = *rails_[i];
    if (!rail.is_linked()) continue;
    if (is_heard) ++rail.silent_ticks;
    if (rail.has_heard || !is_owed()) rail.silent_ticks = 0;
    rail.has_heard = false;
    rail.asks = is_owed();
    if (rail.silent_ticks >= silence_max) {
      lose(i, Status(StatusCode::peer_lost, "nothing came back on it for 2 s"));
    }
  }
}

void Bundle::check_answers(Instant now, Duration limit) {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (!rails_[i]->is_linked() || !rails_[i]->is_unanswered(now, limit)) continue;
    is_due = true;
    lose(i, Status(StatusCode::peer_lost, "its connection broke").with_system_error(ETIMEDOUT));
  }
}

// --- what comes ---

bool Bundle::has(std::uint64_t number) const noexcept {
  return number < arrived_.begin() || (number < arrived_.end() && arrived_[number] != 0);
}

bool Bundle::is_complete(std::uint64_t message) const noexcept {
  const common::Ring<std::uint64_t>& bytes = bytes_of_messages_;
  return message < bytes.begin() || (message < bytes.end() && bytes[message] == complete);
}

Status Bundle::protocol_error(const char* what) const {
  return Status(StatusCode::protocol_error, fmt::format("rank {} sent {}", queues_.peer, what))
      .with_peer(static_cast<int>(queues_.peer))
      .with_hint("is something between that alters the traffic? HOCKET_TLS would tell");
}

Status Bundle::hear(const Frame& frame, Rail& rail) {
  spare_none();
  rail.has_heard = true;
  last_heard_ = &rail;
  if (frame.kind == Frame::Kind::count || frame.arrived > pieces_.end() || frame.taken > given_) {
    return protocol_error("what is no frame where one should begin");
  }
  arrived_there_ = std::max(arrived_there_, frame.arrived);
  taken_there_ = std::max(taken_there_, frame.taken);
  settle();
  if (frame.kind == Frame::Kind::piece) return check(frame);
  rail.owes_answer = rail.owes_answer || frame.kind == Frame::Kind::question;
  rail.is_ending = frame.kind == Frame::Kind::closed || frame.kind == Frame::Kind::left;
  if (frame.kind == Frame::Kind::closed && !std::exchange(is_closed_, true)) reason_ = frame.tag;
  if (rail.is_ending) last_ = frame.number;
  if (frame.kind == Frame::Kind::lost && frame.number < rails_.size() &&
      rails_[frame.number]->is_linked() && rails_[frame.number].get() != &rail) {
    lose(frame.number, Status(StatusCode::peer_lost, "the other end has given it up"));
    untold_.erase(frame.number);
  }
  return {};
}

Status Bundle::check(const Frame& piece) {
  if (has(piece.number)) return {};
  const bool is_possible =
      piece.bytes <= frame_bytes_max && piece.offset <= piece.length &&
      piece.bytes <= piece.length - piece.offset && piece.number - arrived_.begin() <= pieces_max &&
      !is_complete(piece.message) && piece.message - bytes_of_messages_.begin() <= pieces_max;
  if (!is_possible) return protocol_error("a piece of a message that can't be");
  if (piece.message >= queues_.receives.end()) return {};
  return check_length(piece);
}

/// Of a piece whose receive is there.
Status Bundle::check_length(const Frame& piece) {
  Slot& slot = queues_.receives[piece.message];
  slot.header = make_header(piece.length, piece.tag, piece.message);
  if (piece.length <= slot.room()) return {};
  return common::too_long(queues_.peer, piece.length, slot.room());
}

void Bundle::note_arrival(std::uint64_t number) {
  while (arrived_.end() <= number) arrived_.push(0);
  arrived_[number] = 1;
  while (!arrived_.empty() && arrived_.front() != 0) arrived_.pop();
  owes_word_ = true;
}

void Bundle::take(const Frame& piece) {
  if (!has(piece.number)) note_arrival(piece.number);
  owes_word_ = true;
  taken_ += piece.cost();
  common::Ring<std::uint64_t>& bytes = bytes_of_messages_;
  while (bytes.end() <= piece.message) bytes.push(0);
  bytes[piece.message] += piece.bytes;
  if (bytes[piece.message] < piece.length) return;
  bytes[piece.message] = complete;
  Slot& slot = queues_.receives[piece.message];
  slot.bytes = piece.length;
  slot.is_done = true;
  while (!bytes.empty() && bytes.front() == complete) bytes.pop();
}

Status Bundle::keep(const Frame& piece, std::vector<std::byte> bytes) {
  kept_bytes_ += piece.cost();
  if (kept_bytes_ > limits::bundle_bytes_max) return protocol_error("more than it may");
  note_arrival(piece.number);
  kept_[{piece.message, piece.offset}] = {.piece = piece, .bytes = std::move(bytes)};
  return {};
}

Status Bundle::take_kept() {
  while (!kept_.empty() && kept_.begin()->first.first < queues_.receives.end()) {
    const Kept kept = std::move(kept_.extract(kept_.begin()).mapped());
    const Frame& piece = kept.piece;
    kept_bytes_ -= piece.cost();
    if (is_complete(piece.message)) return protocol_error("a piece of a message that is complete");
    Slot& slot = queues_.receives[piece.message];
    if (Status status = check_length(piece); !status.ok()) return status;
    const std::byte* from = kept.bytes.data();
    slot.visit(piece.offset, piece.offset + piece.bytes,
               [&from](std::byte* to, std::uint64_t size) {
                 std::memcpy(to, from, size);
                 from += size;
               });
    take(piece);
  }
  return {};
}

// --- what goes ---

bool Bundle::has_next() const noexcept {
  if (!again_.empty()) return true;
  return message_ < queues_.sends.end() &&
         given_ - taken_there_ + frame_header_bytes + frame_bytes_max <= limits::bundle_bytes_max;
}

std::uint64_t Bundle::next_piece() {
  if (!again_.empty()) return again_.extract(again_.begin()).value();
  const std::uint64_t length = queues_.sends[message_].bytes;
  const std::uint64_t bytes = std::min<std::uint64_t>(frame_bytes_max, length - offset_);
  pieces_.push(
      {.message = message_, .offset = offset_, .bytes = static_cast<std::uint32_t>(bytes)});
  offset_ += bytes;
  given_ += frame_header_bytes + bytes;
  if (offset_ == length) {
    ++message_;
    offset_ = 0;
  }
  return pieces_.end() - 1;
}

/// Whether the next piece would come much sooner on another rail, though it may have to wait there.
bool Bundle::would_delay(const Rail& rail) const noexcept {
  if (!again_.empty() || queues_.sends[message_].bytes <= small_bytes_max) return false;
  double soonest = std::numeric_limits<double>::max();
  for (const auto& each : rails_) {
    if (each->is_linked() && each.get() != &rail) soonest = std::min(soonest, each->piece_time());
  }
  return rail.piece_time() > 1.25 * soonest + 500;
}

void Bundle::spare_none() noexcept {
  for (const auto& rail : rails_) rail->is_spared = false;
}

/// A word goes where something came from last, since that rail is known to live.
bool Bundle::is_last_heard(const Rail& rail) const noexcept {
  return last_heard_ == nullptr || last_heard_ == &rail;
}

bool Bundle::has_frame(const Rail& rail) const noexcept {
  return (has_next() && !rail.is_spared) || !untold_.empty() || rail.asks || rail.owes_answer ||
         (owes_word_ && is_last_heard(rail));
}

bool Bundle::give(Rail& rail) {
  rail.is_spared = rail.is_spared || (has_next() && would_delay(rail));
  if (!has_frame(rail)) return false;
  Frame frame = {.kind = has_next() && !rail.is_spared ? Frame::Kind::piece : Frame::Kind::word};
  if (!untold_.empty()) {
    frame.kind = Frame::Kind::lost;
    frame.number = untold_.extract(untold_.begin()).value();
  } else if (std::exchange(rail.asks, false)) {
    frame.kind = Frame::Kind::question;
  }
  if (frame.kind == Frame::Kind::piece) {
    frame.number = next_piece();
    Piece& piece = pieces_[frame.number];
    piece.rail = &rail;
    frame.bytes = piece.bytes;
    frame.message = piece.message;
    frame.offset = piece.offset;
    frame.length = queues_.sends[piece.message].bytes;
    frame.tag = queues_.sends[piece.message].tag();
  }
  frame.arrived = arrived_.begin();
  frame.taken = taken_;
  if (is_last_heard(rail)) owes_word_ = false;
  rail.owes_answer = false;
  rail.begin(frame);
  return true;
}

void Bundle::send() {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (const auto& rail : rails_) {
      if (!rail->is_writable() || (!rail->is_sending() && !give(*rail))) continue;
      rail->send();
      has_moved = true;
    }
  }
  settle();
}

Frame Bundle::last_words(Frame::Kind how, std::uint64_t reason) const noexcept {
  return {.kind = how,
          .number = pieces_.end(),
          .arrived = arrived_.begin(),
          .taken = taken_,
          .tag = reason};
}

/// A piece that came after all may still be on its way once more, from the memory of its message.
void Bundle::settle() {
  again_.erase(again_.begin(), again_.lower_bound(arrived_there_));
  while (!pieces_.empty() && pieces_.begin() < arrived_there_ &&
         std::ranges::none_of(rails_, [&](const auto& rail) {
           return rail->is_linked() && rail->is_sending(pieces_.begin());
         })) {
    const Piece piece = pieces_.pop();
    Slot& slot = queues_.sends[piece.message];
    if (piece.offset + piece.bytes == slot.bytes) slot.is_done = true;
  }
}

}  // namespace hocket::tcp
