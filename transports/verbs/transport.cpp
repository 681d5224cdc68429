#include "transports/verbs/transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include <poll.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "transports/common/failures.hpp"
#include "transports/verbs/errors.hpp"
#include "transports/verbs/library.hpp"

namespace hocket::verbs {
namespace {

using namespace std::chrono_literals;

/// To the sockets and the system, which have something to say now and then.
constexpr unsigned polls_between_looks = 64;
constexpr std::size_t completions_at_once = 32;
/// In the shared receive queue of each rail.
constexpr std::uint32_t receives_per_rail = 512;
constexpr Duration goodbye_time = 1s;

/// There is one connection to a peer.
common::LinkKey key_of(std::uint32_t peer) noexcept { return {.peer = peer}; }

}  // namespace

// --- before the first message ---

Result<std::unique_ptr<Transport>> VerbsTransport::make(const TransportOptions& options,
                                                        const VerbsOptions& ours) {
  if (options.tls != "off") {
    return Status(StatusCode::unsupported, "verbs don't encrypt, and HOCKET_TLS asks for it")
        .with_hint("HOCKET_TRANSPORT=tcp encrypts");
  }
  raise_open_files_max();
  std::unique_ptr<VerbsTransport> made(new VerbsTransport);
  made->rank_ = options.rank;
  made->connect_timeout_ = options.connect_timeout;
  const std::string hosts[] = {options.host.empty() ? "127.0.0.1" : options.host};
  Status status = made->poller_.open();
  if (status.ok()) status = made->links_.open(options, 1, hosts);
  if (status.ok()) status = made->open_rails(options, ours);
  if (!status.ok()) return status;
  return std::unique_ptr<Transport>(std::move(made));
}

Status VerbsTransport::open_rails(const TransportOptions& options, const VerbsOptions& ours) {
  const auto ports = list_ports();
  if (!ports.ok()) return ports.status();
  const auto chosen = choose_ports(
      *ports, {.devices = ours.devices, .gid_index = ours.gid_index, .host = options.host});
  if (!chosen.ok()) return chosen.status();
  for (const ChosenPort& each : *chosen) {
    const auto number = static_cast<std::uint8_t>(rails_.size());
    auto rail = Rail::open({.chosen = each,
                            .number = number,
                            .receives = receives_per_rail,
                            .sends = QueuePair::depth * options.size,
                            .traffic_class = ours.traffic_class,
                            .service_level = ours.service_level});
    if (!rail.ok()) return rail.status();
    rails_.push_back(*std::move(rail));
    const Rail& made = *rails_.back();
    log::line(log::Level::info, "rank {}: verbs over {}, GID {} ({}), MTU {}", options.rank,
              each.port.name(), each.gid.index, to_string(each.gid.gid), mtu_bytes(each.port.mtu));
    for (const auto& [what, file] :
         {std::pair(Watch::What::completions, made.completion_descriptor()),
          std::pair(Watch::What::adapter, made.async_descriptor())}) {
      watches_.push_back(std::make_unique<Watch>(what, number));
      if (Status status = poller_.add(file, *watches_.back()); !status.ok()) return status;
    }
  }
  by_pair_.resize(rails_.size());
  return traffic_.open();
}

Status VerbsTransport::connect(std::span<const std::string> addresses) {
  if (Status status = links_.connect(addresses); !status.ok()) return status;
  for (std::uint32_t i = 0; i < addresses.size(); ++i) {
    partners_.push_back(std::make_unique<Partner>(i));
    if (i == rank_ || addresses[i].empty()) continue;
    std::optional<link::Link> link;
    static_cast<void>(links_.claim(key_of(i), link));
    if (!link) continue;
    if (Status status = meet(partner(i), *std::move(link)); !status.ok()) {
      traffic_.doom(partner(i).peer, std::move(status));
    }
  }
  return {};
}

Status VerbsTransport::can_reach(std::uint32_t peer) const {
  if (links_.can_reach(peer).ok()) return {};
  std::string why = fmt::format("rank {} has no verbs", peer);
  if (peer >= partners_.size()) why = fmt::format("there is no rank {}", peer);
  if (peer == rank_) why = fmt::format("rank {} sends nothing to itself over verbs", peer);
  if (partners_.empty()) why = "the addresses of the other ranks are not known yet: call connect()";
  return Status(StatusCode::unsupported, std::move(why)).with_peer(static_cast<int>(peer));
}

// --- ops ---

Result<ChannelId> VerbsTransport::open(std::uint32_t peer, std::uint64_t lane) {
  if (Status status = can_reach(peer); !status.ok()) return status;
  return traffic_.open(partner(peer).peer, lane);
}

std::size_t VerbsTransport::post(std::span<const TransportOp> ops) noexcept {
  std::size_t count = 0;
  for (; count < ops.size() && traffic_.outstanding() < limits::transport_ops_max; ++count) {
    const TransportOp& op = ops[count];
    Channel* const channel = traffic_.find(op.channel);
    if (channel == nullptr) {
      traffic_.reject(op, Status(StatusCode::invalid_argument,
                                 fmt::format("there is no channel {}", op.channel)));
      continue;
    }
    dial(partner(channel->peer.rank));
    traffic_.take(*channel, op);
  }
  traffic_.serve();
  return count;
}

std::size_t VerbsTransport::poll(std::span<TransportCompletion> completions) noexcept {
  if (!links_.is_quiet() || !meeting_.empty() || ++polls_ % polls_between_looks == 0) look();
  take_completions();
  settle();
  traffic_.serve();
  return traffic_.emit(completions);
}

bool VerbsTransport::prepare_to_sleep() noexcept {
  while (look()) {
  }
  for (const auto& rail : rails_) rail->arm();
  const bool has_moved = take_completions();
  settle();
  traffic_.serve();
  if (has_moved || traffic_.has_news() || traffic_.is_dooming()) return false;
  poller_.wake_at(next());
  return true;
}

void VerbsTransport::close(ChannelId channel, const Status& reason) noexcept {
  if (Channel* const found = traffic_.find(channel)) traffic_.close(*found, reason);
  traffic_.serve();
}

void VerbsTransport::close_lanes(std::uint64_t first, std::uint64_t last,
                                 const Status& reason) noexcept {
  traffic_.close_lanes(first, last, reason);
  for (const auto& each : partners_) traffic_.close_lanes(each->peer, first, last, reason);
  traffic_.serve();
}

Status VerbsTransport::register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                              std::span<const std::uint32_t> peers) {
  // One may read what another has not written yet, though it said so: that goes another way to the
  // device than to us.
  if (rails_.size() > 1) {
    return Status(StatusCode::unsupported, "several adapters are used at once")
        .with_hint("HOCKET_IB_HCA with one of them");
  }
  for (const std::uint32_t peer : peers) {
    if (Status status = can_reach(peer); !status.ok()) return status;
  }
  return traffic_.regions().add_of_device(memory, dma_buf);
}

void VerbsTransport::break_pairs(std::uint32_t peer) noexcept {
  for (const auto& pair : partner(peer).peer.pairs) pair->stop();
}

// --- connections ---

bool VerbsTransport::look() {
  const std::span<common::Event> events = poller_.look();
  for (const common::Event& event : events) {
    if (event.pollee == nullptr) continue;
    if (event.pollee->role == common::Pollee::Role::stream) {
      look_at(static_cast<const Watch&>(*event.pollee));
    } else {
      links_.handle(event);
    }
  }
  if (!links_.is_idle()) links_.expire();
  take_news();
  expire();
  return events.size() == common::Poller::events_at_once;
}

void VerbsTransport::look_at(const Watch& watch) {
  switch (watch.what) {
    case Watch::What::completions:
      return rails_[watch.number]->take_events();
    case Watch::What::adapter:
      return look_at_adapter(watch.number);
    case Watch::What::contact:
      break;
  }
  Partner& found = partner(watch.number);
  if (found.peer.is_lost()) return;
  if (Status status = advance(found); !status.ok()) traffic_.doom(found.peer, std::move(status));
}

void VerbsTransport::look_at_adapter(std::uint32_t rail) {
  bool is_fatal = false;
  for (std::string words = rails_[rail]->take_async_event(is_fatal); !words.empty();
       words = rails_[rail]->take_async_event(is_fatal)) {
    log::line(log::Level::warning, "rank {}: {}", rank_, words);
    for (std::size_t i = 0; is_fatal && i < partners_.size(); ++i) {
      if (partners_[i]->peer.pairs.empty()) continue;
      traffic_.doom(partners_[i]->peer,
                    Status(StatusCode::peer_lost, fmt::format("rank {} is lost: {}", i, words))
                        .with_peer(static_cast<int>(i))
                        .with_hint("see the kernel's log"));
    }
  }
}

void VerbsTransport::dial(Partner& partner) {
  if (partner.has_dialled || partner.peer.is_lost()) return;
  partner.has_dialled = true;
  if (partner.contact.state() == Contact::State::none) links_.dial(key_of(partner.peer.rank));
}

void VerbsTransport::take_news() {
  links_.take_news(news_);
  for (common::LinkNews& news : news_) {
    Partner& found = partner(news.key.peer);
    if (found.peer.is_lost()) continue;
    Status status = std::move(news.failure);
    if (status.ok()) status = meet(found, std::move(news.link));
    if (!status.ok()) traffic_.doom(found.peer, std::move(status));
  }
  while (const auto key = links_.take_starved()) {
    traffic_.doom(partner(key->peer).peer, Status::out_of_memory());
  }
}

Status VerbsTransport::meet(Partner& partner, link::Link link) {
  Card card = {.rails = static_cast<std::uint32_t>(rails_.size())};
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    auto pair = QueuePair::make(*rails_[i], partner.peer.rank);
    if (!pair.ok()) return pair.status();
    by_pair_[i][(*pair)->number()] = &partner.peer;
    card.ends[i] = (*pair)->end();
    partner.peer.pairs.push_back(*std::move(pair));
  }
  const Deadline give_up = Deadline::after(monotonic_clock(), connect_timeout_);
  meeting_.push_back(&partner);
  Status status = partner.contact.begin(std::move(link), card, give_up);
  if (status.ok()) status = poller_.add(partner.contact.socket(), partner.contact);
  return status.ok() ? advance(partner) : status;
}

Status VerbsTransport::advance(Partner& partner) {
  const auto goes_on = partner.contact.look();
  if (!goes_on.ok()) return goes_on.status();
  if (!*goes_on) return {};
  if (partner.contact.state() == Contact::State::told_card) {
    if (Status status = connect_pairs(partner); !status.ok()) return status;
    if (Status status = partner.contact.say_ready(); !status.ok()) return status;
  }
  if (!partner.contact.try_to_link()) return {};
  std::erase(meeting_, &partner);
  traffic_.link(partner.peer);
  return {};
}

Status VerbsTransport::connect_pairs(Partner& partner) {
  const auto with_rank = [&](const Status& why) {
    return Status(why.code(), fmt::format("rank {} can't be reached over verbs: {}",
                                          partner.peer.rank, why.what()))
        .with_peer(static_cast<int>(partner.peer.rank))
        .with_system_error(why.system_error())
        .with_hint(std::string(why.hint()));
  };
  const auto card = partner.contact.card();
  if (!card.ok()) return with_rank(card.status());
  const std::size_t rails = std::min<std::size_t>(card->rails, rails_.size());
  while (partner.peer.pairs.size() > rails) {
    by_pair_[partner.peer.pairs.size() - 1].erase(partner.peer.pairs.back()->number());
    partner.peer.pairs.pop_back();
  }
  for (std::size_t i = 0; i < rails; ++i) {
    Status status = partner.peer.pairs[i]->connect(card->ends[i]);
    if (!status.ok()) return with_rank(status);
  }
  return {};
}

void VerbsTransport::expire() {
  if (meeting_.empty() && traffic_.next().is_never()) return;
  const Instant now = monotonic_clock().now();
  traffic_.expire(now);
  for (Partner* const each : meeting_) {
    if (!each->contact.give_up().passed(now)) continue;
    traffic_.doom(
        each->peer,
        Status(StatusCode::timeout, fmt::format("rank {} did not tell its queue pairs within {}",
                                                each->peer.rank, format_duration(connect_timeout_)))
            .with_peer(static_cast<int>(each->peer.rank))
            .with_hint("see whether its process is stopped"));
  }
}

Deadline VerbsTransport::next() const noexcept {
  Deadline next = links_.next().or_sooner(traffic_.next());
  for (const Partner* const each : meeting_) next = next.or_sooner(each->contact.give_up());
  return next;
}

// --- what the adapters do ---

bool VerbsTransport::take_completions() {
  std::array<ibv_wc, completions_at_once> completions;
  bool has_any = false;
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
    const std::size_t count = rails_[rail]->poll(completions);
    for (std::size_t i = 0; i < count; ++i) take_completion(rail, completions[i]);
    has_any = has_any || count > 0;
  }
  return has_any;
}

void VerbsTransport::take_completion(std::uint32_t rail, const ibv_wc& completion) {
  if (SendId::is_one(completion.wr_id)) {
    take_send(rail, completion);
  } else {
    take_receive(rail, completion);
  }
}

void VerbsTransport::take_send(std::uint32_t rail, const ibv_wc& completion) {
  const SendId id = SendId::of(completion.wr_id);
  Peer& peer = partner(id.peer).peer;
  if (id.rail >= peer.pairs.size()) return;  // it has been ended before
  peer.pairs[id.rail]->complete(id.number, [&](const Hold& hold) { traffic_.release(hold); });
  if (completion.status == IBV_WC_SUCCESS) return;
  traffic_.doom(peer, describe(peer, rail, completion));
}

void VerbsTransport::take_receive(std::uint32_t rail, const ibv_wc& completion) {
  const auto found = by_pair_[rail].find(completion.qp_num);
  if (found == by_pair_[rail].end() || completion.status != IBV_WC_SUCCESS) {
    traffic_.free_receive(rail, completion.wr_id);
    if (found == by_pair_[rail].end()) return;
    return traffic_.doom(*found->second, describe(*found->second, rail, completion));
  }
  Peer& peer = *found->second;
  Status status = traffic_.handle(peer, rail, completion);
  if (!status.ok()) traffic_.doom(peer, std::move(status).with_peer(static_cast<int>(peer.rank)));
}

Status VerbsTransport::describe(const Peer& peer, std::uint32_t rail, const ibv_wc& completion) {
  return describe_failure(completion,
                          {.peer = peer.rank,
                           .ours = rails_[rail]->options().chosen,
                           .is_port_active = rails_[rail]->is_port_active()},
                          api().ibv_wc_status_str(completion.status));
}

/// What had come before is received first.
void VerbsTransport::settle() {
  while (traffic_.is_dooming()) {
    auto doomed = traffic_.take_doomed();
    for (const auto& [peer, why] : doomed) {
      for (const auto& pair : peer->pairs) pair->stop();
    }
    while (take_completions()) {
    }
    for (const auto& [peer, why] : doomed) end(partner(peer->rank), why);
  }
}

void VerbsTransport::end(Partner& partner, const Status& why) {
  Peer& peer = partner.peer;
  for (std::size_t i = 0; i < peer.pairs.size(); ++i) {
    by_pair_[i].erase(peer.pairs[i]->number());
    peer.pairs[i]->end([&](const Hold& hold) { traffic_.release(hold); });
  }
  peer.pairs.clear();
  std::erase(meeting_, &partner);
  if (partner.contact.state() != Contact::State::none) {
    poller_.forget(partner.contact, partner.contact.socket());
    partner.contact.end();
  }
  links_.close(key_of(peer.rank), pack_reason(why));
  traffic_.lose(peer, why);
}

// --- the end ---

VerbsTransport::~VerbsTransport() { say_goodbye(); }

/// Sends are over when they are on their way, which they are no more when the queue pairs end.
void VerbsTransport::say_goodbye() {
  const Deadline deadline = Deadline::after(monotonic_clock(), goodbye_time);
  std::vector<Peer*> untold;
  for (const auto& each : partners_) {
    if (each->peer.is_linked && !each->peer.is_doomed) untold.push_back(&each->peer);
  }
  const std::vector<Peer*> all = untold;
  for (;;) {
    std::erase_if(untold, [this](Peer* peer) { return traffic_.say_last(*peer); });
    const bool is_over =
        untold.empty() && std::ranges::all_of(all, [](const Peer* peer) {
          return peer->is_doomed ||
                 std::ranges::all_of(peer->pairs, [](const auto& pair) { return pair->is_idle(); });
        });
    if (is_over || deadline.passed(monotonic_clock().now())) return;
    for (const auto& rail : rails_) rail->arm();
    if (take_completions()) continue;
    pollfd entry = {.fd = poller_.descriptor(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, 10) > 0) look();
  }
}

}  // namespace hocket::verbs
