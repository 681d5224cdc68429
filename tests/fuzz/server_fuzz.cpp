// The store's server against all that a connection may carry, before its client has proved who it
// is and after: whatever comes, others are served.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "net/socket.hpp"
#include "store/message.hpp"
#include "store/server.hpp"
#include "store/tcp_store.hpp"
#include "support/torch_words.hpp"
#include "wire/frame.hpp"
#include "wire/handshake.hpp"

namespace {

using hocket::Deadline;
using hocket::store::Server;
using hocket::store::TcpStore;
using namespace std::chrono_literals;
namespace torch = hocket::testing::torch_words;

const hocket::wire::Credentials credentials = {.job = "job", .secret = "a secret"};

void require(bool is_kept, const char* rule) {
  if (is_kept) return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

Deadline soon() { return Deadline::after(hocket::monotonic_clock(), 5s); }

std::unique_ptr<Server> start_server() {
  auto server =
      Server::start({.credentials = credentials, .serves_torch = true, .bytes_max = 1 << 20});
  require(server.ok(), "a server starts");
  return std::move(*server);
}

hocket::Fd connect(const Server& server) {
  const auto addresses = hocket::net::resolve(server.endpoint(), soon());
  require(addresses.ok(), "loopback has an address");
  auto socket = hocket::net::connect_to(addresses->front(), soon());
  require(socket.ok(), "whoever comes may connect");
  return std::move(*socket);
}

void prove_membership(int socket) {
  hocket::wire::ClientHandshake handshake(credentials, hocket::wire::Purpose::store, {});
  const auto exchange = [&](std::string_view message, std::size_t answer_bytes) {
    require(hocket::net::send_all(socket, message, soon()).ok(), "a member may speak");
    auto answer = hocket::net::receive_exactly(socket, answer_bytes, soon());
    require(answer.ok(), "a member is answered");
    return std::move(*answer);
  };
  const auto proof =
      handshake.on_challenge(exchange(handshake.hello(), hocket::wire::challenge_bytes));
  require(proof.ok(), "a member's Hello is taken");
  const std::string answer = exchange(*proof, hocket::wire::answer_bytes);
  require(handshake.on_answer(answer).ok(), "a member is let in");
}

/// The fuzzer's bytes, piece by piece.
class Input {
 public:
  explicit Input(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] unsigned byte() noexcept {
    if (rest_.empty()) return 0;
    const auto first = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    return first;
  }
  /// As many as the next byte says, if there are.
  [[nodiscard]] std::string_view piece() noexcept {
    const std::size_t bytes = byte();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

template <class Append>
std::string frames(Input input, Append append) {
  std::string bytes;
  for (std::uint64_t id = 0; !input.is_at_end(); ++id) {
    const std::size_t start = hocket::wire::open_frame(bytes);
    append(input, bytes);
    hocket::wire::close_frame(bytes, start, id);
  }
  return bytes;
}

/// A request that can be read; whether it makes sense is for the server to find out.
void append_request(Input& input, std::string& bytes) {
  hocket::store::Request request;
  request.kind = static_cast<hocket::store::Kind>(input.byte() % (hocket::store::kind_count + 1));
  for (unsigned keys = input.byte() % 4; keys > 0; --keys) {
    request.keys.emplace_back(1, static_cast<char>('a' + input.byte() % 4));
  }
  for (unsigned values = input.byte() % 4; values > 0; --values) {
    request.values.emplace_back(input.piece());
  }
  request.number = static_cast<std::int8_t>(input.byte());
  request.timeout = std::chrono::milliseconds(static_cast<std::int8_t>(input.byte()));
  encode(request, bytes);
}

std::string torch_key(Input& input) {
  const unsigned byte = input.byte();
  return torch::text((byte % 16 == 0 ? "" : "/") +
                     std::string(1, static_cast<char>('a' + byte / 16 % 4)));
}

/// A call of PyTorch's TCPStore that can be read.
void append_torch_call(Input& input, std::string& bytes) {
  const unsigned code = input.byte() % (torch::barrier + 2U);
  bytes += torch::byte(static_cast<int>(code));
  unsigned keys = 1;
  unsigned values = 0;  // behind each key
  switch (code) {
    case torch::num_keys:
    case torch::cancel_wait:
    case torch::list_keys:
      return;
    case torch::ping:
      bytes += "nonc";
      return;
    case torch::check:
    case torch::wait:
    case torch::multi_get:
    case torch::multi_set:
      keys = input.byte() % 4;
      bytes += torch::integer(keys);
      values = code == torch::multi_set ? 1 : 0;
      break;
    case torch::set:
    case torch::append:
    case torch::queue_push:
      values = 1;
      break;
    case torch::compare_set:
      values = 2;
      break;
    default:
      break;
  }
  for (; keys > 0; --keys) {
    bytes += torch_key(input);
    for (unsigned i = 0; i < values; ++i) bytes += torch::text(input.piece());
  }
  if (code == torch::add || code == torch::barrier) {
    bytes += torch::integer(static_cast<std::uint64_t>(static_cast<std::int8_t>(input.byte())));
  }
}

std::string torch_calls(std::string_view from) {
  std::string bytes = torch::greeting;
  for (Input input(from); !input.is_at_end();) append_torch_call(input, bytes);
  return bytes;
}

/// What the connection carries: anything, anything in whole frames, requests, or the same of a
/// client of PyTorch's TCPStore.
std::string compose(unsigned choice, std::string_view bytes) {
  switch (choice) {
    case 2:
      return frames(Input(bytes), [](Input& input, std::string& to) { to += input.piece(); });
    case 3:
      return frames(Input(bytes), append_request);
    case 4:
      return torch::greeting + std::string(bytes);
    case 5:
      return torch_calls(bytes);
    default:
      return std::string(bytes);
  }
}

/// Until the server has taken note of the end, and closed.
void drain(int socket) {
  ::shutdown(socket, SHUT_WR);
  char dropped[4096];
  for (;;) {
    const auto received = hocket::net::receive_some(socket, dropped, soon());
    if (received.ok()) continue;
    require(received.status().code() != hocket::StatusCode::timeout,
            "a connection at its end is closed");
    return;
  }
}

void others_are_served(const Server& server) {
  auto store =
      TcpStore::connect({.server = server.endpoint(), .credentials = credentials, .timeout = 5s});
  require(store.ok(), "others are let in");
  require((*store)->set("other", "value").ok(), "others may write");
  const auto value = (*store)->get("other");
  require(value.ok() && *value == "value", "others read what they wrote");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hocket::log::set_level(hocket::log::Level::error);  // strangers are warned of
  if (size == 0) return 0;
  const unsigned choice = data[0] % 6;
  const std::string bytes = compose(choice, {reinterpret_cast<const char*>(data) + 1, size - 1});
  const auto server = start_server();
  const hocket::Fd socket = connect(*server);
  if (choice > 0 && choice < 4) prove_membership(socket.get());
  // The server may close before it has read everything.
  static_cast<void>(hocket::net::send_all(socket.get(), bytes, soon()));
  drain(socket.get());
  others_are_served(*server);
  return 0;
}
