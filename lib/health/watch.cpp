#include "health/watch.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "health/hello.hpp"
#include "health/report.hpp"

namespace hocket::health {
namespace {

using namespace std::chrono_literals;

constexpr int beats_in_timeout = 8;
constexpr Duration redial_pause_min = 5ms;
constexpr Duration redial_pause_max = 1s;
constexpr Duration memory_pause = 10ms;  // while there is no memory
/// Of a rank that takes a connection and says nothing: it may still be starting.
constexpr Duration greeting_silence_max = limits::handshake_timeout + 1s;

constexpr std::string_view cut_off_hint =
    "check what drops packets to its host, such as a firewall or a route";

/// The first byte of each message.
enum class Message : char {
  beat = 'b',
  call = 'c',      // whoever hears it gives a sign of life
  notice = 'n',    // what a rank has noticed, or passes on
  decision = 'v',  // the cause, as a rank has decided it
  question = 'q',
  line_ends = 'e',  // and not the process
  leaving = 'l',
};

std::string message_of(Message kind, std::string_view content = {}) {
  std::string message(1, static_cast<char>(kind));
  message += content;
  return message;
}

/// What all ranks there have in common.
std::string host_of(const Watch::Peer& peer) { return peer.addresses.front().endpoint().host; }

}  // namespace

Watch::Watch(const MonitorOptions& options, link::Reactor& reactor, const link::Terms& terms,
             WatchedGroups& wards, std::string instance, std::vector<Fd> listeners)
    : options_(options),
      reactor_(reactor),
      terms_(terms),
      groups_(wards),
      instance_(std::move(instance)),
      beat_(options.failure_timeout / beats_in_timeout),
      contacts_(options.size),
      tick_timer_(reactor.io()),
      silence_elsewhere_(beat_, monotonic_clock().now()),
      story_(options.rank, options.size, wards, *this) {
  for (Fd& each : listeners) {
    hosts_.push_back(net::local_address(each.get()).endpoint().host);
    doors_.push_back(
        std::make_unique<link::Door>(reactor, std::move(each), terms, line_words, *this));
  }
}

void Watch::open() {
  for (const auto& each : doors_) each->open();
}

// --- lines ---

/// Each pair dials once: who has the other a power of two ahead; if both have, the lower.
bool Watch::dials(std::uint32_t other) const noexcept {
  const std::uint32_t ahead = (other + options_.size - options_.rank) % options_.size;
  const bool is_ahead = std::has_single_bit(ahead);
  const bool is_behind = std::has_single_bit(options_.size - ahead);
  return is_ahead && (!is_behind || options_.rank < other);
}

bool Watch::is_dialled_by(std::uint32_t other) const noexcept {
  const std::uint32_t behind = (options_.rank + options_.size - other) % options_.size;
  return other != options_.rank && std::has_single_bit(behind) && !dials(other);
}

Watch::Neighbours Watch::neighbours() const noexcept {
  Neighbours nearest;
  const auto add_nearest = [&](const auto& rank_at) {
    for (std::uint32_t distance = 1; distance < options_.size; distance *= 2) {
      const std::uint32_t rank = rank_at(distance);
      if (contacts_[rank].state != State::here) continue;
      return nearest.add(rank);
    }
  };
  const std::uint32_t size = options_.size;
  add_nearest([&](std::uint32_t distance) { return (options_.rank + distance) % size; });
  add_nearest([&](std::uint32_t distance) { return (options_.rank + size - distance) % size; });
  return nearest;
}

std::optional<Watch::Place> Watch::find(const link::Line& line) const {
  const auto found = places_.find(&line);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::string Watch::name_of(std::uint32_t rank) const {
  const std::string& process = contacts_[rank].peer.process;
  return process.empty() ? fmt::format("rank {}", rank)
                         : fmt::format("rank {} ({})", rank, process);
}

void Watch::connect(std::vector<Peer> peers) {
  if (is_closed_) return;
  const auto is_ours = [&](const net::Address& address) {
    return std::ranges::find(hosts_, address.endpoint().host) != hosts_.end();
  };
  const Instant now = monotonic_clock().now();
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    Contact& contact = contacts_[rank];
    contact.peer = std::move(peers[rank]);
    contact.is_elsewhere =
        rank != options_.rank && std::ranges::none_of(contact.peer.addresses, is_ours);
    if (rank == options_.rank || !dials(rank)) continue;
    contact.silence.emplace(beat_, now);
    contact.ways.resize(contact.peer.addresses.size());
    for (Way& each : contact.ways) each.next_dial = Deadline(now);
  }
  tick();
}

Instant Watch::dial_those_due(Instant now) {
  Instant next = Instant::max();
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    Contact& contact = contacts_[rank];
    if (contact.state != State::here) continue;
    for (std::uint32_t way = 0; way < contact.ways.size(); ++way) {
      if (contact.ways[way].next_dial.passed(now)) dial({rank, way}, now);
      next = std::min(next, contact.ways[way].next_dial.at());
    }
  }
  return next;
}

void Watch::dial(const Place& place, Instant now) {
  Contact& contact = contacts_[place.rank];
  Way& way = contact.ways[place.way];
  way.next_dial = Deadline(now + redial_pause_max);  // whatever goes wrong below
  const Hello hello = {.epoch = options_.epoch,
                       .size = options_.size,
                       .rank = options_.rank,
                       .way = place.way,
                       .instance = contact.peer.instance};
  auto line = link::Line::dial(reactor_, contact.peer.addresses[place.way], {}, terms_, line_words,
                               hello.encode(), *this);
  if (!line.ok()) return dial_again(place, line.status());
  try {
    places_[line->get()] = place;
  } catch (const std::bad_alloc&) {
    (*line)->close();  // the reactor has it as well, and would tell us of its end, perhaps too late
    throw;
  }
  way.line = std::move(*line);
  way.ends_alone = way.is_known_there = false;
  way.next_dial = Deadline::never();
}

void Watch::dial_again(const Place& place, const Status& why) {
  Contact& contact = contacts_[place.rank];
  Way& way = contact.ways[place.way];
  way.line.reset();
  log::line(log::Level::debug, "health: {} can't be reached at {}: {}", name_of(place.rank),
            contact.peer.addresses[place.way].endpoint().to_string(), why.to_string());
  // Nobody listens there any more, or another process: the rank has left. Who needs it finds out.
  const bool is_final = why.code() == StatusCode::not_found || why.code() == StatusCode::mismatch ||
                        why.code() == StatusCode::permission_denied;
  way.next_dial = Deadline::never();
  if (is_final) {
    if (std::ranges::all_of(contact.ways, &Way::is_over)) contact.state = State::left;
    return;
  }
  way.pause = std::clamp(2 * way.pause, redial_pause_min, redial_pause_max);
  way.next_dial = Deadline(monotonic_clock().now() + way.pause);
}

Result<std::string> Watch::on_hello(link::Line& line, std::string_view bytes) {
  const Hello hello = Hello::decode(bytes);
  Welcome welcome = Welcome::welcome;
  if (hello.version != line_version) {
    welcome = Welcome::version_differs;
  } else if (hello.instance != instance_ || hello.epoch != options_.epoch ||
             hello.size != options_.size || hello.rank >= options_.size) {
    welcome = Welcome::other_world;
  } else if (!is_dialled_by(hello.rank) || hello.way >= doors_.size() ||
             contacts_[hello.rank].state != State::here) {
    welcome = Welcome::not_awaited;
  }
  std::string answer(1, static_cast<char>(welcome));
  if (welcome != Welcome::welcome) return answer;  // who dialled ends it
  Contact& contact = contacts_[hello.rank];
  contact.ways.resize(doors_.size());
  Way& way = contact.ways[hello.way];
  if (way.line != nullptr) {  // of an attempt that was given up
    places_.erase(way.line.get());
    way.line->close();
  }
  for (const auto& each : doors_) {
    if (auto admitted = each->admit(line)) way.line = std::move(admitted);
  }
  if (way.line == nullptr) return Status(StatusCode::internal, "a line of no door");
  places_[way.line.get()] = {hello.rank, hello.way};
  way.ends_alone = way.is_known_there = false;
  make_ready({hello.rank, hello.way});
  return answer;
}

Status Watch::on_answer(link::Line& line, std::string_view answer) {
  if (Status status = check_answer(answer); !status.ok()) return status;
  if (const auto place = find(line)) {
    contacts_[place->rank].ways[place->way].is_known_there = true;
    line.send(message_of(Message::beat));  // so that the other end knows it as well
    make_ready(*place);
  }
  return {};
}

void Watch::make_ready(const Place& place) {
  Contact& contact = contacts_[place.rank];
  contact.ways[place.way].pause = Duration::zero();
  contact.was_ready = true;
  contact.silence.emplace(beat_, monotonic_clock().now());
  const std::shared_ptr<link::Line> line = contact.ways[place.way].line;
  for (const Notice& each : story_.causes()) {
    line->send(message_of(Message::decision, encode(each)));
  }
  for (const Notice& each : story_.told()) line->send(message_of(Message::notice, encode(each)));
  tick();  // the other end expects signs of life from now on
}

/// Without memory for the last word, the connection ends without it.
void Watch::hang_up(Contact& contact, std::string_view last_word) noexcept {
  for (Way& each : contact.ways) {
    each.next_dial = Deadline::never();
    const std::shared_ptr<link::Line> line = std::exchange(each.line, nullptr);
    if (line == nullptr) continue;
    places_.erase(line.get());
    static_cast<void>(described([&] {
      if (!last_word.empty()) line->send(last_word);
      return Status();
    }));
    line->close();
  }
}

/// That a process has ended is seen on all its lines; that a network is broken, on some.
void Watch::on_end(link::Line& line, const Status& why) {
  const auto place = find(line);
  if (!place) {
    for (const auto& each : doors_) each->forget(line);
    return;
  }
  Contact& contact = contacts_[place->rank];
  Way& way = contact.ways[place->way];
  const int error = why.system_error();
  const bool was_ready = line.is_ready();
  const bool is_theirs =
      why.code() == StatusCode::peer_lost && (error == 0 || error == ECONNRESET || error == EPIPE);
  // It is our end that can't go on: to the other it would look as if we had died.
  if (was_ready && !is_theirs) line.send(message_of(Message::line_ends));
  const bool is_death = was_ready && is_theirs && way.is_known_there && !way.ends_alone;
  places_.erase(&line);
  way.line.reset();
  const bool has_other = std::ranges::any_of(contact.ways, &Way::is_ready);
  if (is_death && !has_other) return note_death(place->rank, why);
  // That rank may have left: as if it had not dialled yet.
  if (was_ready && !way.is_known_there && !has_other) contact.silence.reset();
  if (dials(place->rank)) dial_again(*place, why);
  tick();
}

void Watch::on_message(link::Line& line, std::string_view message) {
  const auto place = find(line);
  if (!place || message.empty()) return;
  const std::uint32_t rank = place->rank;
  Contact& contact = contacts_[rank];
  const Instant now = monotonic_clock().now();
  contact.ways[place->way].is_known_there = true;
  if (contact.silence) contact.silence->hear(now);
  if (contact.is_elsewhere) silence_elsewhere_.hear(now);
  const std::string_view content = message.substr(1);
  const auto kind = static_cast<Message>(message.front());
  if (kind == Message::notice || kind == Message::decision) {
    auto notice = decode_notice(content);
    if (!notice.ok()) {
      return log::line(log::Level::warning, "health: {}: {}", name_of(rank),
                       notice.status().to_string());
    }
    if (is_local_failure(notice->code)) notice->code = StatusCode::aborted;
    if (kind == Message::notice) return take_notice(*notice, rank);
    if (is_closed_) return;
    story_.take_decision(*notice, rank, now);
    return tick();  // which may have nothing to wait for now
  }
  if (kind == Message::question) {
    const auto question = decode_question(content);
    if (question.ok() && question->to < options_.size) ask(*question);
    return;
  }
  if (kind == Message::call) line.send(message_of(Message::beat));
  if (kind == Message::line_ends) contact.ways[place->way].ends_alone = true;
  if (kind != Message::leaving) return;
  contact.state = State::left;
  hang_up(contact, {});
  tick();  // it may have been the one who decides
}

// --- time ---

/// Also when memory runs out meanwhile: a watch that stood still would never be noticed.
void Watch::tick() {
  if (is_closed_) return;
  const Instant now = monotonic_clock().now();
  Instant next = now + memory_pause;
  const Status status = described([&] {
    next = work_until(now);
    return Status();
  });
  if (!status.ok()) log::line(log::Level::warning, "health: {}", status.to_string());
  if (next != Instant::max()) arm_ticks(next);
}

/// Does what is due. Gives when more is.
Instant Watch::work_until(Instant now) {
  story_.work(now);
  const Instant next_dial = dial_those_due(now);
  if (beat_ <= Duration::zero()) return std::min(next_dial, story_.due());
  if (next_beat_ <= now) {
    if (next_beat_ != Instant() && now - next_beat_ > beat_) was_late_ = now;
    send_beats();
    call_everybody(now);
    next_beat_ = now + beat_;
  }
  // Last: who is found silent by it has to be looked into.
  const Instant next_look = listen_for_silence(now);
  return std::min({next_dial, next_beat_, next_look, story_.due()});
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
    for (const Way& each : contacts_[rank].ways) {
      if (each.line != nullptr) each.line->send(beat);
    }
  }
}

/// Reports ranks that have been silent for too long. Gives when to look next.
Instant Watch::listen_for_silence(Instant now) {
  Instant next = Instant::max();
  const Duration lasted_elsewhere = silence_elsewhere_.look(now);
  for (const std::uint32_t rank : neighbours()) {
    Contact& contact = contacts_[rank];
    if (!contact.silence) continue;
    const Duration longest = contact.was_ready
                                 ? options_.failure_timeout
                                 : std::max(options_.failure_timeout, greeting_silence_max);
    const Duration lasted = contact.silence->look(now);
    if (lasted < longest) {
      next = std::min(next, now + (longest - lasted));
    } else if (contact.is_elsewhere && is_cut_off(lasted_elsewhere)) {
      note_cut_off(lasted);
    } else {
      note_silence(rank, lasted);
    }
  }
  return next;
}

/// If a neighbour has missed a beat: asks all other hosts for a sign of life.
void Watch::call_everybody(Instant now) {
  const bool misses_one = std::ranges::any_of(neighbours(), [&](std::uint32_t rank) {
    Contact& contact = contacts_[rank];
    return contact.is_elsewhere && contact.silence && contact.silence->look(now) > beat_ * 3 / 2;
  });
  if (!misses_one) return;
  const std::string call = message_of(Message::call);
  for (const auto& [line, place] : places_) {
    const Contact& contact = contacts_[place.rank];
    const Way& way = contact.ways[place.way];
    if (contact.is_elsewhere && way.is_ready()) way.line->send(call);
  }
}

/// Whether it is this rank that has lost the network, and not a neighbour: of several other hosts
/// none is heard. With one other host that can't be told, and that it has failed is more likely.
bool Watch::is_cut_off(Duration silence_elsewhere) const {
  // They were heard last at times up to a beat apart.
  if (silence_elsewhere < options_.failure_timeout * 3 / 4) return false;
  const Contact* first = nullptr;
  for (const Contact& each : contacts_) {
    const bool could_be_heard = each.is_elsewhere && each.was_ready && each.state == State::here;
    if (!could_be_heard) continue;
    if (first == nullptr) first = &each;
    if (host_of(each.peer) != host_of(first->peer)) return true;
  }
  return false;
}

// --- what happened ---

/// Whether this rank has given signs of life all the time, as far as it knows.
bool Watch::was_heard(Instant now) const noexcept {
  const bool is_late = next_beat_ != Instant() && now - next_beat_ > beat_;
  return !is_late && now - was_late_ > options_.failure_timeout;
}

Notice Watch::notice_of(Finding finding, std::uint32_t culprit) const {
  return {
      .finding = finding, .origin = options_.rank, .culprit = culprit, .time = universal_time()};
}

void Watch::note_silence(std::uint32_t rank, Duration lasted) {
  Notice notice = notice_of(Finding::silence, rank);
  notice.what = fmt::format("{} is lost: no sign of life for {}", name_of(rank),
                            format_duration(std::chrono::round<std::chrono::milliseconds>(lasted)));
  notice.hint =
      "check that its process is not stopped, and that its host is up and reachable; set "
      "HOCKET_FAILURE_TIMEOUT higher to wait longer";
  take_notice(notice, {});
}

void Watch::note_cut_off(Duration lasted) {
  Notice notice = notice_of(Finding::cut_off, options_.rank);
  notice.what = fmt::format("{} receives nothing from other hosts: no sign of life for {}",
                            name_of(options_.rank),
                            format_duration(std::chrono::round<std::chrono::milliseconds>(lasted)));
  notice.hint =
      "check what drops packets to its host, such as a firewall or a route, and whether all other "
      "hosts are down";
  take_notice(notice, {});
  cut_lines();
}

void Watch::note_death(std::uint32_t rank, const Status& why) {
  Notice notice = story_.death_of(rank, universal_time());
  notice.what =
      fmt::format("{} has died{}: {}", name_of(rank),
                  why.system_error() == ECONNRESET ? ", or lost its network" : "", why.what());
  notice.hint = "see its own output and the system's log of its host for why its process ended";
  take_notice(notice, {});
}

void Watch::note(Notice notice) {
  // The text begins with "rank N"; adds the process, which is what people look for.
  const std::string rank = fmt::format("rank {} ", notice.culprit);
  if (notice.culprit < options_.size && notice.what.starts_with(rank)) {
    notice.what.replace(0, rank.size() - 1, name_of(notice.culprit));
  }
  take_notice(notice, {});
}

/// In this order: if this process is stopped meanwhile, the others know what this rank has seen.
void Watch::note_and_end(const Notice& notice) {
  static_cast<void>(described([&] {  // without memory for it, the others are told by the channels
    note(notice);
    return Status();
  }));
  groups_.end(notice.communicator, notice.status());
}

void Watch::mention(std::uint32_t rank, const std::string& operation) {
  if (is_closed_) return;
  story_.mention(rank, operation, monotonic_clock().now(), universal_time());
  tick();
}

void Watch::take_notice(const Notice& notice, std::optional<std::uint32_t> from) {
  const Instant now = monotonic_clock().now();
  if (is_closed_ || !story_.take(notice, from, now)) return;
  const bool accuses_us = notice.finding == Finding::silence && notice.culprit == options_.rank &&
                          notice.origin != options_.rank;
  if (accuses_us && was_heard(now)) {
    Notice reply = notice_of(Finding::cut_off, notice.origin);
    reply.what = fmt::format("{} receives nothing: it reported {} as lost, which is alive",
                             name_of(notice.origin), name_of(options_.rank));
    reply.hint = std::string(cut_off_hint);
    story_.take(reply, {}, now);
  }
  tick();  // which has another time to keep now
}

void Watch::spread(const Notice& notice, std::optional<std::uint32_t> except) {
  send_to_all(message_of(Message::notice, encode(notice)), except);
}

void Watch::spread_decision(const Notice& cause, std::optional<std::uint32_t> except) {
  send_to_all(message_of(Message::decision, encode(cause)), except);
}

void Watch::send_to_all(std::string_view message, std::optional<std::uint32_t> except) {
  for (const auto& [line, place] : places_) {
    if (place.rank != except) contacts_[place.rank].ways[place.way].line->send(message);
  }
}

/// By way of ranks that are nearer, half of the distance at least with each.
void Watch::ask(const Question& question) {
  if (is_closed_) return;
  if (question.to == options_.rank) {
    const Status why = groups_.ask(question);
    if (why.ok()) return;
    return note_and_end(
        health::notice_of({.why = why}, question.communicator, options_.rank, universal_time()));
  }
  const std::uint32_t distance = (question.to + options_.size - options_.rank) % options_.size;
  for (std::uint32_t stride = std::bit_floor(distance); stride > 0; stride /= 2) {
    Contact& next = contacts_[(options_.rank + stride) % options_.size];
    const auto way = std::ranges::find_if(next.ways, &Way::is_ready);
    if (way == next.ways.end()) continue;
    question_message_ = static_cast<char>(Message::question);
    encode(question, question_message_);
    return way->line->send(question_message_);
  }
}

/// Of a rank that receives nothing, and so no acknowledgements: what it has sent of late may wait
/// for ever behind what the others have had long ago.
void Watch::cut_lines() noexcept {
  for (Contact& contact : contacts_) {
    for (const Way& each : contact.ways) {
      if (each.line == nullptr) continue;
      places_.erase(each.line.get());
      each.line->reset();
    }
    hang_up(contact, {});
  }
}

void Watch::part_from(std::uint32_t rank) {
  Contact& contact = contacts_[rank];
  contact.state = State::lost;
  hang_up(contact, {});
}

bool Watch::is_here(std::uint32_t rank) const { return contacts_[rank].state == State::here; }

void Watch::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  try {
    tick_timer_.cancel();
  } catch (...) {  // there is nothing to cancel
  }
  for (const auto& each : doors_) each->close();
  for (Contact& each : contacts_) hang_up(each, message_of(Message::leaving));
}

}  // namespace hocket::health
