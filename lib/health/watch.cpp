#include "health/watch.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "health/hello.hpp"

namespace hocket::health {
namespace {

using namespace std::chrono_literals;

constexpr int beats_in_timeout = 8;
constexpr Duration redial_pause_min = 5ms;
constexpr Duration redial_pause_max = 1s;
/// Of a rank that takes a connection and says nothing: it may still be starting.
constexpr Duration greeting_silence_max = limits::handshake_timeout + 1s;

/// The first byte of each message.
enum class Message : char {
  beat = 'b',
  notice = 'n',   // what a rank has noticed, or passes on
  verdict = 'v',  // what was decided about the receiver
  leaving = 'l',
};

std::string message_of(Message kind, std::string_view content = {}) {
  std::string message(1, static_cast<char>(kind));
  message += content;
  return message;
}

/// What its own system or memory refused a rank: to others it has but given up.
bool concerns_itself_alone(StatusCode code) noexcept {
  return code != StatusCode::peer_lost && code != StatusCode::timeout &&
         code != StatusCode::mismatch && code != StatusCode::limit_exceeded;
}

}  // namespace

Watch::Watch(const MonitorOptions& options, link::Reactor& reactor, const link::Terms& terms,
             Wards& wards, std::string instance, Fd listener)
    : options_(options),
      reactor_(reactor),
      terms_(terms),
      wards_(wards),
      instance_(std::move(instance)),
      beat_(options.failure_timeout / beats_in_timeout),
      contacts_(options.size),
      door_(reactor, std::move(listener), terms, line_words, *this),
      tick_timer_(reactor.io()),
      inquest_timer_(reactor.io()) {}

// --- lines ---

bool Watch::has_line_to(std::uint32_t other) const noexcept {
  const std::uint32_t ahead = (other + options_.size - options_.rank) % options_.size;
  return std::has_single_bit(ahead) || std::has_single_bit(options_.size - ahead);
}

/// Each pair dials once: who has the other a power of two ahead; if both have, the lower.
bool Watch::dials(std::uint32_t other) const noexcept {
  const std::uint32_t ahead = (other + options_.size - options_.rank) % options_.size;
  const bool is_ahead = std::has_single_bit(ahead);
  const bool is_behind = std::has_single_bit(options_.size - ahead);
  return is_ahead && (!is_behind || options_.rank < other);
}

std::vector<std::uint32_t> Watch::neighbours() const {
  std::vector<std::uint32_t> nearest;
  const auto add_nearest = [&](const auto& rank_at) {
    for (std::uint32_t distance = 1; distance < options_.size; distance *= 2) {
      const std::uint32_t rank = rank_at(distance);
      const State state = contacts_[rank].state;
      if (state == State::left || state == State::lost) continue;
      if (nearest.empty() || nearest.front() != rank) nearest.push_back(rank);
      return;
    }
  };
  const std::uint32_t size = options_.size;
  add_nearest([&](std::uint32_t distance) { return (options_.rank + distance) % size; });
  add_nearest([&](std::uint32_t distance) { return (options_.rank + size - distance) % size; });
  return nearest;
}

std::optional<std::uint32_t> Watch::rank_of(const link::Line& line) const {
  const auto found =
      std::ranges::find(contacts_, &line, [](const Contact& each) { return each.line.get(); });
  if (found == contacts_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - contacts_.begin());
}

std::string Watch::name_of(std::uint32_t rank) const {
  const std::string& process = contacts_[rank].peer.process;
  return process.empty() ? fmt::format("rank {}", rank)
                         : fmt::format("rank {} ({})", rank, process);
}

void Watch::connect(std::vector<Peer> peers) {
  if (is_closed_) return;
  is_connected_ = true;
  const Instant now = monotonic_clock().now();
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    contacts_[rank].peer = std::move(peers[rank]);
  }
  next_beat_ = now + beat_;
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    if (rank != options_.rank && dials(rank)) dial(rank, now);
  }
  tick();
}

void Watch::dial(std::uint32_t rank, Instant now) {
  Contact& contact = contacts_[rank];
  const Hello hello = {.epoch = options_.epoch,
                       .size = options_.size,
                       .rank = options_.rank,
                       .instance = contact.peer.instance};
  auto line = link::Line::dial(reactor_, contact.peer.address, {}, terms_, line_words,
                               hello.encode(), *this);
  if (!line.ok()) return dial_again(rank, line.status());
  contact.line = std::move(*line);
  contact.state = State::dialling;
  if (!contact.silence) contact.silence.emplace(beat_, now);
}

void Watch::dial_again(std::uint32_t rank, const Status& why) {
  Contact& contact = contacts_[rank];
  contact.line.reset();
  // Nobody listens there any more, or another process: the rank has left, or never came. Who needs
  // it finds out.
  const bool is_over = why.code() == StatusCode::not_found || why.code() == StatusCode::mismatch ||
                       why.code() == StatusCode::already_exists ||
                       why.code() == StatusCode::permission_denied;
  contact.state = is_over ? State::left : State::resting;
  contact.pause = std::clamp(2 * contact.pause, redial_pause_min, redial_pause_max);
  contact.next_dial = monotonic_clock().now() + contact.pause;
  log::line(log::Level::debug, "health: rank {} can't be reached: {}", rank, why.to_string());
}

Result<std::string> Watch::on_hello(link::Line& line, std::string_view bytes) {
  const Hello hello = Hello::decode(bytes);
  Welcome welcome = Welcome::welcome;
  if (hello.version != line_version) {
    welcome = Welcome::version_differs;
  } else if (hello.instance != instance_ || hello.epoch != options_.epoch ||
             hello.size != options_.size || hello.rank >= options_.size) {
    welcome = Welcome::other_world;
  } else if (hello.rank == options_.rank || contacts_[hello.rank].state != State::apart) {
    welcome = Welcome::not_awaited;
  }
  std::string answer(1, static_cast<char>(welcome));
  if (welcome != Welcome::welcome) return answer;  // who dialled ends it
  Contact& contact = contacts_[hello.rank];
  contact.line = door_.admit(line);
  make_ready(hello.rank);
  return answer;
}

Status Watch::on_answer(link::Line& line, std::string_view answer) {
  if (Status status = check_answer(answer); !status.ok()) return status;
  if (const auto rank = rank_of(line)) make_ready(*rank);
  return {};
}

void Watch::make_ready(std::uint32_t rank) {
  Contact& contact = contacts_[rank];
  contact.state = State::ready;
  contact.silence.emplace(beat_, monotonic_clock().now());
}

void Watch::on_end(link::Line& line, const Status& why) {
  const auto rank = rank_of(line);
  if (!rank) return door_.forget(line);
  Contact& contact = contacts_[*rank];
  if (contact.state == State::dialling) {
    dial_again(*rank, why);
    return tick();
  }
  contact.line.reset();
  if (contact.state != State::ready) return;
  if (why.system_error() == ETIMEDOUT) return note_silence(*rank, options_.failure_timeout);
  note_death(*rank, why);
}

void Watch::on_message(link::Line& line, std::string_view message) {
  const auto rank = rank_of(line);
  if (!rank || message.empty()) return;
  Contact& contact = contacts_[*rank];
  if (contact.silence) contact.silence->hear(monotonic_clock().now());
  const std::string_view content = message.substr(1);
  const auto kind = static_cast<Message>(message.front());
  if (kind == Message::notice || kind == Message::verdict) {
    auto notice = decode_notice(content);
    if (!notice.ok()) {
      return log::line(log::Level::warning, "health: {}: {}", name_of(*rank),
                       notice.status().to_string());
    }
    if (kind == Message::verdict) return take_verdict(*notice);
    if (concerns_itself_alone(notice->code)) notice->code = StatusCode::aborted;
    return take_notice(*notice, &line);
  }
  if (kind != Message::leaving) return;
  contact.state = State::left;
  line.close();
  contact.line.reset();
}

// --- time ---

void Watch::tick() {
  if (is_closed_ || !is_connected_) return;
  const Instant now = monotonic_clock().now();
  Instant next = Instant::max();
  if (beat_ > Duration::zero()) {
    if (next_beat_ <= now) {
      send_beats();
      next_beat_ = now + beat_;
    }
    next = std::min(next_beat_, listen_for_silence(now));
  }
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    Contact& contact = contacts_[rank];
    if (contact.state == State::resting && contact.next_dial <= now) dial(rank, now);
    if (contact.state == State::resting) next = std::min(next, contact.next_dial);
  }
  if (next != Instant::max()) arm_ticks(next);
}

void Watch::arm_ticks(Instant next) {
  tick_timer_.expires_at(next);
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) tick();
  });
}

void Watch::send_beats() {
  const std::string beat = message_of(Message::beat);
  for (const std::uint32_t rank : neighbours()) {
    if (contacts_[rank].line != nullptr) contacts_[rank].line->send(beat);
  }
}

/// When to look next.
Instant Watch::listen_for_silence(Instant now) {
  Instant next = Instant::max();
  for (const std::uint32_t rank : neighbours()) {
    Contact& contact = contacts_[rank];
    const bool is_ready = contact.state == State::ready;
    if (!contact.silence || (!is_ready && contact.state != State::dialling)) continue;
    const Duration longest = is_ready ? options_.failure_timeout
                                      : std::max(options_.failure_timeout, greeting_silence_max);
    const Duration lasted = contact.silence->look(now);
    if (lasted >= longest) {
      note_silence(rank, lasted);
    } else {
      next = std::min(next, now + (longest - lasted));
    }
  }
  return next;
}

// --- what happened ---

Notice Watch::notice_of(Finding finding, std::uint32_t culprit) const {
  return {.finding = finding, .origin = options_.rank, .culprit = culprit, .time = time_of_day()};
}

void Watch::note_silence(std::uint32_t rank, Duration lasted) {
  if (contacts_[rank].state == State::lost) return;
  Notice notice = notice_of(Finding::silence, rank);
  notice.what = fmt::format("{} is lost: it has given no sign of life for {}", name_of(rank),
                            format_duration(std::chrono::round<std::chrono::milliseconds>(lasted)));
  notice.hint =
      "see whether its process is stopped, or its host is down or cut off; "
      "HOCKET_FAILURE_TIMEOUT waits longer";
  take_notice(notice, nullptr);
}

void Watch::note_death(std::uint32_t rank, const Status& why) {
  Notice notice = notice_of(Finding::death, rank);
  notice.what = fmt::format("{} has died: {}", name_of(rank), why.what());
  notice.hint = "see its own output and the system's log of its host for why its process ended";
  take_notice(notice, nullptr);
}

void Watch::take_notice(const Notice& notice, const link::Line* from) {
  const bool is_possible =
      (notice.culprit == nobody || notice.culprit < options_.size) && notice.origin < options_.size;
  if (is_closed_ || !is_possible) return;
  if (!inquest_.add(notice, monotonic_clock().now())) return;
  spread(notice, from);
  const bool accuses_us = notice.finding == Finding::silence && notice.culprit == options_.rank &&
                          notice.origin != options_.rank;
  if (accuses_us) {
    Notice reply = notice_of(Finding::deafness, notice.origin);
    reply.what = fmt::format("{} is cut off: it took {} for lost, which is alive",
                             name_of(notice.origin), name_of(options_.rank));
    reply.hint = "see whether the network lets packets through to its host";
    take_notice(reply, nullptr);
  } else {
    wards_.alarm(notice);
  }
  arm_inquest();
}

void Watch::spread(const Notice& notice, const link::Line* except) {
  const std::string message = message_of(Message::notice, encode(notice));
  for (const Contact& each : contacts_) {
    if (each.line != nullptr && each.line.get() != except) each.line->send(message);
  }
}

void Watch::arm_inquest() {
  if (inquest_.due().is_never()) return;
  inquest_timer_.expires_at(inquest_.due().at());
  inquest_timer_.async_wait([this](const asio::error_code& error) {
    if (!error && !is_closed_) close_inquest();
  });
}

void Watch::close_inquest() {
  const std::vector<Notice> causes = inquest_.close();
  for (const Notice& each : causes) part_from(each);
  wards_.settle(causes);
}

/// The others have decided without us: we were stopped or cut off meanwhile.
void Watch::take_verdict(const Notice& notice) {
  inquest_.settle(notice);
  wards_.settle({&notice, 1});
}

/// Who counts as lost is told so, should it come back, and heard no more.
void Watch::part_from(const Notice& cause) {
  if (cause.finding == Finding::failure || cause.culprit == options_.rank) return;
  Contact& contact = contacts_[cause.culprit];
  contact.state = State::lost;
  const std::shared_ptr<link::Line> line = std::exchange(contact.line, nullptr);
  if (line == nullptr) return;
  line->send(message_of(Message::verdict, encode(cause)));
  line->close();
}

void Watch::close() {
  if (std::exchange(is_closed_, true)) return;
  tick_timer_.cancel();
  inquest_timer_.cancel();
  door_.close();
  for (Contact& each : contacts_) {
    if (each.line == nullptr) continue;
    each.line->send(message_of(Message::leaving));
    each.line->close();
    each.line.reset();
  }
}

}  // namespace hocket::health
