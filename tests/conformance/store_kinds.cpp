#include <mutex>
#include <utility>

#include "hocket/store.hpp"

#include "bridge/program_store.hpp"
#include "conformance/store_conformance.hpp"
#include "store/file_store.hpp"
#include "store/hash_store.hpp"
#include "store/prefix_store.hpp"
#include "store/server.hpp"
#include "store/tcp_store.hpp"
#include "support/temporary_folder.hpp"
#include "support/tls.hpp"

namespace hocket::testing {
namespace {

const wire::Credentials tls_credentials = {.job = "conformance", .secret = "of every process"};
const wire::TlsOptions by_secret = {.mode = wire::TlsMode::psk};

/// Keys that a part of a store must not see.
std::unique_ptr<store::Store> with_neighbours(std::unique_ptr<store::Store> whole) {
  for (const char* key : {"", "k", "part", "part0/k", "partk", "zone/k"}) {
    require(whole->set(key, "not ours"));
  }
  return whole;
}

/// The words before and after the first space.
std::pair<std::string, std::string> split(const std::string& text) {
  const std::size_t end = text.find(' ');
  return {text.substr(0, end), text.substr(end + 1)};
}

}  // namespace

Subject Hash::make() { return {.store = std::make_unique<store::HashStore>()}; }

Subject Prefix::make() {
  auto whole = with_neighbours(std::make_unique<store::HashStore>());
  return {.store = std::make_unique<store::PrefixStore>(std::move(whole), "part")};
}

Subject PrefixInPrefix::make() {
  auto whole = with_neighbours(std::make_unique<store::HashStore>());
  auto part = std::make_unique<store::PrefixStore>(std::move(whole), "zone/part");
  return {.store = std::make_unique<store::PrefixStore>(with_neighbours(std::move(part)), "part")};
}

Subject File::make() {
  auto folder = std::make_shared<TemporaryFolder>();
  const std::string path = folder->path() + "/store";
  return {.resources = std::move(folder),
          .store = reach("file " + path),
          .address = "file " + path,
          .serves_in_turn = false};
}

Subject Tcp::make() {
  std::shared_ptr<store::Server> server = require(store::Server::start({}));
  const std::string address = "tcp " + server->endpoint().to_string();
  return {.resources = std::move(server), .store = reach(address), .address = address};
}

Subject Tls::make() {
  if (!has_tls()) return {};
  std::shared_ptr<store::Server> server =
      require(store::Server::start({.credentials = tls_credentials, .tls = by_secret}));
  const std::string address = "tls " + server->endpoint().to_string();
  return {.resources = std::move(server), .store = reach(address), .address = address};
}

Subject Program::make() {
  return {.store = std::make_unique<bridge::ProgramStore>(make_local_store())};
}

std::unique_ptr<store::Store> reach(const std::string& address) {
  const auto [kind, place] = split(address);
  if (kind == "file") return require(store::FileStore::open({.path = place}));
  if (kind == "tcp") {
    return require(store::TcpStore::connect({.server = require(net::parse_endpoint(place))}));
  }
  if (kind == "tls") {
    return require(store::TcpStore::connect({.server = require(net::parse_endpoint(place)),
                                             .credentials = tls_credentials,
                                             .tls = by_secret}));
  }
  FAIL("no store at " << address);
  return nullptr;
}

std::unique_ptr<store::Store> clone(store::Store& store) { return require(store.clone()); }

void require_failure(const store::Store& store, const Status& status, StatusCode code,
                     const std::vector<std::string>& words) {
  INFO(status.to_string());
  REQUIRE_FALSE(status.ok());
  REQUIRE(status.code() == code);
  REQUIRE(status.what().starts_with(store.describe()));
  for (const std::string& word : words) {
    INFO(word);
    REQUIRE(status.what().find(word) != std::string_view::npos);
  }
}

std::vector<std::string> in_threads(int count, const std::function<std::string(int)>& work) {
  std::mutex mutex;
  std::vector<std::string> failures;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      std::string failure = work(i);
      const std::lock_guard lock(mutex);
      if (!failure.empty()) failures.push_back(std::move(failure));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

}  // namespace hocket::testing
