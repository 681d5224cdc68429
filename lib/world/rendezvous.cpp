#include "world/rendezvous.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/private_file.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "net/interfaces.hpp"
#include "net/socket.hpp"
#include "store/file_store.hpp"
#include "store/prefix_store.hpp"
#include "store/tcp_store.hpp"
#include "world/entry.hpp"
#include "world/launcher.hpp"
#include "world/rendezvous_url.hpp"
#include "world/runs.hpp"
#include "world/tls_settings.hpp"

namespace hocket::world {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view own_loopback = "127.0.0.1";

// --- where we stand ---

Result<Launch> ask_launcher(const Environment& environment) {
  Result<Detection> detection = detect_launcher(environment);
  if (!detection.ok()) return detection.status();
  for (const std::string& each : detection->disagreements) {
    log::line(log::Level::warning, "{}", each);
  }
  return std::move(detection->launch);
}

int configured_attempt(const Config& config) {
  return static_cast<int>(std::clamp<std::int64_t>(config.get(variables::attempt), 0, INT32_MAX));
}

/// The place of a rank that the program or the URL gives, without a launcher.
Launch launch_of(std::string_view who, int rank, int size, const Config& config) {
  return {.launcher = who,
          .rank = rank,
          .size = size,
          .job = config.get(variables::job),
          .attempt = configured_attempt(config)};
}

Result<Launch> read_launch(const RendezvousOptions& options,
                           const std::optional<RendezvousUrl>& url, const Environment& environment,
                           const Config& config) {
  if (options.rank >= 0) {
    const bool has_place =
        options.store != nullptr || (url && url->scheme != RendezvousUrl::Scheme::env);
    if (has_place) return launch_of("the program", options.rank, options.size, config);
    return Status(StatusCode::invalid_argument,
                  "the program gave a rank and a size, but not where the ranks meet")
        .with_hint("give a store, or a tcp:// or file:// URL");
  }
  if (url && url->scheme == RendezvousUrl::Scheme::env) return read_env(environment);
  if (!url || url->rank < 0) return ask_launcher(environment);
  return launch_of("the URL", url->rank, url->size, config);
}

Result<Launch> find_launch(const RendezvousOptions& options, std::optional<RendezvousUrl>& url,
                           const Environment& environment, const Config& config) {
  const std::string text = options.url.empty() ? config.get(variables::rendezvous) : options.url;
  if (!text.empty() && options.store == nullptr) {
    Result<RendezvousUrl> parsed = parse_rendezvous_url(text);
    if (!parsed.ok()) return parsed.status();
    url = *std::move(parsed);
    if (url->scheme == RendezvousUrl::Scheme::torch) {
      return Status(StatusCode::invalid_argument,
                    "a torch:// URL names a store, and does not say how the ranks join")
          .with_hint("open the store (open_store), and give it to join with a rank and a size");
    }
  }
  Result<Launch> launch = read_launch(options, url, environment, config);
  if (!launch.ok()) return launch;
  if (url && url->scheme == RendezvousUrl::Scheme::tcp) {
    launch->master = url->endpoint;
    launch->master_is_served = url->is_served;
  }
  if (url && !url->job.empty()) launch->job = url->job;
  if (!options.credentials.job.empty()) launch->job = options.credentials.job;
  log::line(log::Level::info, "{} says rank {} of {}", launch->launcher, launch->rank,
            launch->size);
  return launch;
}

// --- the meeting of ranks on one host, when nobody named a place ---

/// Such as "mpich-4711-83920": the nearest process above us of that name, and when it began.
std::string family_of_ancestor(std::string_view name) {
  for (pid_t process = ::getppid(); process > 1;) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    const std::size_t begin = text.find('(');
    const std::size_t end = text.rfind(')');
    if (begin == std::string::npos || end == std::string::npos) return {};
    // Behind the name: state, parent, …; the twentieth is the start in ticks since the boot.
    std::string_view rest = std::string_view(text).substr(end + 1);
    std::vector<std::string_view> fields;
    while (!rest.empty() && fields.size() < 20) {
      rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
      fields.push_back(rest.substr(0, rest.find(' ')));
      rest.remove_prefix(fields.back().size());
    }
    if (fields.size() < 20) return {};
    if (text.compare(begin + 1, end - begin - 1, name) == 0) {
      return fmt::format("{}-{}-{}", name, process, fields[19]);
    }
    process = static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
  }
  return {};
}

/// The file in which rank 0 says where its store is, and a secret for this one world.
Result<std::string> meeting_path(const Launch& launch, const Environment& environment) {
  std::string family =
      launch.family.empty() ? family_of_ancestor("hydra_pmi_proxy") : launch.family;
  if (!launch.is_on_one_host() || family.empty()) {
    return Status(
               StatusCode::invalid_argument,
               fmt::format("{} says which rank this is, but not where rank 0 is", launch.launcher))
        .with_hint(
            "set MASTER_ADDR to the host of rank 0 for all ranks, and MASTER_PORT to a free "
            "port there: mpirun -x MASTER_ADDR=… -x MASTER_PORT=… (MPICH: -genv)");
  }
  std::ranges::replace(family, '/', '_');
  Result<std::string> directory = private_directory(environment.get("XDG_RUNTIME_DIR"));
  if (!directory.ok()) return directory;
  return fmt::format("{}/{}-{}", *directory, family, launch.attempt);
}

Result<std::string> await_file(const std::string& path, Deadline deadline) {
  for (Duration pause = 1ms;; pause = std::min<Duration>(2 * pause, 50ms)) {
    Result<std::string> content = read_private_file(path);
    if (content.ok() || content.status().code() != StatusCode::not_found) return content;
    if (deadline.passed(monotonic_clock().now())) {
      return Status(StatusCode::timeout,
                    fmt::format("rank 0 is missing: it did not say in {} where it serves the store",
                                path))
          .with_hint(
              "look at the output of rank 0: was it started, on this host, or did it fail "
              "already?");
    }
    std::this_thread::sleep_for(pause);
  }
}

// --- the store ---

/// What is known before the ranks meet.
struct Terms {
  Launch launch = {};
  std::string name = {};                     // of the world
  std::string file = {};                     // that holds the store; empty where one is served
  std::unique_ptr<store::Store> store = {};  // that is there already
  wire::Credentials credentials = {};
  wire::TlsOptions tls = {};
  Duration timeout = {};
};

/// What a rank does to form its world, and holds while it does.
class Meeting {
 public:
  Meeting(Terms terms, const Environment& environment, const Config& config)
      : terms_(std::move(terms)),
        launch_(terms_.launch),
        credentials_(terms_.credentials),
        deadline_(Deadline::after(monotonic_clock(), terms_.timeout)),
        environment_(environment),
        config_(config) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// The file has served its purpose, or never will.
  ~Meeting() {
    if (!published_.empty()) withdraw(published_);
  }

  Result<World> hold();

 private:
  [[nodiscard]] Duration left() const { return deadline_.remaining(monotonic_clock().now()); }
  Status open_store();
  Status open_file();
  Status use_store();
  Status share_secret();
  Status open_meeting();
  Status serve(const net::Endpoint& at, LeaseOptions lease);
  Status join_meeting(const std::string& path);
  Status connect(const net::Endpoint& to, Duration patience);
  Result<net::Interface> choose_address();
  [[nodiscard]] std::string own_route(std::string loopback);
  /// Lets the others come for a moment, and hear the verdict, before the store goes. `absent` won't
  /// come: the rank that is to blame, or -1.
  void linger(const Entry& who, int absent);

  Terms terms_;
  Launch& launch_;
  wire::Credentials& credentials_;
  const Deadline deadline_;
  const Environment& environment_;
  const Config& config_;
  std::string published_;
  std::string route_;
  ServerLease server_;
  std::unique_ptr<store::Store> store_;
  bool is_programs_store_ = false;  // which may outlive the ranks, and hold what was there before
};

Status Meeting::serve(const net::Endpoint& at, LeaseOptions lease) {
  if (Status status = allow_open_files(static_cast<std::uint64_t>(launch_.size)); !status.ok()) {
    const StatusCode code = status.code();
    return Status(code, fmt::format("rank 0 can't serve a store to {} ranks", launch_.size))
        .caused_by(std::move(status));
  }
  const bool is_local = net::is_loopback(at.host);
  lease.server = {
      .listen = {.host = is_local ? at.host : "", .port = at.port},
      .credentials = credentials_,
      .tls = terms_.tls,
      .allow_without_secret = config_.get(variables::allow_without_secret),
  };
  if (lease.place.empty() && at.port != 0) lease.place = lease.server.listen.to_string();
  auto server = lease_server(lease);
  if (!server.ok()) {
    Status status(server.status().code(),
                  fmt::format("rank 0 can't serve the store at {}", at.to_string()));
    return std::move(status).caused_by(server.status());
  }
  server_ = *std::move(server);
  credentials_.secret = server_->credentials().secret;
  const std::uint16_t port = server_->endpoint().port;
  log::line(log::Level::info, "rank 0 serves the store at {}",
            net::Endpoint{.host = at.host, .port = port}.to_string());
  return connect({.host = is_local ? at.host : std::string(own_loopback), .port = port}, left());
}

Status Meeting::connect(const net::Endpoint& to, Duration patience) {
  auto store = store::TcpStore::connect({.server = to,
                                         .credentials = credentials_,
                                         .tls = terms_.tls,
                                         .rank = launch_.rank,
                                         .timeout = patience});
  if (store.ok()) {
    (*store)->set_timeout(terms_.timeout);
    route_ = server_ ? own_route((*store)->local_host()) : (*store)->local_host();
    store_ = *std::move(store);
    return {};
  }
  Status status(
      store.status().code(),
      fmt::format("rank {} of {} can't join the store of {} at {}", launch_.rank, launch_.size,
                  launch_.master_is_served ? "the launcher" : "rank 0", to.to_string()));
  return std::move(status).caused_by(store.status());
}

/// The address by which the others came to the store that we serve; empty when it is not ours.
std::string Meeting::own_route(std::string loopback) {
  if (!launch_.master || net::is_loopback(launch_.master->host)) return loopback;
  const auto interfaces = net::list_interfaces();
  const Deadline soon =
      Deadline::after(monotonic_clock(), limits::handshake_timeout).or_sooner(deadline_);
  const auto addresses = net::resolve(*launch_.master, soon);
  if (!interfaces.ok() || !addresses.ok()) return {};
  for (const net::Address& address : *addresses) {
    if (address.is_loopback()) return {};  // the host's own name, as some systems set it up
    std::string host = address.endpoint().host;
    if (std::ranges::find(*interfaces, host, &net::Interface::address) != interfaces->end())
      return host;
  }
  log::line(log::Level::warning,
            "rank 0 serves the store, but {} is no address of this host; if others can't reach it, "
            "set MASTER_ADDR to the host of rank 0",
            launch_.master->host);
  return {};
}

/// Without a master, on one host: at a free port, which rank 0 writes where only this user reads
/// it.
Status Meeting::open_meeting() {
  const net::Endpoint anywhere = {.host = std::string(own_loopback), .port = 0};
  if (launch_.size == 1) return serve(anywhere, {});
  Result<std::string> path = meeting_path(launch_, environment_);
  if (!path.ok()) return path.status();
  if (launch_.rank == 0) {
    const bool is_any_secret = credentials_.secret.empty();
    if (is_any_secret) credentials_.secret = random_hex(32);
    Status status = serve(anywhere, {.place = *path, .takes_any_secret = is_any_secret});
    if (!status.ok()) return status;
    published_ = *path;
    return publish(*path, fmt::format("{} {}", server_->endpoint().port, credentials_.secret));
  }
  return join_meeting(*path);
}

Status Meeting::join_meeting(const std::string& path) {
  constexpr Duration patience = 500ms;
  for (;;) {
    Result<std::string> content = await_file(path, deadline_);
    if (!content.ok()) return content.status();
    const auto port = parse_integer(content->substr(0, content->find(' ')));
    if (!port || *port < 1 || *port > UINT16_MAX) {
      return {StatusCode::protocol_error, fmt::format("{} holds no port", path)};
    }
    credentials_.secret = content->substr(std::min(content->size(), content->find(' ') + 1));
    Status status =
        connect({.host = std::string(own_loopback), .port = static_cast<std::uint16_t>(*port)},
                std::min(left(), patience));
    // Who does not let us in may be no rank 0 of ours: one that was killed leaves its file behind.
    if (status.ok() || left() <= Duration::zero()) return status;
    std::this_thread::sleep_for(50ms);
  }
}

Status Meeting::open_file() {
  auto store = store::FileStore::open({.path = terms_.file,
                                       .job = credentials_.job,
                                       .timeout = terms_.timeout,
                                       .is_for_one_run = true});
  if (store.ok()) {
    const Result<bool> is_private = (*store)->is_private();
    store_ = *std::move(store);
    if (!is_private.ok()) return is_private.status();
    return credentials_.secret.empty() && *is_private ? share_secret() : Status();
  }
  Status status(store.status().code(), fmt::format("rank {} of {} can't use the store in {}",
                                                   launch_.rank, launch_.size, terms_.file));
  return std::move(status).caused_by(store.status());
}

/// Uses the program's store, under a prefix because it may hold other keys. What launchers count as
/// attempts may differ between hosts (decision 0046).
Status Meeting::use_store() {
  launch_.attempt = configured_attempt(config_);
  store_ = std::make_unique<store::PrefixStore>(std::move(terms_.store), "hocket");
  store_->set_timeout(terms_.timeout);
  is_programs_store_ = true;
  return credentials_.secret.empty() ? share_secret() : Status();
}

/// Without a secret, the ranks agree on one in the store. Whoever can read the store can join.
Status Meeting::share_secret() {
  const std::string key = fmt::format("secret/{}", launch_.attempt);
  Result<Swap> swap = store_->compare_set(key, "", random_hex(32));
  if (!swap.ok()) return swap.status();
  credentials_.secret = swap->value.value_or("");
  return {};
}

Status Meeting::open_store() {
  if (terms_.store != nullptr) return use_store();
  if (!terms_.file.empty()) return open_file();
  if (!launch_.master) return open_meeting();
  if (launch_.master_is_served) return connect(*launch_.master, left());
  // Ranks that share a host need no network, and no secret.
  if (launch_.is_on_one_host() && !net::is_loopback(launch_.master->host)) {
    launch_.master->host = own_loopback;
  }
  if (launch_.rank == 0) return serve(*launch_.master, {});
  if (launch_.master->port != 0) return connect(*launch_.master, left());
  return Status(StatusCode::invalid_argument,
                fmt::format("rank {} can't join at port 0: rank 0 alone may pick a free port",
                            launch_.rank))
      .with_hint("give the other ranks the port that rank 0 logs (HOCKET_LOG_LEVEL=info)");
}

Result<net::Interface> Meeting::choose_address() {
  const auto interfaces = net::list_interfaces();
  if (!interfaces.ok()) return interfaces.status();
  const std::string pattern = config_.get(variables::interface);
  // A host's own name often leads to its loopback: for those on other hosts that is no address.
  const bool is_local =
      launch_.is_on_one_host() || !launch_.master || net::is_loopback(launch_.master->host);
  if (net::is_loopback(route_) && !is_local) route_.clear();
  auto chosen = net::choose_interface(*interfaces, {.pattern = pattern, .route = route_});
  if (chosen.ok()) {
    log::line(log::Level::info, "other ranks reach this one at {} (interface {}{})",
              chosen->address, chosen->name,
              pattern.empty() ? "" : fmt::format(", HOCKET_INTERFACE={}", pattern));
  }
  return chosen;
}

void Meeting::linger(const Entry& who, int absent) {
  const Deadline deadline =
      Deadline::after(monotonic_clock(), limits::entry_farewell).or_sooner(deadline_);
  const bool is_ours = server_ != nullptr || !terms_.file.empty();
  while (is_ours && !deadline.passed(monotonic_clock().now())) {
    auto missing = missing_ranks(*store_, who);
    if (missing.ok()) std::erase(*missing, absent);
    const bool we_alone_are_left = server_ == nullptr || server_->connections() <= 1;
    if (missing.ok() && missing->empty() && we_alone_are_left) return;
    std::this_thread::sleep_for(50ms);
  }
}

Result<World> Meeting::hold() {
  if (Status status = open_store(); !status.ok()) return status;
  Entry entry = describe_process();
  entry.rank = launch_.rank;
  entry.size = launch_.size;
  entry.world = {.attempt = launch_.attempt, .name = terms_.name};
  if (!is_programs_store_) {
    const Result<int> number = next_number(*store_, entry.world, entry.rank);
    if (!number.ok()) return number.status();
    entry.world.number = *number;
  }
  const Result<net::Interface> chosen = choose_address();
  entry.fault = chosen.status();
  if (chosen.ok()) {
    entry.address = chosen->address;
    entry.is_loopback = chosen->is_loopback;
  }
  const Result<LocalRank> local =
      is_programs_store_ ? enter_run(*store_, entry, deadline_) : enter(*store_, entry, deadline_);
  if (!local.ok()) {
    linger(entry, local.status().peer());
    return local.status();
  }
  return World{
      .server = std::move(server_),
      .store = std::make_unique<store::PrefixStore>(std::move(store_), keys_of(entry.world)),
      .rank = launch_.rank,
      .size = launch_.size,
      .local_rank = launch_.local_rank >= 0 ? launch_.local_rank : local->local_rank,
      .local_size = launch_.local_size >= 0 ? launch_.local_size : local->local_size,
      .id = entry.world,
      .job = credentials_.job,
      .address = entry.address,
      .launcher = launch_.launcher,
      .credentials = credentials_,
  };
}

}  // namespace

Result<World> rendezvous(RendezvousOptions options, const Environment& environment,
                         const Config& config) {
  if (Status status = check_name(options.name, "world"); !status.ok()) {
    return std::move(status).with_operation("rendezvous");
  }
  std::optional<RendezvousUrl> url;
  Result<Launch> launch = find_launch(options, url, environment, config);
  if (!launch.ok()) return launch.status();
  wire::Credentials credentials = options.credentials;
  credentials.job = launch->job;
  if (credentials.secret.empty()) {
    Result<std::string> secret = read_secret(config);
    if (!secret.ok()) return secret.status();
    credentials.secret = *std::move(secret);
  }
  Result<wire::TlsOptions> tls = read_tls_settings(config);
  if (!tls.ok()) return tls.status();
  const Duration configured = config.get(variables::store_timeout);
  Terms terms = {
      .launch = *std::move(launch),
      .name = options.name,
      .file = url ? url->path : "",
      .store = std::move(options.store),
      .credentials = std::move(credentials),
      .tls = *std::move(tls),
      .timeout = options.timeout.value_or(url ? url->timeout.value_or(configured) : configured),
  };
  const int rank = terms.launch.rank;
  Result<World> world = Meeting(std::move(terms), environment, config).hold();
  if (world.ok()) return world;
  return world.status().with_rank(rank).with_operation("rendezvous");
}

void let_all_in(const World& world, Duration patience) {
  const auto joined = world.store->add("joined", 1);
  if (joined.ok() && *joined == world.size) static_cast<void>(world.store->set("all joined", ""));
  if (world.server) static_cast<void>(world.store->wait({"all joined"}, patience));
}

}  // namespace hocket::world
