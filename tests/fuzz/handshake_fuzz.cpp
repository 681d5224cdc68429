// The handshake against all that a stranger may send. Nothing but the secret may open it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wire/credentials.hpp"
#include "wire/handshake.hpp"

using hocket::wire::ClientHandshake;
using hocket::wire::Credentials;
using hocket::wire::Purpose;
using hocket::wire::ServerHandshake;

namespace {

// What strangers meet.
constexpr hocket::wire::Nonce client_nonce = {std::byte{1}};
constexpr hocket::wire::Nonce server_nonce = {std::byte{2}};

void require(bool is_kept, const char* rule) {
  if (is_kept) return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

/// The fuzzer's bytes, which end in zeros without end.
class Input {
 public:
  explicit Input(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] std::string text(std::size_t count) {
    std::string taken(rest_.substr(0, count));
    rest_.remove_prefix(taken.size());
    taken.resize(count, '\0');
    return taken;
  }
  [[nodiscard]] unsigned byte() { return static_cast<unsigned char>(text(1)[0]); }
  [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

/// An honest server; what it is told is anything, or right up to where the fuzzer begins.
void stranger_to_server(Input input, const Credentials& ours) {
  ServerHandshake server(ours, Purpose::store, server_nonce);
  const bool begins_right = input.byte() % 2 == 1;
  const std::string hello = begins_right
                                ? ClientHandshake(ours, Purpose::store, client_nonce).hello()
                                : input.text(hocket::wire::hello_bytes);
  const auto step = server.on_hello(hello);
  require(step.reply.empty() || step.reply.size() == hocket::wire::challenge_bytes,
          "a reply to a Hello is a Challenge or nothing");
  if (step.is_refused()) return;
  const auto last = server.on_proof(input.text(hocket::wire::proof_bytes));
  require(last.is_refused(), "a server lets nobody in who does not know the secret");
  require(last.reply.size() == hocket::wire::answer_bytes, "a reply to a Proof is an Answer");
}

void stranger_to_client(Input input, const Credentials& ours) {
  ClientHandshake client(ours, Purpose::store, client_nonce);
  const bool begins_right = input.byte() % 2 == 1;
  const std::string challenge =
      begins_right
          ? ServerHandshake(ours, Purpose::store, server_nonce).on_hello(client.hello()).reply
          : input.text(hocket::wire::challenge_bytes);
  const auto proof = client.on_challenge(challenge);
  if (!proof.ok()) return;
  require(!client.on_answer(input.text(hocket::wire::answer_bytes)).ok(),
          "a client trusts no server that does not know the secret");
}

/// Two honest sides, and between them who alters bytes as the fuzzer wants. Their nonces are their
/// own: it learns what is compared here, and as a stranger would only have to say it again.
void altered_on_the_way(Input input, const Credentials& ours) {
  bool is_altered = false;
  const auto pass = [&](std::string message) {
    for (unsigned edits = input.byte() % 4; edits > 0; --edits) {
      char& place = message[input.byte() % message.size()];
      place = static_cast<char>(static_cast<unsigned char>(place) ^ input.byte());
    }
    return message;
  };
  const auto send = [&](const std::string& message) {
    std::string passed = pass(message);
    is_altered = is_altered || passed != message;
    return passed;
  };
  ClientHandshake client(ours, Purpose::store, {std::byte{3}});
  ServerHandshake server(ours, Purpose::store, {std::byte{4}});
  const auto challenge = server.on_hello(send(client.hello()));
  if (challenge.reply.empty()) return require(is_altered, "an honest Hello is answered");
  const auto proof = client.on_challenge(send(challenge.reply));
  if (!proof.ok()) return require(is_altered, "an honest Challenge is taken");
  const auto answer = server.on_proof(send(*proof));
  require(answer.is_refused() == is_altered, "a server lets in if and only if nothing was altered");
  if (answer.reply.empty()) return;
  const bool is_trusted = client.on_answer(send(answer.reply)).ok();
  require(is_trusted != is_altered, "a client trusts if and only if nothing was altered");
}

void first_bytes(Input input) {
  const std::string_view bytes = input.rest();
  const bool is_refused = !hocket::wire::check_first_bytes(bytes).ok();
  bool was_refused = false;
  for (std::size_t count = 0; count <= std::min<std::size_t>(bytes.size(), 64); ++count) {
    const bool now = !hocket::wire::check_first_bytes(bytes.substr(0, count)).ok();
    require(now || !was_refused, "who was refused stays so, whatever comes");
    was_refused = now;
  }
  require(was_refused == is_refused, "bytes behind the first do not matter");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Credentials with_secret = {.job = "job", .secret = "a secret"};
  static const Credentials without_secret = {.job = "job"};
  Input input({reinterpret_cast<const char*>(data), size});
  const unsigned choice = input.byte();
  const Credentials& ours = choice / 4 % 2 == 0 ? with_secret : without_secret;
  switch (choice % 4) {
    case 0:
      stranger_to_server(input, with_secret);
      break;
    case 1:
      stranger_to_client(input, with_secret);
      break;
    case 2:
      altered_on_the_way(input, ours);
      break;
    default:
      first_bytes(input);
  }
  return 0;
}
