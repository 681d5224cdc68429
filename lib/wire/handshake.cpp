#include "wire/handshake.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "wire/fields.hpp"
#include "wire/sha256.hpp"

namespace hocket::wire {
namespace {

constexpr std::size_t mark_bytes = 16;
constexpr std::size_t job_bytes = 12;  // of the mark, in a Hello
constexpr std::size_t job_shown_bytes_max = 64;
constexpr std::string_view tls_name = "TLS";

static_assert(hello_bytes ==
              magic.size() + 2 + 1 + 1 + job_bytes + sizeof(std::uint32_t) + nonce_bytes);
static_assert(challenge_bytes == magic.size() + 2 + 1 + nonce_bytes);
static_assert(proof_bytes == digest_bytes && answer_bytes == 1 + digest_bytes);

struct Hello {
  std::uint16_t version = 0;
  std::uint8_t purpose = 0;
  std::uint8_t has_secret = 0;
  std::string_view job;
  std::uint32_t rank = 0;
};

Hello parse_hello(std::string_view hello) noexcept {
  FieldReader reader(hello.substr(magic.size()));
  return {.version = reader.integer<std::uint16_t>(),
          .purpose = reader.integer<std::uint8_t>(),
          .has_secret = reader.integer<std::uint8_t>(),
          .job = reader.take(job_bytes),
          .rank = reader.integer<std::uint32_t>()};
}

std::string hello_mark(std::string_view job) { return job_mark(job).substr(0, job_bytes); }

std::string challenge(Verdict verdict, const Nonce& nonce) {
  std::string message(magic);
  FieldWriter writer(message);
  writer.integer(handshake_version);
  writer.integer(static_cast<std::uint8_t>(verdict));
  return message.append(as_text(nonce));
}

std::string prove(const Credentials& ours, std::string_view label, std::string_view transcript,
                  std::string_view channel) {
  const std::string said = std::string(label).append(transcript).append(channel);
  return std::string(as_text(hmac_sha256(ours.secret, said)));
}
std::string client_proof(const Credentials& ours, std::string_view transcript,
                         std::string_view channel) {
  return prove(ours, "hocket client proof", transcript, channel);
}
std::string server_proof(const Credentials& ours, std::string_view transcript,
                         std::string_view channel) {
  return prove(ours, "hocket server proof", transcript, channel);
}

/// What else begins with these bytes; empty when we know of nothing.
std::string_view protocol_of(std::string_view first) {
  using namespace std::string_view_literals;
  static constexpr std::pair<std::string_view, std::string_view> beginnings[] = {
      {"\x16\x03"sv, tls_name},
      {"\x15\x03"sv, tls_name},
      {"\0\xCE\xF7\x85\x3C"sv, "PyTorch's TCPStore"},
      {"GET "sv, "HTTP"},
      {"PUT "sv, "HTTP"},
      {"POST "sv, "HTTP"},
      {"HEAD "sv, "HTTP"},
      {"OPTIONS "sv, "HTTP"},
      {"CONNECT "sv, "HTTP"},
      {"HTTP/"sv, "HTTP"},
      {"SSH-"sv, "SSH"},
  };
  for (const auto& [beginning, name] : beginnings) {
    if (first.starts_with(beginning)) return name;
  }
  return {};
}

/// Whether a message comes in its turn and in its size; else the caller is wrong, not the other
/// side. The stage is then the last one, until the message has been found good.
Status take_stage(HandshakeStage& stage, HandshakeStage expected, std::string_view message,
                  std::size_t bytes) {
  const bool is_expected = std::exchange(stage, HandshakeStage::ended) == expected;
  if (!is_expected) {
    return {StatusCode::internal, "a message of the handshake was handed over out of turn"};
  }
  if (message.size() != bytes) {
    return {StatusCode::internal,
            fmt::format("a message of the handshake has {} bytes, and {} were handed over", bytes,
                        message.size())};
  }
  return {};
}

std::string shown_job(const Credentials& ours) {
  return ours.job.empty() ? "which has no name"
                          : fmt::format("'{}'", cut(ours.job, job_shown_bytes_max));
}

constexpr std::string_view same_version_hint = "run the same version of Hocket in every process";
constexpr std::string_view same_secret_hint =
    "give the same secret (HOCKET_SECRET) to every process of the job";
constexpr std::string_view same_tls_hint = "give both sides the same TLS setting (HOCKET_TLS)";
constexpr std::string_view other_job_hint =
    "is that a server which an earlier run left behind, or do two jobs use one port? Give every "
    "run "
    "a port or a job id of its own";

Status hinted(StatusCode code, std::string what, std::string_view hint,
              SourceLocation where = SourceLocation::here()) {
  return Status(code, std::move(what), where).with_hint(std::string(hint));
}

/// The server's verdict in words for the client.
Status refused_by_server(Verdict verdict, const Credentials& ours) {
  switch (verdict) {
    case Verdict::go_on:
      return {};
    case Verdict::version_differs:
      return hinted(StatusCode::mismatch, "the server speaks another version of the handshake",
                    same_version_hint);
    case Verdict::job_differs:
      return hinted(StatusCode::mismatch,
                    "the server belongs to another job than ours, " + shown_job(ours),
                    other_job_hint);
    case Verdict::secret_needed:
      return hinted(StatusCode::permission_denied, "the server asks for a secret, and we have none",
                    same_secret_hint);
    case Verdict::no_secret_here:
      return hinted(StatusCode::permission_denied,
                    "we have a secret, and the server has none with which to prove itself",
                    same_secret_hint);
    case Verdict::full:
      return {StatusCode::limit_exceeded, "the server has as many connections as it takes"};
    case Verdict::other_purpose:
      return hinted(StatusCode::mismatch, "the server is there for another purpose",
                    "does the address name the port of the store?");
    case Verdict::wrong_secret:
      return hinted(StatusCode::permission_denied, "the server has another secret than we",
                    same_secret_hint);
    case Verdict::tls_needed:
      return hinted(StatusCode::protocol_error, "the server asks for TLS, and we speak without it",
                    same_tls_hint);
    case Verdict::no_tls_here:
      break;  // said to clients that speak TLS: refused_outside_tls
  }
  return {StatusCode::protocol_error, fmt::format("the server's verdict is {}, which means nothing",
                                                  static_cast<int>(verdict))};
}

struct Refusal {
  Verdict verdict;
  Status why;
};

/// Why a client with this Hello is not let in.
std::optional<Refusal> judge(const Hello& hello, const Credentials& ours, Purpose purpose) {
  if (hello.version != handshake_version) {
    return Refusal{Verdict::version_differs,
                   hinted(StatusCode::mismatch,
                          fmt::format("the client speaks version {} of the handshake, and we {}",
                                      hello.version, handshake_version),
                          same_version_hint)};
  }
  if (hello.purpose != static_cast<std::uint8_t>(purpose)) {
    return Refusal{Verdict::other_purpose,
                   {StatusCode::mismatch, fmt::format("the client comes for purpose {}, and we "
                                                      "serve {}",
                                                      hello.purpose, static_cast<int>(purpose))}};
  }
  if (hello.job != hello_mark(ours.job)) {
    return Refusal{Verdict::job_differs,
                   hinted(StatusCode::mismatch,
                          "the client belongs to another job than ours, " + shown_job(ours),
                          "do two jobs use one port?")};
  }
  if (hello.has_secret == (ours.secret.empty() ? 0 : 1)) return std::nullopt;
  if (ours.secret.empty()) {
    return Refusal{Verdict::no_secret_here,
                   hinted(StatusCode::permission_denied,
                          "the client has a secret, and we have none", same_secret_hint)};
  }
  return Refusal{Verdict::secret_needed, hinted(StatusCode::permission_denied,
                                                "the client has no secret", same_secret_hint)};
}

}  // namespace

std::string job_mark(std::string_view job) {
  const Digest digest = sha256(std::string("hocket job").append(job));
  return std::string(as_text(digest).substr(0, mark_bytes));
}

std::optional<int> claimed_rank(std::string_view hello, std::string_view job) {
  if (protocol_of(hello) == tls_name) {
    const std::string mark = job_mark(job);
    const bool has_named_key = hello.find(hex(std::as_bytes(std::span(mark)))) != hello.npos;
    return has_named_key ? std::optional(-1) : std::nullopt;
  }
  if (hello.size() < hello_bytes || !hello.starts_with(magic)) return std::nullopt;
  const Hello said = parse_hello(hello);
  if (said.job != hello_mark(job)) return std::nullopt;
  const bool has_rank = said.version == handshake_version && said.rank < limits::world_size_max;
  return has_rank ? static_cast<int>(said.rank) : -1;
}

std::string refusal(Verdict verdict) { return challenge(verdict, Nonce{}); }

Status refused_outside_tls(std::string_view challenge) {
  constexpr std::size_t verdict_at = magic.size() + sizeof handshake_version;
  FieldReader reader(challenge.substr(std::min(challenge.size(), verdict_at)));
  const auto verdict = static_cast<Verdict>(reader.integer<std::uint8_t>());
  if (verdict == Verdict::full) return refused_by_server(verdict, {});
  return hinted(StatusCode::protocol_error,
                "the server speaks to us without TLS, and we ask for it", same_tls_hint);
}

Status check_first_bytes(std::string_view first) {
  const std::size_t count = std::min(first.size(), magic.size());
  if (first.substr(0, count) == magic.substr(0, count)) return {};
  const std::string_view name = protocol_of(first);
  if (name == tls_name) {
    return hinted(StatusCode::protocol_error, "the other side speaks TLS, and we do not",
                  same_tls_hint);
  }
  const auto bytes = std::as_bytes(std::span(first.substr(0, 16)));
  return {StatusCode::protocol_error,
          name.empty()
              ? fmt::format("the other side is not Hocket: it begins with the bytes {}", hex(bytes))
              : fmt::format("the other side is not Hocket: it speaks {}", name)};
}

ClientHandshake::ClientHandshake(const Credentials& ours, Purpose purpose, const Nonce& nonce,
                                 std::string_view channel, int rank)
    : ours_(ours), channel_(channel), hello_(magic) {
  FieldWriter writer(hello_);
  writer.integer(handshake_version);
  writer.integer(static_cast<std::uint8_t>(purpose));
  writer.integer(static_cast<std::uint8_t>(ours.secret.empty() ? 0 : 1));
  hello_.append(hello_mark(ours.job));
  writer.integer(static_cast<std::uint32_t>(rank));
  hello_.append(as_text(nonce));
}

Result<std::string> ClientHandshake::on_challenge(std::string_view challenge) {
  if (Status status = take_stage(stage_, HandshakeStage::first, challenge, challenge_bytes);
      !status.ok()) {
    return status;
  }
  if (Status status = check_first_bytes(challenge); !status.ok()) return status;
  FieldReader reader(challenge.substr(magic.size()));
  const auto version = reader.integer<std::uint16_t>();
  const auto verdict = static_cast<Verdict>(reader.integer<std::uint8_t>());
  if (version != handshake_version) {
    return hinted(StatusCode::mismatch,
                  fmt::format("the server speaks version {} of the handshake, and we {}", version,
                              handshake_version),
                  same_version_hint);
  }
  if (Status status = refused_by_server(verdict, ours_); !status.ok()) return status;
  transcript_ = hello_;
  transcript_.append(challenge);
  const std::string proof = client_proof(ours_, transcript_, channel_);
  transcript_ += proof;
  stage_ = HandshakeStage::second;
  return proof;
}

Status ClientHandshake::on_answer(std::string_view answer) {
  if (Status status = take_stage(stage_, HandshakeStage::second, answer, answer_bytes);
      !status.ok()) {
    return status;
  }
  const auto verdict = static_cast<Verdict>(answer[0]);
  if (Status status = refused_by_server(verdict, ours_); !status.ok()) return status;
  const std::string expected = server_proof(ours_, transcript_, channel_);
  if (equal_in_constant_time(answer.substr(1), expected)) return {};
  return hinted(StatusCode::permission_denied,
                "the server does not prove that it knows our secret; it may be a stranger's",
                same_secret_hint);
}

ServerHandshake::ServerHandshake(const Credentials& ours, Purpose purpose, const Nonce& nonce,
                                 std::string_view channel)
    : ours_(ours), purpose_(purpose), nonce_(nonce), channel_(channel) {}

ServerHandshake::Step ServerHandshake::on_hello(std::string_view hello) {
  if (Status status = take_stage(stage_, HandshakeStage::first, hello, hello_bytes); !status.ok()) {
    return {.why = std::move(status)};
  }
  if (Status status = check_first_bytes(hello); !status.ok()) {
    const bool is_tls = protocol_of(hello) == tls_name;
    return {.reply = is_tls ? refusal(Verdict::no_tls_here) : "", .why = std::move(status)};
  }
  if (auto refused = judge(parse_hello(hello), ours_, purpose_)) {
    return {.reply = refusal(refused->verdict), .why = std::move(refused->why)};
  }
  std::string reply = challenge(Verdict::go_on, nonce_);
  transcript_.append(hello).append(reply);
  stage_ = HandshakeStage::second;
  return {.reply = std::move(reply)};
}

ServerHandshake::Step ServerHandshake::on_proof(std::string_view proof) {
  if (Status status = take_stage(stage_, HandshakeStage::second, proof, proof_bytes);
      !status.ok()) {
    return {.why = std::move(status)};
  }
  std::string answer;
  FieldWriter writer(answer);
  if (!equal_in_constant_time(proof, client_proof(ours_, transcript_, channel_))) {
    writer.integer(static_cast<std::uint8_t>(Verdict::wrong_secret));
    return {.reply = answer.append(digest_bytes, '\0'),
            .why = hinted(StatusCode::permission_denied,
                          "the client does not prove that it knows our secret", same_secret_hint)};
  }
  writer.integer(static_cast<std::uint8_t>(Verdict::go_on));
  answer += server_proof(ours_, transcript_.append(proof), channel_);
  return {.reply = std::move(answer)};
}

}  // namespace hocket::wire
