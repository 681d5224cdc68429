#include "store.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/text.hpp"
#include "failure.hpp"
#include "run/signals.hpp"
#include "store/server.hpp"
#include "store/tcp_store.hpp"
#include "world/tls_settings.hpp"

namespace hocket::cli {
namespace {

constexpr std::string_view usual_address = "127.0.0.1:29500";
constexpr std::string_view usual_timeout = "10s";

struct StoreOptions {
  std::string listen;
  std::string memory = "1G";
  std::string at;
  std::string job;
  std::string timeout;
  std::string key;
  std::string value;
  std::vector<std::string> keys;
  std::int64_t amount = 0;
  bool serves_torch = false;
};

/// The command line goes before the environment; the secret is never on the command line.
Result<wire::Credentials> credentials(const StoreOptions& options) {
  const Config& config = process_config();
  auto secret = read_secret(config);
  if (!secret.ok()) return secret.status();
  return wire::Credentials{.job = options.job.empty() ? config.get(variables::job) : options.job,
                           .secret = std::move(*secret)};
}

/// From now on, what would end this process is waited for instead; what is ignored (nohup) stays
/// so.
sigset_t hold_end_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!run::is_ignored(signal)) sigaddset(&ends, signal);
  }
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  return ends;
}

/// Where to serve: --listen, or --at as the other commands have it.
Result<net::Endpoint> listen_endpoint(const StoreOptions& options) {
  if (!options.timeout.empty()) {
    return Status(StatusCode::invalid_argument, "hocket store serve takes no --timeout")
        .with_hint("leave it out: the store is served until a signal ends it");
  }
  if (!options.listen.empty() && !options.at.empty() && options.listen != options.at) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("--listen {} and --at {} name two addresses", options.listen,
                              options.at))
        .with_hint("give one of them");
  }
  if (!options.listen.empty()) return net::parse_endpoint(options.listen);
  return net::parse_endpoint(options.at.empty() ? usual_address : options.at);
}

int serve(const StoreOptions& options) {
  const auto endpoint = listen_endpoint(options);
  if (!endpoint.ok()) return fail("hocket store", endpoint.status());
  const auto memory = parse_size(options.memory);
  if (!memory) {
    return fail("hocket store",
                Status(StatusCode::invalid_argument,
                       fmt::format("--memory {} is no size such as 64M or 1G", options.memory)));
  }
  auto who = credentials(options);
  if (!who.ok()) return fail("hocket store", who.status());
  auto tls = world::read_tls_settings(process_config());
  if (!tls.ok()) return fail("hocket store", tls.status());
  raise_open_files_max();  // every client is one
  const sigset_t ends = hold_end_signals();
  const bool is_open = process_config().get(variables::allow_without_secret);
  const std::string_view proof = who->secret.empty() ? "no secret" : "a secret";
  const std::string_view cover = tls->mode == wire::TlsMode::off ? "" : " over TLS";
  const auto server = store::Server::start({.listen = *endpoint,
                                            .credentials = std::move(*who),
                                            .tls = std::move(*tls),
                                            .allow_without_secret = is_open,
                                            .serves_torch = options.serves_torch,
                                            .bytes_max = *memory});
  if (!server.ok()) return fail("hocket store", server.status());
  fmt::print("serving a store at {} with {}{}{}\n", (*server)->endpoint().to_string(), proof, cover,
             options.serves_torch ? ", and clients of PyTorch's TCPStore without one" : "");
  std::fflush(stdout);
  int received = 0;
  sigwait(&ends, &received);
  return program::exit_success;
}

Result<std::unique_ptr<store::TcpStore>> open(const StoreOptions& options) {
  const std::string at = options.at.empty() ? process_config().get(variables::store) : options.at;
  if (at.empty()) {
    return Status(StatusCode::invalid_argument, "which store?")
        .with_hint("give --at HOST:PORT, or set HOCKET_STORE");
  }
  auto endpoint = net::parse_endpoint(at);
  if (!endpoint.ok()) return endpoint.status();
  const auto timeout = parse_duration(options.timeout.empty() ? usual_timeout : options.timeout);
  if (!timeout) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("--timeout {} is no duration such as 10s", options.timeout));
  }
  auto who = credentials(options);
  if (!who.ok()) return who.status();
  auto tls = world::read_tls_settings(process_config());
  if (!tls.ok()) return tls.status();
  return store::TcpStore::connect({.server = std::move(*endpoint),
                                   .credentials = std::move(*who),
                                   .tls = std::move(*tls),
                                   .timeout = *timeout});
}

/// The bytes as they are, and the end of a line where a person reads them.
void write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

Status show_time_of_trip(store::Store& store) {
  constexpr int trips = 100;
  const Instant start = monotonic_clock().now();
  for (int i = 0; i < trips; ++i) {
    if (Status status = store.ping(); !status.ok()) return status;
  }
  const std::chrono::duration<double, std::micro> time = monotonic_clock().now() - start;
  write(fmt::format("{} answers in {:.0f} us", store.describe(), time.count() / trips));
  return {};
}

Status get(store::Store& store, const StoreOptions& options) {
  auto value = store.get(options.key);
  if (value.ok()) write(*value);
  return value.status();
}

Status add(store::Store& store, const StoreOptions& options) {
  auto sum = store.add(options.key, options.amount);
  if (sum.ok()) write(std::to_string(*sum));
  return sum.status();
}

Status list_keys(store::Store& store, const StoreOptions& options) {
  auto keys = store.keys(options.key);
  if (!keys.ok()) return keys.status();
  for (const std::string& key : *keys) write(key);
  return {};
}

Status delete_key(store::Store& store, const StoreOptions& options) {
  const auto existed = store.delete_key(options.key);
  if (!existed.ok() || *existed) return existed.status();
  return Status(StatusCode::not_found, fmt::format("there is no key {}", quote(options.key)));
}

using Ask = Status (*)(store::Store& store, const StoreOptions& options);

/// A command that asks a store for something.
program::Parser& add_question(program::Parser& parser, const std::shared_ptr<StoreOptions>& options,
                              const char* name, const char* help, Ask ask) {
  program::Parser& question = parser.add_command(name, help);
  question.on_run([options, ask] {
    const auto store = open(*options);
    if (!store.ok()) return fail("hocket store", store.status());
    const Status status = ask(**store, *options);
    return status.ok() ? program::exit_success : fail("hocket store", status);
  });
  return question;
}

void add_questions(program::Parser& parser, const std::shared_ptr<StoreOptions>& options) {
  const auto add_one = [&](const char* name, const char* help, Ask ask) -> program::Parser& {
    return add_question(parser, options, name, help, ask);
  };
  add_one("get", "Print a value, once it is there", get)
      .add_option("key", &options->key)
      .required();
  program::Parser& setting =
      add_one("set", "Set a value", [](store::Store& store, const StoreOptions& given) {
        return store.set(given.key, given.value);
      });
  setting.add_option("key", &options->key).required();
  setting.add_option("value", &options->value).required();
  program::Parser& adding = add_one("add", "Add to a number and print the sum", add);
  adding.add_option("key", &options->key).required();
  adding.add_option("amount", &options->amount).required();
  add_one("keys", "List the keys", list_keys)
      .add_option("prefix", &options->key, "only those that begin with it");
  program::Parser& waiting = add_one(
      "wait", "Wait until the keys are there",
      [](store::Store& store, const StoreOptions& given) { return store.wait(given.keys); });
  waiting.add_option("keys", &options->keys).required();
  add_one("delete", "Delete a key", delete_key).add_option("key", &options->key).required();
  add_one("ping", "Tell how long the store takes to answer",
          [](store::Store& store, const StoreOptions&) { return show_time_of_trip(store); });
}

}  // namespace

void add_store_command(program::Parser& program) {
  const auto options = std::make_shared<StoreOptions>();
  program::Parser& parser = program.add_command("store", "Serve a store, or look into one");
  parser.set_footer(
      "The secret is taken from HOCKET_SECRET or HOCKET_SECRET_FILE, and HOCKET_TLS says whether "
      "the connection is encrypted.");
  parser.share_options();
  parser.add_option("--job", &options->job, "The store's job (default: HOCKET_JOB)");
  parser.add_option("--at", &options->at, "HOST:PORT of the store (default: HOCKET_STORE)");
  parser.add_option("--timeout", &options->timeout,
                    fmt::format("For the store to answer (default: {})", usual_timeout));
  program::Parser& serving = parser.add_command("serve", "Serve a store until told to end");
  serving.add_option(
      "--listen", &options->listen,
      fmt::format("HOST:PORT, as --at; port 0 picks a free one (default: {})", usual_address));
  serving.add_option("--memory", &options->memory, "The most that the store may hold")
      .with_default();
  serving.add_flag("--torch", &options->serves_torch,
                   "Also serve clients of PyTorch's TCPStore, which prove no secret");
  serving.on_run([options] { return serve(*options); });
  add_questions(parser, options);
}

}  // namespace hocket::cli
