// How two sides prove to each other that they belong to one job, before either believes a length
// that came from the network. Four messages, each of one fixed size:
//
//   Hello      client  magic 8, version 2, purpose 1, has secret 1, job 12, rank 4, nonce 32
//   Challenge  server  magic 8, version 2, verdict 1, nonce 32
//   Proof      client  HMAC(secret, "hocket client proof", Hello, Challenge, channel) 32
//   Answer     server  verdict 1, HMAC(secret, "hocket server proof", Hello, Challenge, Proof,
//                      channel) 32
//
// The job is known by the first bytes of SHA-256("hocket job", job). The rank is the one that the
// client says it is, or 2^32 - 1; it grants nothing, and serves to name a client that is refused. A
// side that refuses says why
// in its verdict, and the connection ends. Nothing is ever agreed on but this: a side with a secret
// does not talk to one without. Two sides without one exchange the same messages with an empty key,
// which proves nothing.
//
// Hello and Challenge keep their size and their first ten bytes in all versions, so that old and
// new tell each other apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "wire/credentials.hpp"

namespace hocket::wire {

/// Its first byte is none with which another protocol begins.
inline constexpr std::string_view magic = "\xC8HOCKET\n";
inline constexpr std::uint16_t handshake_version = 2;

inline constexpr std::size_t nonce_bytes = 32;
inline constexpr std::size_t hello_bytes = 60;
inline constexpr std::size_t challenge_bytes = 43;
inline constexpr std::size_t proof_bytes = 32;
inline constexpr std::size_t answer_bytes = 33;

/// Random, and never used twice.
using Nonce = std::array<std::byte, nonce_bytes>;

/// What a connection is for: a proof for one is none for the other.
enum class Purpose : std::uint8_t { store = 1, data_link = 2, control = 3 };

enum class Verdict : std::uint8_t {
  go_on = 0,
  version_differs = 1,
  job_differs = 2,
  secret_needed = 3,
  no_secret_here = 4,
  full = 5,
  other_purpose = 6,
  wrong_secret = 7,
  no_tls_here = 8,
  tls_needed = 9,
};

/// By what a job is known on the wire: 16 bytes.
[[nodiscard]] std::string job_mark(std::string_view job);

/// Which rank the sender of this Hello says it is, -1 if it does not say so; nothing if it names
/// another job. Also of the first message of a client that speaks TLS by the job's secret, which
/// says no rank. Nothing of it is proven.
[[nodiscard]] std::optional<int> claimed_rank(std::string_view hello, std::string_view job);

/// A Challenge that only refuses; for a server that is full, also before the Hello has come.
[[nodiscard]] std::string refusal(Verdict verdict);

/// Why a client that speaks TLS is answered by a Challenge outside of it, whole or in part: the
/// server is full (limit_exceeded) or has no TLS (protocol_error).
[[nodiscard]] Status refused_outside_tls(std::string_view challenge);

/// Fails as soon as the first bytes of a connection, however few they are yet, can't be those of a
/// Hello or a Challenge, and names what they look like.
[[nodiscard]] Status check_first_bytes(std::string_view first);

enum class HandshakeStage : std::uint8_t { first, second, ended };

/// The client's side: hello, on_challenge, on_answer, each once and in this order.
class ClientHandshake {
 public:
  /// Borrows the credentials. `channel` is empty, or what only the two ends of the TLS connection
  /// below know (TlsFilter::channel_binding). `rank` is -1 for a client that is none.
  ClientHandshake(const Credentials& ours, Purpose purpose, const Nonce& nonce,
                  std::string_view channel = {}, int rank = -1);

  [[nodiscard]] std::string hello() const { return hello_; }
  /// Gives the Proof. Fails with mismatch (version, job, purpose), permission_denied (only one side
  /// has a secret), limit_exceeded (the server is full) or protocol_error.
  [[nodiscard]] Result<std::string> on_challenge(std::string_view challenge);
  /// From a success on the server is known to have the secret. Else permission_denied.
  [[nodiscard]] Status on_answer(std::string_view answer);

 private:
  const Credentials& ours_;
  std::string channel_;
  std::string hello_;
  std::string transcript_ = {};  // what has been said
  HandshakeStage stage_ = HandshakeStage::first;
};

/// The server's side: on_hello, on_proof, each once and in this order.
class ServerHandshake {
 public:
  struct Step {
    std::string reply = {};  // to be sent in any case, and may be empty
    Status why = {};         // a failure: close the connection after the reply

    [[nodiscard]] bool is_refused() const noexcept { return !why.ok(); }
  };

  /// Borrows the credentials. `channel` as the client's.
  ServerHandshake(const Credentials& ours, Purpose purpose, const Nonce& nonce,
                  std::string_view channel = {});

  /// Gives the Challenge.
  [[nodiscard]] Step on_hello(std::string_view hello);
  /// Gives the Answer. When it is not refused, the client is known to have the secret.
  [[nodiscard]] Step on_proof(std::string_view proof);

 private:
  const Credentials& ours_;
  Purpose purpose_;
  Nonce nonce_;
  std::string channel_;
  std::string transcript_ = {};  // what has been said
  HandshakeStage stage_ = HandshakeStage::first;
};

}  // namespace hocket::wire
