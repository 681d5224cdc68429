#include "wire/handshake.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/limits.hpp"
#include "support/catch.hpp"
#include "wire/sha256.hpp"

using hocket::as_text;
using hocket::Status;
using hocket::StatusCode;
using hocket::wire::answer_bytes;
using hocket::wire::challenge_bytes;
using hocket::wire::check_first_bytes;
using hocket::wire::claimed_rank;
using hocket::wire::ClientHandshake;
using hocket::wire::Credentials;
using hocket::wire::hello_bytes;
using hocket::wire::Nonce;
using hocket::wire::proof_bytes;
using hocket::wire::Purpose;
using hocket::wire::ServerHandshake;
using hocket::wire::Verdict;
using namespace std::literals;
using Catch::Matchers::Contains;

namespace {

const Credentials ours = {.job = "job 7", .secret = "an open secret"};
const Credentials other_secret = {.job = "job 7", .secret = "a sealed letter"};
const Credentials no_secret = {.job = "job 7"};
const Credentials other_job = {.job = "job 8", .secret = "an open secret"};

Nonce nonce(int seed) {
  Nonce bytes;
  bytes.fill(static_cast<std::byte>(seed));
  return bytes;
}

/// What each message is on its way; null leaves it as it is.
struct Tampering {
  std::function<void(std::string&)> hello = {};
  std::function<void(std::string&)> challenge = {};
  std::function<void(std::string&)> proof = {};
  std::function<void(std::string&)> answer = {};
};

struct Handshaken {
  Status client;
  Status server;  // also a failure when the client said nothing more

  [[nodiscard]] bool is_success() const { return client.ok() && server.ok(); }
};

void apply(const std::function<void(std::string&)>& tamper, std::string& message) {
  if (tamper) tamper(message);
}

/// A whole handshake.
Handshaken shake(ClientHandshake client, ServerHandshake server, const Tampering& tampering = {}) {
  const Status not_heard(StatusCode::peer_lost, "the other side has gone");
  std::string hello = client.hello();
  REQUIRE(hello.size() == hello_bytes);
  apply(tampering.hello, hello);
  auto [challenge, refused] = server.on_hello(hello);
  if (challenge.empty()) return {not_heard, refused};
  REQUIRE(challenge.size() == challenge_bytes);
  apply(tampering.challenge, challenge);
  auto proof = client.on_challenge(challenge);
  if (!proof.ok() || !refused.ok()) return {proof.status(), refused.ok() ? not_heard : refused};
  REQUIRE(proof->size() == proof_bytes);
  apply(tampering.proof, *proof);
  auto [answer, why] = server.on_proof(*proof);
  REQUIRE(answer.size() == answer_bytes);
  apply(tampering.answer, answer);
  return {client.on_answer(answer), why};
}

Handshaken shake(const Credentials& client, const Credentials& server,
                 const Tampering& tampering = {}) {
  return shake(ClientHandshake(client, Purpose::store, nonce(1)),
               ServerHandshake(server, Purpose::store, nonce(2)), tampering);
}

bool has_said(const Status& status, std::string_view text) {
  return status.to_string().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("two sides with one secret and job let each other in") {
  REQUIRE(shake(ours, ours).is_success());
  REQUIRE(shake(no_secret, no_secret).is_success());
  REQUIRE(shake(Credentials{}, Credentials{}).is_success());
}

TEST_CASE("the messages stay what they are on the wire") {
  const ClientHandshake client(ours, Purpose::store, nonce(1));
  const std::string hello = client.hello();
  REQUIRE(hello.substr(0, 12) == "\xC8HOCKET\n\x02\0\x01\x01"sv);
  REQUIRE(hello.substr(12, 12) == as_text(hocket::wire::sha256("hocket jobjob 7")).substr(0, 12));
  REQUIRE(hello.substr(24, 4) == "\xff\xff\xff\xff"sv);
  REQUIRE(ClientHandshake(ours, Purpose::store, nonce(1), {}, 258).hello().substr(24, 4) ==
          "\x02\x01\0\0"sv);
  REQUIRE(hello.substr(28) == std::string(32, '\x01'));
  ServerHandshake server(ours, Purpose::store, nonce(2));
  const std::string challenge = server.on_hello(hello).reply;
  REQUIRE(challenge == "\xC8HOCKET\n\x02\0\0"s + std::string(32, '\x02'));
  const std::string proof(as_text(
      hocket::wire::hmac_sha256("an open secret", "hocket client proof" + hello + challenge)));
  REQUIRE(*ClientHandshake(client).on_challenge(challenge) == proof);
  const std::string answer = server.on_proof(proof).reply;
  REQUIRE(answer ==
          "\0"s + std::string(as_text(hocket::wire::hmac_sha256(
                      "an open secret", "hocket server proof" + hello + challenge + proof))));
}

TEST_CASE("another secret is refused on both sides, and not told") {
  for (const auto& [client, server] : {std::pair(ours, other_secret), {other_secret, ours}}) {
    const Handshaken outcome = shake(client, server);
    REQUIRE(outcome.client.code() == StatusCode::permission_denied);
    REQUIRE(outcome.server.code() == StatusCode::permission_denied);
    for (const Status* each : {&outcome.client, &outcome.server}) {
      REQUIRE(has_said(*each, "secret"));
      REQUIRE_FALSE(has_said(*each, ours.secret));
      REQUIRE_FALSE(has_said(*each, other_secret.secret));
    }
  }
}

TEST_CASE("a server that only says that all is well does not prove it") {
  const Handshaken outcome =
      shake(ours, ours, {.answer = [](std::string& answer) { answer.assign(answer_bytes, '\0'); }});
  REQUIRE(outcome.client.code() == StatusCode::permission_denied);
  REQUIRE(has_said(outcome.client, "does not prove"));
}

TEST_CASE("a secret on one side only is refused, and both say so") {
  Handshaken outcome = shake(ours, no_secret);
  REQUIRE(outcome.client.code() == StatusCode::permission_denied);
  REQUIRE(has_said(outcome.client, "we have a secret, and the server has none"));
  REQUIRE(outcome.server.code() == StatusCode::permission_denied);
  REQUIRE(has_said(outcome.server, "the client has a secret, and we have none"));
  outcome = shake(no_secret, ours);
  REQUIRE(outcome.client.code() == StatusCode::permission_denied);
  REQUIRE(has_said(outcome.client, "the server asks for a secret, and we have none"));
  REQUIRE(outcome.server.code() == StatusCode::permission_denied);
  REQUIRE(has_said(outcome.server, "the client has no secret"));
}

TEST_CASE("a client that hides that it has no secret gains nothing") {
  const auto claim = [](std::string& hello) { hello[11] = 1; };
  const Handshaken outcome = shake(no_secret, ours, {.hello = claim});
  REQUIRE(outcome.server.code() == StatusCode::permission_denied);
}

TEST_CASE("another job is refused, and each names its own") {
  const Handshaken outcome = shake(ours, other_job);
  REQUIRE(outcome.client.code() == StatusCode::mismatch);
  REQUIRE(has_said(outcome.client, "the server belongs to another job than ours, 'job 7'"));
  REQUIRE(outcome.server.code() == StatusCode::mismatch);
  REQUIRE(has_said(outcome.server, "the client belongs to another job than ours, 'job 8'"));
  REQUIRE_FALSE(has_said(outcome.server, "job 7"));
}

TEST_CASE("who relays between two jobs of one secret is refused") {
  // It gives each side the job that it wants to see.
  const std::string hello_of_7 = ClientHandshake(ours, Purpose::store, nonce(1)).hello();
  const std::string hello_of_8 = ClientHandshake(other_job, Purpose::store, nonce(1)).hello();
  const auto rename = [&](std::string& hello) {
    REQUIRE(hello == hello_of_7);
    hello = hello_of_8;
  };
  const Handshaken outcome = shake(ours, other_job, {.hello = rename});
  REQUIRE(outcome.client.code() == StatusCode::permission_denied);
  REQUIRE(outcome.server.code() == StatusCode::permission_denied);
}

TEST_CASE("who relays between two TLS connections is refused") {
  const auto with_channels = [](std::string_view client, std::string_view server) {
    return shake(ClientHandshake(ours, Purpose::store, nonce(1), client),
                 ServerHandshake(ours, Purpose::store, nonce(2), server));
  };
  REQUIRE(with_channels("one", "one").is_success());
  for (const auto& [client, server] : {std::pair("one", "two"), {"one", ""}, {"", "one"}}) {
    const Handshaken outcome = with_channels(client, server);
    REQUIRE(outcome.client.code() == StatusCode::permission_denied);
    REQUIRE(outcome.server.code() == StatusCode::permission_denied);
  }
}

TEST_CASE("another purpose is refused, and a proof for one is none for the other") {
  const auto for_links = [](const Tampering& tampering) {
    return shake(ClientHandshake(ours, Purpose::data_link, nonce(1)),
                 ServerHandshake(ours, Purpose::store, nonce(2)), tampering);
  };
  const Handshaken plain = for_links({});
  REQUIRE(plain.client.code() == StatusCode::mismatch);
  REQUIRE(plain.server.code() == StatusCode::mismatch);
  const Handshaken disguised = for_links({.hello = [](std::string& hello) { hello[10] = 1; }});
  REQUIRE(disguised.client.code() == StatusCode::permission_denied);
  REQUIRE(disguised.server.code() == StatusCode::permission_denied);
}

TEST_CASE("another version is told on both sides") {
  const auto raise = [](std::string& message) { message[8] = 9; };
  const Handshaken newer_client = shake(ours, ours, {.hello = raise});
  REQUIRE(newer_client.server.code() == StatusCode::mismatch);
  REQUIRE(has_said(newer_client.server, "the client speaks version 9 of the handshake, and we 2"));
  REQUIRE(newer_client.client.code() == StatusCode::mismatch);
  REQUIRE(has_said(newer_client.client, "another version"));
  const Handshaken newer_server = shake(ours, ours, {.challenge = raise});
  REQUIRE(newer_server.client.code() == StatusCode::mismatch);
  REQUIRE(has_said(newer_server.client, "the server speaks version 9 of the handshake, and we 2"));
}

TEST_CASE("what was recorded of one handshake does not open another") {
  ClientHandshake client(ours, Purpose::store, nonce(1));
  ServerHandshake server(ours, Purpose::store, nonce(2));
  const std::string hello = client.hello();
  const std::string challenge = server.on_hello(hello).reply;
  const std::string proof = *client.on_challenge(challenge);
  const std::string answer = server.on_proof(proof).reply;

  ServerHandshake next_server(ours, Purpose::store, nonce(3));
  REQUIRE_FALSE(next_server.on_hello(hello).is_refused());
  REQUIRE(next_server.on_proof(proof).why.code() == StatusCode::permission_denied);

  ClientHandshake next_client(ours, Purpose::store, nonce(4));
  REQUIRE(next_client.on_challenge(challenge).ok());
  REQUIRE(next_client.on_answer(answer).code() == StatusCode::permission_denied);
}

TEST_CASE("what a side has said is not taken from another") {
  ClientHandshake client(ours, Purpose::store, nonce(1));
  ServerHandshake server(ours, Purpose::store, nonce(2));
  const std::string challenge = server.on_hello(client.hello()).reply;
  const std::string proof = *client.on_challenge(challenge);

  SECTION("the client's proof as the server's") {
    REQUIRE(client.on_answer("\0"s + proof).code() == StatusCode::permission_denied);
  }
  SECTION("the server's proof as a client's, in the same words and with the same nonces") {
    ServerHandshake twin(ours, Purpose::store, nonce(2));
    REQUIRE(twin.on_hello(client.hello()).reply == challenge);
    const std::string of_server = server.on_proof(proof).reply.substr(1);
    REQUIRE(twin.on_proof(of_server).why.code() == StatusCode::permission_denied);
  }
  SECTION("its own Hello as a Challenge") {
    ClientHandshake mirrored(ours, Purpose::store, nonce(1));
    REQUIRE_FALSE(mirrored.on_challenge(mirrored.hello().substr(0, challenge_bytes)).ok());
  }
}

TEST_CASE("one wrong bit in any message is refused") {
  const auto flip = [](std::size_t bit) {
    return [bit](std::string& message) {
      message[bit / 8] = static_cast<char>(message[bit / 8] ^ (1 << bit % 8));
    };
  };
  for (const Credentials& each : {ours, no_secret}) {
    for (std::size_t bit = 0; bit < 8 * hello_bytes; ++bit) {
      const Handshaken outcome = shake(each, each, {.hello = flip(bit)});
      REQUIRE((!outcome.client.ok() && !outcome.server.ok()));
    }
    for (std::size_t bit = 0; bit < 8 * challenge_bytes; ++bit) {
      const Handshaken outcome = shake(each, each, {.challenge = flip(bit)});
      REQUIRE((!outcome.client.ok() && !outcome.server.ok()));
    }
    for (std::size_t bit = 0; bit < 8 * proof_bytes; ++bit) {
      const Handshaken outcome = shake(each, each, {.proof = flip(bit)});
      REQUIRE((!outcome.client.ok() && !outcome.server.ok()));
    }
    for (std::size_t bit = 0; bit < 8 * answer_bytes; ++bit) {
      REQUIRE_FALSE(shake(each, each, {.answer = flip(bit)}).client.ok());
    }
  }
}

TEST_CASE("messages of another size or out of turn are a defect of the caller") {
  for (const std::size_t size : {std::size_t{0}, hello_bytes - 1, hello_bytes + 1}) {
    ServerHandshake server(ours, Purpose::store, nonce(2));
    REQUIRE(server.on_hello(std::string(size, 'x')).why.code() == StatusCode::internal);
  }
  ClientHandshake client(ours, Purpose::store, nonce(1));
  ServerHandshake server(ours, Purpose::store, nonce(2));
  const std::string challenge = server.on_hello(client.hello()).reply;
  REQUIRE(
      ServerHandshake(ours, Purpose::store, nonce(2)).on_proof(std::string(32, 'x')).why.code() ==
      StatusCode::internal);
  REQUIRE(ClientHandshake(ours, Purpose::store, nonce(2)).on_answer(std::string(33, 'x')).code() ==
          StatusCode::internal);

  const std::string proof = *client.on_challenge(challenge);
  REQUIRE(client.on_challenge(challenge).status().code() == StatusCode::internal);
  REQUIRE(server.on_proof(proof).why.ok());
  REQUIRE(server.on_proof(proof).why.code() == StatusCode::internal);           // a second guess
  REQUIRE(server.on_hello(client.hello()).why.code() == StatusCode::internal);  // a nonce again
}

TEST_CASE("a server that is full says so, whoever asks") {
  ClientHandshake client(ours, Purpose::store, nonce(1));
  const Status status = client.on_challenge(hocket::wire::refusal(Verdict::full)).status();
  REQUIRE(status.code() == StatusCode::limit_exceeded);
  REQUIRE(has_said(status, "as many connections as it takes"));
}

TEST_CASE("a verdict that nobody has defined is no consent") {
  for (int verdict = 1; verdict < 256; ++verdict) {
    ClientHandshake client(ours, Purpose::store, nonce(1));
    REQUIRE_FALSE(client.on_challenge(hocket::wire::refusal(static_cast<Verdict>(verdict))).ok());
  }
}

TEST_CASE("the first bytes tell who else is there") {
  const auto said = [](std::string_view first) { return check_first_bytes(first).to_string(); };
  REQUIRE_THAT(said("GET / HTTP/1.1\r\n"), Contains("it speaks HTTP"));
  REQUIRE_THAT(said("HTTP/1.1 400 Bad Request"), Contains("it speaks HTTP"));
  REQUIRE_THAT(said("SSH-2.0-OpenSSH_9.2"), Contains("it speaks SSH"));
  REQUIRE_THAT(said("\x16\x03\x01\x02\x00"sv), Contains("speaks TLS, and we do not"));
  REQUIRE_THAT(said("\0\xCE\xF7\x85\x3C"sv), Contains("PyTorch's TCPStore"));
  REQUIRE_THAT(said("\xff\r\n"), Contains("begins with the bytes ff0d0a"));
  REQUIRE_THAT(said(std::string(1000, '\x01')),
               Contains("bytes 01010101010101010101010101010101 "));
  const std::string hello = ClientHandshake(ours, Purpose::store, nonce(1)).hello();
  for (std::size_t count = 0; count <= hello.size(); ++count) {
    REQUIRE(check_first_bytes(hello.substr(0, count)).ok());
    std::string wrong = hello.substr(0, count) + "?";
    REQUIRE(check_first_bytes(wrong).ok() == (count >= hocket::wire::magic.size()));
  }
}

TEST_CASE("strangers get no answer, but for a client that speaks TLS") {
  const auto answer_to = [](std::string_view beginning) {
    std::string hello(beginning);
    hello.resize(hello_bytes, ' ');
    return ServerHandshake(ours, Purpose::store, nonce(2)).on_hello(hello);
  };
  const auto http = answer_to("GET / HTTP/1.1\r\n");
  REQUIRE(http.why.code() == StatusCode::protocol_error);
  REQUIRE(http.reply.empty());
  const auto tls = answer_to("\x16\x03\x01");
  REQUIRE(tls.why.code() == StatusCode::protocol_error);
  REQUIRE(tls.reply == hocket::wire::refusal(Verdict::no_tls_here));
}

TEST_CASE("a Hello says which rank it comes from, to those of its job") {
  const Credentials red = {.job = "red", .secret = "hush"};
  const auto said = [&](int rank) {
    return ClientHandshake(red, Purpose::store, nonce(1), {}, rank).hello();
  };
  REQUIRE(claimed_rank(said(7), "red") == 7);
  REQUIRE(claimed_rank(said(0), "red") == 0);
  REQUIRE(claimed_rank(said(-1), "red") == -1);
  REQUIRE(claimed_rank(said(hocket::limits::world_size_max), "red") == -1);
  REQUIRE_FALSE(claimed_rank(said(7), "blue"));
  REQUIRE_FALSE(claimed_rank(said(7).substr(1), "red"));
  REQUIRE_FALSE(claimed_rank("", "red"));
  REQUIRE_FALSE(claimed_rank(std::string(hello_bytes, ' '), "red"));
  // Of another version only the job can be read.
  std::string other = said(7);
  other[hocket::wire::magic.size()] = 9;
  REQUIRE(claimed_rank(other, "red") == -1);
}
