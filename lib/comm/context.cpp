#include "comm/context.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/environment.hpp"
#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/machine.hpp"
#include "base/text.hpp"
#include "bridge/program_store.hpp"
#include "choose/parameters.hpp"
#include "comm/arguments.hpp"
#include "comm/card.hpp"
#include "comm/local.hpp"
#include "comm/tuning.hpp"
#include "engine/transports.hpp"
#include "net/interfaces.hpp"
#include "wire/sha256.hpp"
#include "world/entry.hpp"
#include "world/tls_settings.hpp"

namespace hocket::comm {
namespace {

Result<engine::MadeTransport> make_transport(const Config& config,
                                             const TransportOptions& options) {
  const engine::FoundTransports found =
      engine::find_transports(config.get(variables::transport_path));
  for (const std::string& complaint : found.complaints) {
    log::line(log::Level::warning, "{}", complaint);
  }
  const auto kinds =
      engine::choose_transports(found, config.get(variables::transport), options.settings);
  if (!kinds.ok()) return kinds.status();
  return engine::make_transport(*kinds, options);
}

TransportOptions transport_options(const world::World& world, const Config& config) {
  return {.rank = static_cast<std::uint32_t>(world.rank),
          .size = static_cast<std::uint32_t>(world.size),
          .epoch = world::epoch_of(world.id),
          .host = world.address,
          .connect_timeout = world.store->timeout(),
          .job = world.job,
          .secret = world.credentials.secret,
          .tls = std::string(variables::tls_modes[config.get(variables::tls).index]),
          .tls_certificate_file = config.get(variables::tls_certificate_file),
          .tls_key_file = config.get(variables::tls_key_file),
          .tls_ca_file = config.get(variables::tls_ca_file),
          .settings = config.settings()};
}

/// All that algorithms are chosen by, so that ranks can compare it.
std::string describe(const choose::Tuning& tuning) {
  std::string text;
  for (const choose::Rule& rule : tuning.rules) text += fmt::format("{},", rule.text);
  for (const choose::Parameter& each : choose::parameters(tuning.network)) {
    text += fmt::format("{}={} ", each.name, each.value);
  }
  return text;
}

/// With less, ranks would be reported that only got no processor for a moment.
constexpr Duration failure_timeout_min = std::chrono::milliseconds(250);

Result<std::unique_ptr<health::Monitor>> open_monitor(const world::World& world,
                                                      const Config& config) {
  if (world.size == 1) return std::unique_ptr<health::Monitor>();
  auto tls = world::read_tls_settings(config);
  if (!tls.ok()) return tls.status();
  // All networks that may carry messages: a rank is lost when none of them leads to it.
  auto hosts = net::choose_addresses(world.address, config.get(variables::tcp_interfaces));
  if (!hosts.ok()) return hosts.status();
  const Duration timeout = config.get(variables::failure_timeout);
  return health::Monitor::open(
      {.rank = static_cast<std::uint32_t>(world.rank),
       .size = static_cast<std::uint32_t>(world.size),
       .epoch = world::epoch_of(world.id),
       .hosts = std::move(*hosts),
       .credentials = {.job = world.job, .secret = world.credentials.secret},
       .tls = std::move(*tls),
       .allow_without_secret = config.get(variables::allow_without_secret),
       .failure_timeout =
           timeout <= Duration::zero() ? timeout : std::max(timeout, failure_timeout_min)});
}

Status connect(health::Monitor& monitor, const std::vector<Card>& cards) {
  std::vector<health::Monitor::Contact> contacts;
  for (const Card& card : cards) {
    contacts.push_back({.address = card.monitor, .process = card.process});
  }
  return monitor.connect(contacts);
}

/// A number that all ranks of this world have, and those of no other: rank 0's card says by which
/// process and at which addresses it is found.
std::uint64_t identity_of(const world::World& world, const Card& first) {
  const wire::Digest digest = wire::sha256(fmt::format(
      "{} {} {} {}", world::epoch_of(world.id), first.process, first.address, first.monitor));
  std::uint64_t identity = 0;
  for (const std::byte each : std::span(digest).first(sizeof identity)) {
    identity = identity << 8 | std::to_integer<std::uint64_t>(each);
  }
  return identity;
}

/// Null if recording is off or impossible: the rank works without it.
std::unique_ptr<record::Recorder> open_recorder(const world::World& world,
                                                const std::vector<Card>& cards,
                                                const Config& config) {
  const record::Wish wish = record::parse_wish(config.get(variables::trace));
  if (!wish.is_on) return nullptr;
  const Card& ours = cards[static_cast<std::size_t>(world.rank)];
  record::RecorderOptions options = {.world = identity_of(world, cards[0]),
                                     .rank = static_cast<std::uint32_t>(world.rank),
                                     .size = static_cast<std::uint32_t>(world.size),
                                     .transport = ours.transport,
                                     .folder = wish.folder};
  auto recorder = record::Recorder::open(options);
  if (!recorder.ok() && !wish.folder.empty()) {
    log::line(log::Level::warning, "operations are recorded in memory only: {}",
              recorder.status().to_string());
    options.folder = {};
    recorder = record::Recorder::open(options);
  }
  if (recorder.ok()) return std::move(*recorder);
  log::line(log::Level::warning, "operations are not recorded: {}", recorder.status().to_string());
  return nullptr;
}

Result<std::uint32_t> read_overlap(const Config& config) {
  const std::int64_t overlap = config.get(variables::overlap);
  if (overlap >= 1 && overlap <= limits::overlap_max) return static_cast<std::uint32_t>(overlap);
  return Status(StatusCode::invalid_argument,
                fmt::format("HOCKET_OVERLAP={} is not from 1 to {}", overlap, limits::overlap_max));
}

Card card_of(const engine::MadeTransport& made, const world::World& world,
             const choose::Tuning& tuning, std::uint32_t overlap, const health::Monitor* monitor) {
  world::Entry process = world::describe_process();
  return {.transport = made.name(),
          .address = made.address(),
          .memory_domain = made.transport->memory_domain(),
          .segment_bytes = made.transport->caps().segment_bytes,
          .overlap = overlap,
          .local_rank = static_cast<std::uint32_t>(world.local_rank),
          .local_size = static_cast<std::uint32_t>(world.local_size),
          .host = std::move(process.host),
          .machine = own_machine(),
          .processors = own_processors(),
          .tuning = describe(tuning),
          .monitor = monitor == nullptr ? std::string() : monitor->address(),
          .process = std::move(process.process)};
}

/// Every rank's, or where they don't fit together.
Result<std::vector<Card>> meet(const world::World& world, const Result<Card>& ours) {
  const auto rank = static_cast<std::uint32_t>(world.rank);
  const auto size = static_cast<std::uint32_t>(world.size);
  auto cards = described([&] { return exchange(ours, rank, size, *world.store); });
  // Also if that failed, as the others may not know it yet. A rank that is lost never comes.
  world::let_all_in(world, cards.ok() ? Duration(limits::cards_farewell) : limits::entry_farewell);
  if (!cards.ok()) return cards;
  if (Status status = check_agreement(*cards, rank); !status.ok()) return status;
  return cards;
}

/// So that nobody waits for this rank's card, if the store answers soon.
Status decline(const world::World& world, const Status& why) {
  world.store->set_timeout(limits::cards_farewell);
  return meet(world, why).status();
}

/// Adapts the usual network, which nobody has measured, to these ranks.
choose::Network network_of(choose::Network network, std::span<const Card> cards,
                           std::span<const std::uint32_t> hosts) {
  if (share_memory(cards, hosts)) network = choose::sharing_memory(network);
  network.processors = shared_processors(cards);
  return network.processors > 0 ? network : choose::crowded(network, ranks_per_processor(cards));
}

}  // namespace

std::string list_ranks(const Context& context, const Membership& of, std::span<const int> ranks) {
  constexpr std::size_t named_max = 8;
  std::string text;
  for (const int rank : ranks.first(std::min(ranks.size(), named_max))) {
    const std::uint32_t in_world = of.in_world(static_cast<std::uint32_t>(rank));
    text +=
        fmt::format("{}rank {} ({})", text.empty() ? "" : ", ", rank, context.processes[in_world]);
  }
  return ranks.size() > named_max ? text + ", …" : text;
}

Result<world::World> find_world(const JoinOptions& options, std::string name,
                                const Config& config) {
  if (Status status = check(options); !status.ok()) return status;
  const ChangedEnvironment environment(process_environment(), options.settings);
  world::RendezvousOptions meeting = {.rank = options.rank,
                                      .size = options.size,
                                      .url = options.url,
                                      .name = std::move(name),
                                      .timeout = options.timeout};
  if (options.store != nullptr) {
    const Duration limit = options.timeout.value_or(config.get(variables::store_timeout));
    const Deadline deadline = Deadline::after(monotonic_clock(), limit);
    auto store = bridge::handle_of(options.store, limit);
    if (!store.ok()) return store.status();
    meeting.store = std::move(*store);
    meeting.timeout = deadline.remaining(monotonic_clock().now());
  }
  return world::rendezvous(std::move(meeting), environment.get(), config);
}

Result<std::shared_ptr<Context>> make_context(const JoinOptions& options) {
  const auto own_config = process_config().with(options.settings);
  if (!own_config.ok()) return own_config.status();
  const Config& config = *own_config;
  auto network = choose::find_preset(choose::usual_network);
  auto world = find_world(options, options.name, config);
  if (!world.ok()) return world.status();
  auto tuning = read_tuning(config, *network);  // behind the rendezvous, so that all can be told
  if (!tuning.ok()) return decline(*world, tuning.status());
  const auto overlap = read_overlap(config);
  if (!overlap.ok()) return decline(*world, overlap.status());
  auto made = make_transport(config, transport_options(*world, config));
  if (!made.ok()) return decline(*world, made.status());
  if (made->transport->caps().segment_bytes < HOCKET_BYTES_MAX) {
    return decline(*world, {StatusCode::unsupported,
                            fmt::format("the transport {} cuts messages into less than {} bytes",
                                        made->name(), HOCKET_BYTES_MAX)});
  }
  auto monitor = open_monitor(*world, config);
  if (!monitor.ok()) return decline(*world, monitor.status());
  const auto cards = meet(*world, card_of(*made, *world, *tuning, *overlap, monitor->get()));
  if (!cards.ok()) return cards.status();
  std::vector<std::string> addresses;
  std::vector<std::string> processes;
  std::vector<std::string> host_names;
  for (const Card& card : *cards) {
    addresses.push_back(card.address);
    processes.push_back(card.process);
    host_names.push_back(card.host);
  }
  if (Status status = made->connect(std::move(addresses)); !status.ok()) return status;
  const Card& ours = (*cards)[static_cast<std::size_t>(world->rank)];
  auto recorder = open_recorder(*world, *cards, config);
  Transport& transport = *made->transport;
  auto engine = engine::Engine::make(
      std::move(made->transport),
      {.executor = {.segment_bytes = ours.segment_bytes, .recorder = recorder.get()},
       .shares_processors = ranks_per_processor(*cards, ours) > 1});
  if (!engine.ok()) return engine.status();
  std::vector<std::uint32_t> hosts = hosts_of(*cards);
  const bool is_measured = tuning->network != *network;
  if (!is_measured) tuning->network = network_of(tuning->network, *cards, hosts);
  if (*monitor != nullptr) {
    if (Status status = connect(**monitor, *cards); !status.ok()) return status;
  }
  transport.await_peers();
  auto context = std::make_shared<Context>(
      config, std::move(*world), std::move(recorder), std::move(*monitor), made->name(),
      std::move(processes), std::move(host_names), std::move(hosts),
      choose::Selector(tuning->network, std::move(tuning->rules)), std::move(*engine));
  if (const auto& runtime = device::process_runtime(); runtime.ok()) context->runtime = &*runtime;
  // Also found once, and no later: while a thread finds it, a child of fork() would wait for ever.
  static_cast<void>(allowed_instruction_set());
  context->stall_warning = config.get(variables::stall_warning);
  context->overlap = *overlap;
  return context;
}

}  // namespace hocket::comm
