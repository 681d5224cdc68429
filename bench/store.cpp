#include "store.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/fd.hpp"
#include "measure.hpp"
#include "program/json.hpp"
#include "store/tcp_store.hpp"
#include "store_load.hpp"

namespace hocket::bench {
namespace {

struct StoreOptions {
  int rounds = 9;
  int trips = 2000;
  int idle = 4096;
  bool json = false;
};

/// Medians over the rounds, in seconds.
struct Trips {
  double raw = 0;
  double store = 0;
  std::optional<double> torch = {};
};

struct Results {
  std::vector<Trips> trips;  // by placement
  std::string torch_version;
  Load load;
  double requests_a_second = 0;
  int idle = 0;
  double bytes_a_client = 0;
  double crowded_trip = 0;  // beside the idle clients
  double lonely_trip = 0;   // just before they came
};

template <class Trip>
double seconds_a_trip(int trips, Trip trip) {
  const Instant start = monotonic_clock().now();
  for (int i = 0; i < trips; ++i) trip();
  return std::chrono::duration<double>(monotonic_clock().now() - start).count() / trips;
}

std::unique_ptr<store::TcpStore> connect(const ServerProcess& server) {
  return store::TcpStore::connect(server.address()).value();
}

void add(store::Store& store) {
  if (const auto sum = store.add("n", 1); !sum.ok()) throw_error(sum.status());
}

/// Where client and server run. Left alone, a scheduler moves them between one core and two as it
/// likes, and a trip over two takes several times as long.
struct Placement {
  std::string_view name;
  int server;  // the client is on core 0
};
constexpr Placement placements[] = {{"one core", 0}, {"two cores", 1}};

Trips measure_trips(const ServerProcess& server, EchoProcess& echo, TorchStore* torch,
                    const Placement& placement, const StoreOptions& options) {
  const auto store = connect(server);
  pin(0, 0);
  for (const pid_t process : {server.pid(), echo.pid()}) pin(process, placement.server);
  if (torch != nullptr) torch->pin(0, placement.server);
  std::vector<double> raw, ours, theirs;
  for (int round = 0; round < options.rounds; ++round) {
    raw.push_back(seconds_a_trip(options.trips, [&] { echo.trip(); }));
    ours.push_back(seconds_a_trip(options.trips, [&] { add(*store); }));
    if (torch != nullptr) theirs.push_back(torch->seconds_a_trip(options.trips));
  }
  for (const pid_t process : {pid_t{0}, server.pid(), echo.pid()}) pin(process, -1);
  Trips trips{.raw = median(raw), .store = median(ours)};
  if (torch != nullptr) trips.torch = median(theirs);
  return trips;
}

/// As many as the system lets this process and the server have.
int clients_possible(int wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return std::min(wanted, static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20)) - 64);
}

void measure_crowd(const ServerProcess& server, const StoreOptions& options, Results& results) {
  const auto store = connect(server);
  const auto trip = [&] { return seconds_a_trip(options.trips, [&] { add(*store); }); };
  results.idle = clients_possible(options.idle);
  const std::size_t before = server.resident_bytes();
  std::vector<double> lonely, crowded;
  std::vector<std::unique_ptr<store::Connection>> crowd;
  // They come and go, so that a machine whose speed drifts is the same for both.
  for (int round = 0; round < std::min(options.rounds, 3); ++round) {
    crowd.clear();
    lonely.push_back(trip());
    for (int i = 0; i < results.idle; ++i) {
      crowd.push_back(store::Connection::open(server.address()).value());
    }
    crowded.push_back(trip());
  }
  results.bytes_a_client =
      static_cast<double>(server.resident_bytes() - before) / std::max(results.idle, 1);
  results.lonely_trip = median(lonely);
  results.crowded_trip = median(crowded);
}

Results measure(const StoreOptions& options) {
  const ServerProcess server;  // all processes before any thread
  EchoProcess echo;
  const std::unique_ptr<TorchStore> torch = TorchStore::start();
  Results results;
  if (torch) results.torch_version = torch->version();
  for (const Placement& placement : placements) {
    results.trips.push_back(measure_trips(server, echo, torch.get(), placement, options));
  }
  std::vector<double> rates;
  for (int round = 0; round < options.rounds; ++round) {
    rates.push_back(requests_a_second(server.address(), results.load));
  }
  results.requests_a_second = median(rates);
  measure_crowd(server, options, results);
  return results;
}

void print_trips(const Trips& trips, std::string_view placement, const std::string& torch_version) {
  const auto us = [](double seconds) { return seconds * 1e6; };
  fmt::print("\ntrip there and back, client and server on {}\n", placement);
  fmt::print("  {:<28} {:>8.1f} us\n", "raw TCP, blocking", us(trips.raw));
  fmt::print("  {:<28} {:>8.1f} us   {:.2f}x raw\n", "Hocket, add", us(trips.store),
             trips.store / trips.raw);
  if (!trips.torch) return;
  fmt::print("  {:<28} {:>8.1f} us   {:.2f}x Hocket\n",
             fmt::format("PyTorch {}, add", torch_version), us(*trips.torch),
             *trips.torch / trips.store);
}

void print_table(const Results& results, const StoreOptions& options) {
  const auto us = [](double seconds) { return seconds * 1e6; };
  fmt::print("Store over TCP, loopback, server in a process of its own, with a secret.\n{}\n",
             options.rounds == 1
                 ? "One round."
                 : fmt::format("Medians of {} rounds that take turns.", options.rounds));
  for (std::size_t i = 0; i < results.trips.size(); ++i) {
    print_trips(results.trips[i], placements[i].name, results.torch_version);
  }
  if (results.torch_version.empty()) {
    fmt::print("  PyTorch is not installed: no comparison with its store\n");
  }
  fmt::print("\nrequests a second, {} clients with {} in flight each\n  {:<28} {:>8.0f}\n",
             results.load.clients, results.load.in_flight, "Hocket, add",
             results.requests_a_second);
  fmt::print("\n{} idle clients\n", results.idle);
  fmt::print("  {:<28} {:>8.1f} KiB a client\n", "memory of the server",
             results.bytes_a_client / 1024);
  fmt::print("  {:<28} {:>8.1f} us   {:.1f} us without them\n", "trip beside them",
             us(results.crowded_trip), us(results.lonely_trip));
}

void print_json(const Results& results, const StoreOptions& options) {
  using program::Json;
  Json all_trips = Json::array();
  for (std::size_t i = 0; i < results.trips.size(); ++i) {
    const Trips& trips = results.trips[i];
    all_trips.push_back({{"placement", placements[i].name},
                         {"raw_tcp_s", trips.raw},
                         {"hocket_s", trips.store},
                         {"torch_s", trips.torch ? Json(*trips.torch) : Json()}});
  }
  const Json document = {
      {"benchmark", "store"},
      {"version", version()},
      {"rounds", options.rounds},
      {"trips", all_trips},
      {"torch_version", results.torch_version.empty() ? Json() : Json(results.torch_version)},
      {"load",
       {{"clients", results.load.clients},
        {"in_flight", results.load.in_flight},
        {"requests_per_s", results.requests_a_second}}},
      {"idle",
       {{"clients", results.idle},
        {"server_bytes_per_client", results.bytes_a_client},
        {"trip_s", results.crowded_trip},
        {"trip_without_s", results.lonely_trip}}},
  };
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_store_command(program::Parser& program) {
  // The program owns its sub-commands, and with this one the options.
  const auto options = std::make_shared<StoreOptions>();
  program::Parser& parser =
      program.add_command("store", "A store over TCP: trips, load, idle clients");
  parser.add_option("--rounds", &options->rounds, "Rounds of each measurement")
      .in_range(1, 1000)
      .with_default();
  parser.add_option("--trips", &options->trips, "Trips in a round")
      .in_range(1, 1'000'000)
      .with_default();
  parser.add_option("--idle", &options->idle, "Idle clients").in_range(1, 65'536).with_default();
  parser.add_flag("--json", &options->json, "Write one JSON document");
  parser.on_run([options] {
    raise_open_files_max();  // each client of the crowd is one here and one in the server
    const Results results = measure(*options);
    options->json ? print_json(results, *options) : print_table(results, *options);
    return program::exit_success;
  });
}

}  // namespace hocket::bench
