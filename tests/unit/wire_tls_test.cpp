#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/tls.hpp"
#include "wire/handshake.hpp"
#include "wire/tls.hpp"

using Catch::Matchers::Contains;
using hocket::Result;
using hocket::Status;
using hocket::StatusCode;
using hocket::testing::Certificates;
using hocket::testing::has_tls;
using hocket::wire::Credentials;
using hocket::wire::TlsContext;
using hocket::wire::TlsFilter;
using hocket::wire::TlsMode;
using hocket::wire::TlsOptions;
using Role = hocket::wire::TlsContext::Role;

namespace {

const Credentials our_credentials = {.job = "job 7", .secret = "an open secret"};
const Credentials other_secret = {.job = "job 7", .secret = "a sealed letter"};
const Credentials other_job = {.job = "job 8", .secret = "an open secret"};
const TlsOptions with_psk = {.mode = TlsMode::psk};

std::unique_ptr<TlsContext> context(Role role, const TlsOptions& options,
                                    const Credentials& credentials) {
  auto made = TlsContext::make(role, options, credentials);
  INFO(made.status().to_string());
  REQUIRE(made.ok());
  return *std::move(made);
}

struct End {
  std::unique_ptr<TlsContext> context;
  std::unique_ptr<TlsFilter> filter;
  Status status = {};  // of all that it was given
  std::string heard = {};

  End(Role role, const TlsOptions& options, const Credentials& credentials)
      : context(::context(role, options, credentials)), filter(context->new_filter().value()) {}

  /// Gives bytes to the filter in pieces, also after a failure: nothing must come of it.
  void give(std::string_view bytes, std::size_t piece_bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
      status = filter->receive(bytes.substr(0, piece_bytes), heard);
    }
  }
};

/// Carries bytes to and fro until both ends are silent.
void talk(End& client, End& server, std::size_t piece_bytes) {
  for (;;) {
    const std::string to_server = client.filter->take_output();
    server.give(to_server, piece_bytes);
    const std::string to_client = server.filter->take_output();
    client.give(to_client, piece_bytes);
    if (to_server.empty() && to_client.empty()) return;
  }
}

std::string text_of(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += fmt::format("{} ", i);
  return text.substr(0, bytes);
}

void require_talk(End& client, End& server, std::size_t piece_bytes) {
  talk(client, server, piece_bytes);
  INFO(client.status.to_string() << server.status.to_string());
  REQUIRE((client.status.ok() && server.status.ok()));
  REQUIRE((client.filter->is_ready() && server.filter->is_ready()));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{16} << 10, std::size_t{100'000}}) {
    const std::string text = text_of(bytes);
    REQUIRE(client.filter->send(text).ok());
    REQUIRE(server.filter->send("answer " + text).ok());
    client.heard.clear();
    server.heard.clear();
    talk(client, server, piece_bytes);
    REQUIRE(server.heard == text);
    REQUIRE(client.heard == "answer " + text);
  }
}

void require_refused(const End& client, const End& server) {
  for (const End* each : {&client, &server}) {
    REQUIRE(each->heard.empty());
    REQUIRE_FALSE((each->filter->is_ready() && each->status.ok()));
    REQUIRE(each->status.to_string().find(our_credentials.secret) == std::string::npos);
    REQUIRE(each->status.to_string().find(other_secret.secret) == std::string::npos);
  }
}

}  // namespace

TEST_CASE("two sides with one secret talk over TLS, in pieces of any size") {
  if (!has_tls()) return;
  for (const std::size_t piece_bytes : {std::size_t{1}, std::size_t{7}, std::size_t{64} << 10}) {
    End client(Role::client, with_psk, our_credentials);
    End server(Role::server, with_psk, our_credentials);
    REQUIRE_FALSE(client.filter->is_ready());
    require_talk(client, server, piece_bytes);
  }
}

TEST_CASE("what is sent can't be read on the way") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  End server(Role::server, with_psk, our_credentials);
  talk(client, server, 1 << 16);
  const std::string text = text_of(1000);
  REQUIRE(client.filter->send(text).ok());
  const std::string first = client.filter->take_output();
  REQUIRE(client.filter->send(text).ok());
  const std::string second = client.filter->take_output();
  REQUIRE(first.size() < text.size() + 100);
  REQUIRE(first != second);
  REQUIRE(first.find(text.substr(0, 10)) == std::string::npos);
}

TEST_CASE("contexts serve many connections, and each is bound to itself") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  End server(Role::server, with_psk, our_credentials);
  REQUIRE_FALSE(client.filter->channel_binding().ok());
  talk(client, server, 1 << 16);
  const std::string first = client.filter->channel_binding().value();
  REQUIRE(first == server.filter->channel_binding().value());
  REQUIRE(first.size() == 32);
  client.filter = client.context->new_filter().value();
  server.filter = server.context->new_filter().value();
  require_talk(client, server, 1 << 16);
  REQUIRE(client.filter->channel_binding().value() == server.filter->channel_binding().value());
  REQUIRE(client.filter->channel_binding().value() != first);
}

TEST_CASE("TLS with another secret is refused on both sides") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  End server(Role::server, with_psk, other_secret);
  talk(client, server, 1 << 16);
  require_refused(client, server);
  REQUIRE(client.status.code() == StatusCode::permission_denied);
  REQUIRE(server.status.code() == StatusCode::permission_denied);
  REQUIRE_THAT(client.status.to_string(), Contains("the same secret"));
}

TEST_CASE("TLS with another job is refused on both sides") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  End server(Role::server, with_psk, other_job);
  talk(client, server, 1 << 16);
  require_refused(client, server);
  REQUIRE(server.status.code() == StatusCode::mismatch);
  REQUIRE_THAT(server.status.to_string(), Contains("the client belongs to another job than ours"));
  REQUIRE(client.status.code() == StatusCode::permission_denied);
  REQUIRE_THAT(client.status.to_string(), Contains("job id"));
}

TEST_CASE("a side without TLS is told from a stranger") {
  if (!has_tls()) return;
  const hocket::wire::ClientHandshake plain(our_credentials, hocket::wire::Purpose::store, {});
  End server(Role::server, with_psk, our_credentials);
  server.give(plain.hello(), 1);
  REQUIRE(server.status.code() == StatusCode::protocol_error);
  REQUIRE_THAT(server.status.to_string(), Contains("the client speaks to us without TLS"));
  hocket::wire::ClientHandshake told(our_credentials, hocket::wire::Purpose::store, {});
  const Status why = told.on_challenge(server.filter->take_output()).status();
  REQUIRE(why.code() == StatusCode::protocol_error);
  REQUIRE_THAT(why.to_string(), Contains("the server asks for TLS, and we speak without it"));

  End client(Role::client, with_psk, our_credentials);
  hocket::wire::ServerHandshake plain_server(our_credentials, hocket::wire::Purpose::store, {});
  const std::string hello = client.filter->take_output().substr(0, hocket::wire::hello_bytes);
  const auto step = plain_server.on_hello(hello);
  REQUIRE_THAT(step.why.to_string(), Contains("the other side speaks TLS, and we do not"));
  client.give(step.reply, 64);
  REQUIRE(client.status.code() == StatusCode::protocol_error);
  REQUIRE_THAT(client.status.to_string(), Contains("the server speaks to us without TLS"));

  End late(Role::client, with_psk, our_credentials);
  late.give(hocket::wire::refusal(hocket::wire::Verdict::full), 1);
  REQUIRE(late.status.code() == StatusCode::limit_exceeded);

  End stranger(Role::client, with_psk, our_credentials);
  stranger.give("HTTP/1.1 400 Bad Request\r\n", 64);
  REQUIRE(stranger.status.code() == StatusCode::protocol_error);
  REQUIRE_THAT(stranger.status.to_string(), Contains("does not speak TLS") && Contains("HTTP"));
}

TEST_CASE("an altered record ends the connection, on both sides") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  End server(Role::server, with_psk, our_credentials);
  talk(client, server, 1 << 16);
  REQUIRE(client.filter->send("one").ok());
  REQUIRE(client.filter->send("two").ok());
  std::string records = client.filter->take_output();
  records.back() = static_cast<char>(records.back() ^ 1);
  server.give(records, 1);
  REQUIRE(server.heard == "one");
  REQUIRE(server.status.code() == StatusCode::protocol_error);
  REQUIRE(server.filter->send("three").code() == StatusCode::protocol_error);
  talk(client, server, 1 << 16);
  REQUIRE(client.status.code() == StatusCode::protocol_error);
}

TEST_CASE("a record that is sent again is refused") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  End server(Role::server, with_psk, our_credentials);
  talk(client, server, 1 << 16);
  REQUIRE(client.filter->send("once").ok());
  const std::string record = client.filter->take_output();
  server.give(record, 1 << 16);
  REQUIRE(server.status.ok());
  server.give(record, 1 << 16);
  REQUIRE(server.heard == "once");
  REQUIRE(server.status.code() == StatusCode::protocol_error);
}

TEST_CASE("any altered byte of the handshake is refused") {
  if (!has_tls()) return;
  const std::size_t hello_size =
      End(Role::client, with_psk, our_credentials).filter->take_output().size();
  for (std::size_t i = 5; i < hello_size; i += 3) {  // 5: behind the record's header
    End client(Role::client, with_psk, our_credentials);
    End server(Role::server, with_psk, our_credentials);
    std::string hello = client.filter->take_output();
    hello[i] = static_cast<char>(hello[i] ^ 1);
    server.give(hello, 1 << 16);
    talk(client, server, 1 << 16);
    REQUIRE_FALSE((client.filter->is_ready() && server.filter->is_ready()));
  }
}

TEST_CASE("an endless handshake is cut off") {
  if (!has_tls()) return;
  End server(Role::server, with_psk, our_credentials);
  // A ClientHello that claims the most that OpenSSL takes, in records of 16 KiB of zeros.
  std::string flood = std::string("\x16\x03\x01\x40\x00\x01\x01\xff\xff", 9);
  flood.append((16 << 10) - 4, '\0');
  for (int i = 0; i < 20; ++i) {
    flood.append("\x16\x03\x01\x40\x00", 5).append(16 << 10, '\0');
  }
  server.give(flood, 1000);
  REQUIRE(server.status.code() == StatusCode::limit_exceeded);
  REQUIRE_FALSE(server.filter->is_ready());
}

TEST_CASE("nothing is sent before both sides have proved themselves") {
  if (!has_tls()) return;
  End client(Role::client, with_psk, our_credentials);
  REQUIRE(client.filter->send("x").code() == StatusCode::internal);
  REQUIRE(client.status.ok());
}

TEST_CASE("TLS by pre-shared key needs a secret") {
  if (!has_tls()) return;
  const Status status =
      TlsContext::make(Role::client, with_psk, Credentials{.job = "job 7"}).status();
  REQUIRE(status.code() == StatusCode::invalid_argument);
  REQUIRE_THAT(status.to_string(), Contains("needs a secret"));
}

TEST_CASE("without OpenSSL's headers TLS is unsupported") {
  if (hocket::wire::tls_support().ok()) return;
  const Status status = TlsContext::make(Role::client, with_psk, our_credentials).status();
  REQUIRE(status.code() == StatusCode::unsupported);
  REQUIRE_FALSE(status.hint().empty());
}

TEST_CASE("two sides with certificates of one authority talk over TLS") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  End client(Role::client, certificates.options("one", "ours"), {});
  End server(Role::server, certificates.options("two", "ours"), {});
  require_talk(client, server, 1000);
}

TEST_CASE("a certificate of another authority is refused, whoever shows it") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  const auto spy = certificates.options("spy", "ours");
  const auto honest = certificates.options("two", "ours");
  for (const bool is_client : {true, false}) {
    End client(Role::client, is_client ? spy : honest, {});
    End server(Role::server, is_client ? honest : spy, {});
    talk(client, server, 1 << 16);
    const End& refusing = is_client ? server : client;
    const End& refused = is_client ? client : server;
    REQUIRE(refusing.status.code() == StatusCode::permission_denied);
    REQUIRE_THAT(refusing.status.to_string(),
                 Contains("certificate verify failed") && Contains("unable to get local issuer"));
    REQUIRE_FALSE(refusing.filter->is_ready());
    REQUIRE_FALSE(refused.status.ok());
  }
}

TEST_CASE("a secret in place of a certificate is refused, and the other way round") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  const auto by_certificate = certificates.options("one", "ours");
  for (const bool has_client_secret : {true, false}) {
    End client(Role::client, has_client_secret ? with_psk : by_certificate, our_credentials);
    End server(Role::server, has_client_secret ? by_certificate : with_psk, our_credentials);
    talk(client, server, 1 << 16);
    require_refused(client, server);
    REQUIRE_FALSE(server.status.ok());
    REQUIRE_FALSE(client.status.ok());
  }
}

TEST_CASE("certificate files that can't be used are named") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  const auto said = [](const TlsOptions& options) {
    const Status status = TlsContext::make(Role::server, options, our_credentials).status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    return status.to_string();
  };
  TlsOptions options = certificates.options("one", "ours");
  options.certificate_file = "/nonexistent/one.pem";
  REQUIRE_THAT(said(options), Contains("the certificate in '/nonexistent/one.pem'"));
  options = certificates.options("one", "ours");
  options.key_file = certificates.options("two", "ours").key_file;
  REQUIRE_THAT(said(options), Contains("two.key") && Contains("key values mismatch"));
  options = certificates.options("one", "ours");
  options.ca_file = "";
  REQUIRE_THAT(said(options), Contains("the authorities in ''"));
}
