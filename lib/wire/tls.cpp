#include "wire/tls.hpp"

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "wire/handshake.hpp"
#include "wire/openssl.hpp"
#include "wire/sha256.hpp"

namespace hocket::wire {
namespace {

constexpr std::size_t piece_bytes = 16 << 10;  // the most that a record holds
constexpr const char* ciphersuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char ciphersuite_code[] = {0x13, 0x01};

/// Frees with a function of the table.
struct Free {
  const OpenSsl* api;
  void operator()(SSL* ssl) const noexcept { api->SSL_free(ssl); }
  void operator()(SSL_CTX* context) const noexcept { api->SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const noexcept { api->SSL_SESSION_free(session); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

/// Takes what OpenSSL has noted in this thread.
std::string openssl_words(const OpenSsl& api) {
  std::string words;
  while (const unsigned long error = api.ERR_get_error()) {
    const char* const reason = api.ERR_reason_error_string(error);
    words += fmt::format("{}{}", words.empty() ? "" : "; ",
                         reason != nullptr ? reason : fmt::format("error {:x}", error));
  }
  return words.empty() ? "no reason was given" : words;
}

/// Whether it is the other side's alert that it does not take our certificate, or wants one.
bool is_refusal(unsigned long error) {
  const int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  return (alert >= SSL3_AD_BAD_CERTIFICATE && alert <= SSL3_AD_CERTIFICATE_UNKNOWN) ||
         alert == TLS1_AD_UNKNOWN_CA || alert == TLS1_AD_ACCESS_DENIED ||
         alert == TLS13_AD_CERTIFICATE_REQUIRED;
}

Status openssl_failed(const OpenSsl& api, std::string_view what,
                      SourceLocation where = SourceLocation::here()) {
  return {StatusCode::internal, fmt::format("OpenSSL can't {}: {}", what, openssl_words(api)),
          where};
}

class Context final : public TlsContext {
 public:
  Context(const OpenSsl& api, Role role, TlsMode mode) noexcept
      : api_(api), role_(role), mode_(mode), context_(nullptr, Free{&api}) {}

  [[nodiscard]] Status prepare(const TlsOptions& options, const Credentials& credentials);
  [[nodiscard]] Result<std::unique_ptr<TlsFilter>> new_filter() const override;

  [[nodiscard]] const OpenSsl& api() const noexcept { return api_; }
  [[nodiscard]] Role role() const noexcept { return role_; }
  [[nodiscard]] TlsMode mode() const noexcept { return mode_; }
  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }
  /// A session that holds the pre-shared key; null when there is no memory. The caller frees it.
  [[nodiscard]] SSL_SESSION* new_session(SSL* ssl) const noexcept;

 private:
  [[nodiscard]] Status limit_to_our_needs();
  [[nodiscard]] Status use_secret(const Credentials& credentials);
  [[nodiscard]] Status use_certificate(const TlsOptions& options);

  const OpenSsl& api_;
  Role role_;
  TlsMode mode_;
  Owned<SSL_CTX> context_;
  std::string identity_ = {};  // of the pre-shared key: the job
  Digest key_ = {};
};

class Filter final : public TlsFilter {
 public:
  explicit Filter(const Context& context) noexcept
      : context_(context), api_(context.api()), ssl_(nullptr, Free{&api_}) {}

  [[nodiscard]] Status start(SSL_CTX* context);

  [[nodiscard]] Status receive(std::string_view ciphertext, std::string& plaintext) override;
  [[nodiscard]] Status send(std::string_view plaintext) override;
  [[nodiscard]] std::string take_output() override;
  [[nodiscard]] bool is_ready() const noexcept override { return is_ready_; }
  [[nodiscard]] bool has_named_job() const noexcept override { return has_named_job_; }
  [[nodiscard]] Result<std::string> channel_binding() const override;

  // What OpenSSL asks for a client's pre-shared key, and for the one that a server's client named.
  static int use_session(SSL* ssl, const EVP_MD* digest, const unsigned char** identity,
                         std::size_t* identity_bytes, SSL_SESSION** session) noexcept;
  static int find_session(SSL* ssl, const unsigned char* identity, std::size_t identity_bytes,
                          SSL_SESSION** session) noexcept;

 private:
  [[nodiscard]] Status take(std::string_view ciphertext, std::string& plaintext);
  [[nodiscard]] Status check_first_byte(std::string_view first) const;
  [[nodiscard]] Status take_outside(std::string_view bytes);
  [[nodiscard]] Status go_on_with_handshake();
  [[nodiscard]] Status read(std::string& plaintext);
  [[nodiscard]] Status handshake_failed();

  const Context& context_;
  const OpenSsl& api_;
  Owned<SSL> ssl_;
  BIO* in_ = nullptr;  // of ssl_, as out_
  BIO* out_ = nullptr;
  std::size_t handshake_bytes_ = 0;  // received before we were ready
  std::string outside_ = {};         // the beginning of Hocket's own handshake, in place of TLS
  bool is_other_job_ = false;        // a client named another identity
  bool has_named_job_ = false;       // it named ours
  bool is_ready_ = false;
  Status failure_ = {};
};

Status Context::prepare(const TlsOptions& options, const Credentials& credentials) {
  api_.ERR_clear_error();
  context_.reset(api_.SSL_CTX_new(api_.TLS_method()));
  if (context_ == nullptr) return openssl_failed(api_, "make a context");
  if (Status status = limit_to_our_needs(); !status.ok()) return status;
  return mode_ == TlsMode::psk ? use_secret(credentials) : use_certificate(options);
}

/// TLS 1.3 alone, and of it no tickets, sessions or early data: every connection proves itself
/// anew.
Status Context::limit_to_our_needs() {
  SSL_CTX* const context = context_.get();
  const bool is_done =
      api_.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
      api_.SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
      api_.SSL_CTX_set_ciphersuites(context, ciphersuite) == 1 &&
      api_.SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!is_done) return openssl_failed(api_, "be limited to TLS 1.3");
  api_.SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  api_.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  api_.SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, nullptr);  // of those idle
  // Also by pre-shared key, so that no client takes a server's certificate instead of its proof. A
  // server has none to show then; and asked to verify, OpenSSL's would not take the key.
  if (mode_ == TlsMode::certificate || role_ == Role::client) {
    api_.SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return {};
}

Status Context::use_secret(const Credentials& credentials) {
  if (credentials.secret.empty()) {
    return Status(StatusCode::invalid_argument,
                  "TLS by pre-shared key needs a secret, and there is none")
        .with_hint("give every process of the job the same secret, or use certificates");
  }
  key_ = hmac_sha256(credentials.secret, "hocket tls psk");
  const std::string mark = job_mark(credentials.job);
  identity_ = hex(std::as_bytes(std::span(mark)));
  if (role_ == Role::client) {
    api_.SSL_CTX_set_psk_use_session_callback(context_.get(), Filter::use_session);
  } else {
    api_.SSL_CTX_set_psk_find_session_callback(context_.get(), Filter::find_session);
  }
  return {};
}

Status Context::use_certificate(const TlsOptions& options) {
  SSL_CTX* const context = context_.get();
  const auto unusable = [this](std::string_view what, const std::string& file) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("TLS can't use the {} in '{}': {}", what, file, openssl_words(api_)));
  };
  // Else OpenSSL would ask at the terminal.
  api_.SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  const char* const certificate = options.certificate_file.c_str();
  if (api_.SSL_CTX_use_certificate_chain_file(context, certificate) != 1) {
    return unusable("certificate", options.certificate_file);
  }
  const char* const key = options.key_file.c_str();
  if (api_.SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
      api_.SSL_CTX_check_private_key(context) != 1) {
    return unusable("key", options.key_file);
  }
  if (api_.SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
    return unusable("authorities", options.ca_file);
  }
  return {};
}

SSL_SESSION* Context::new_session(SSL* ssl) const noexcept {
  Owned<SSL_SESSION> session(api_.SSL_SESSION_new(), Free{&api_});
  const auto* const key = reinterpret_cast<const unsigned char*>(key_.data());
  const SSL_CIPHER* const cipher = api_.SSL_CIPHER_find(ssl, ciphersuite_code);
  const bool is_made = session != nullptr && cipher != nullptr &&
                       api_.SSL_SESSION_set1_master_key(session.get(), key, key_.size()) == 1 &&
                       api_.SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                       api_.SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return is_made ? session.release() : nullptr;
}

Result<std::unique_ptr<TlsFilter>> Context::new_filter() const {
  auto filter = std::make_unique<Filter>(*this);
  if (Status status = filter->start(context_.get()); !status.ok()) return status;
  return std::unique_ptr<TlsFilter>(std::move(filter));
}

Status Filter::start(SSL_CTX* context) {
  api_.ERR_clear_error();
  ssl_.reset(api_.SSL_new(context));
  if (ssl_ == nullptr) return openssl_failed(api_, "make a connection");
  in_ = api_.BIO_new(api_.BIO_s_mem());
  out_ = api_.BIO_new(api_.BIO_s_mem());
  api_.SSL_set_bio(ssl_.get(), in_, out_);  // owns them now
  if (in_ == nullptr || out_ == nullptr || api_.SSL_set_ex_data(ssl_.get(), 0, this) != 1) {
    return openssl_failed(api_, "make a connection's buffers");
  }
  if (context_.role() == TlsContext::Role::server) {
    api_.SSL_set_accept_state(ssl_.get());
    return {};
  }
  api_.SSL_set_connect_state(ssl_.get());
  return go_on_with_handshake();
}

int Filter::use_session(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** identity,
                        std::size_t* identity_bytes, SSL_SESSION** session) noexcept {
  // The digest need not be asked: we offer one suite only.
  const Context& context = static_cast<Filter*>(openssl()->SSL_get_ex_data(ssl, 0))->context_;
  *identity = reinterpret_cast<const unsigned char*>(context.identity().data());
  *identity_bytes = context.identity().size();
  *session = context.new_session(ssl);
  return *session != nullptr ? 1 : 0;
}

int Filter::find_session(SSL* ssl, const unsigned char* identity, std::size_t identity_bytes,
                         SSL_SESSION** session) noexcept {
  auto& filter = *static_cast<Filter*>(openssl()->SSL_get_ex_data(ssl, 0));
  const std::string_view named(reinterpret_cast<const char*>(identity), identity_bytes);
  filter.is_other_job_ = named != filter.context_.identity();
  filter.has_named_job_ = !filter.is_other_job_;
  *session = filter.is_other_job_ ? nullptr : filter.context_.new_session(ssl);
  return filter.is_other_job_ || *session != nullptr ? 1 : 0;
}

Status Filter::receive(std::string_view ciphertext, std::string& plaintext) {
  if (failure_.ok()) failure_ = take(ciphertext, plaintext);
  return failure_;
}

Status Filter::take(std::string_view ciphertext, std::string& plaintext) {
  api_.ERR_clear_error();
  const bool is_outside =
      !outside_.empty() || (handshake_bytes_ == 0 && ciphertext.starts_with(magic[0]));
  if (is_outside) return take_outside(ciphertext);
  while (!ciphertext.empty()) {
    const std::string_view piece = ciphertext.substr(0, piece_bytes);
    ciphertext.remove_prefix(piece.size());
    if (handshake_bytes_ == 0) {
      if (Status status = check_first_byte(piece); !status.ok()) return status;
    }
    std::size_t written = 0;
    if (api_.BIO_write_ex(in_, piece.data(), piece.size(), &written) != 1) {
      return openssl_failed(api_, "take what came");
    }
    if (!is_ready_) {
      handshake_bytes_ += piece.size();
      if (Status status = go_on_with_handshake(); !status.ok()) return status;
    }
    if (!is_ready_) continue;
    if (Status status = read(plaintext); !status.ok()) return status;
  }
  return {};
}

/// A stranger is named as early as this, because to OpenSSL it is only a wrong version number.
Status Filter::check_first_byte(std::string_view first) const {
  constexpr char alert = 0x15;
  constexpr char handshake = 0x16;
  if (first[0] == handshake || first[0] == alert) return {};
  return Status(StatusCode::protocol_error,
                fmt::format("the {} does not speak TLS",
                            context_.role() == TlsContext::Role::server ? "client" : "server"))
      .caused_by(check_first_bytes(first));
}

/// One of us, without TLS. A client hears that from us; a server may have another reason.
Status Filter::take_outside(std::string_view bytes) {
  if (context_.role() == TlsContext::Role::server) {
    const std::string answer = refusal(Verdict::tls_needed);
    std::size_t written = 0;
    api_.BIO_write_ex(out_, answer.data(), answer.size(), &written);
    return Status(StatusCode::protocol_error,
                  "the client speaks to us without TLS, and we ask for it")
        .with_hint("give both sides the same TLS setting (HOCKET_TLS)");
  }
  outside_.append(bytes.substr(0, challenge_bytes - outside_.size()));
  return outside_.size() < challenge_bytes ? Status() : refused_outside_tls(outside_);
}

Status Filter::go_on_with_handshake() {
  const int result = api_.SSL_do_handshake(ssl_.get());
  if (result != 1) {
    if (api_.SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) return handshake_failed();
    if (handshake_bytes_ <= limits::tls_handshake_bytes_max) return {};
    return {StatusCode::limit_exceeded, fmt::format("the TLS handshake of the other side goes past "
                                                    "{} bytes",
                                                    limits::tls_handshake_bytes_max)};
  }
  // What verifies certificates lets a pre-shared key pass, so that its use is looked at here.
  if (context_.mode() == TlsMode::psk && api_.SSL_session_reused(ssl_.get()) != 1) {
    return {StatusCode::permission_denied, "the other side did without the pre-shared key of TLS"};
  }
  is_ready_ = true;
  return {};
}

Status Filter::handshake_failed() {
  const bool is_server = context_.role() == TlsContext::Role::server;
  if (is_other_job_) {
    return Status(StatusCode::mismatch, "the client belongs to another job than ours")
        .with_hint("do two jobs use one port?");
  }
  std::string words = openssl_words(api_);
  if (const long verified = api_.SSL_get_verify_result(ssl_.get()); verified != X509_V_OK) {
    words += fmt::format(": {}", api_.X509_verify_cert_error_string(verified));
  }
  return Status(StatusCode::permission_denied,
                fmt::format("TLS with the {} failed: {}", is_server ? "client" : "server", words))
      .with_hint(context_.mode() == TlsMode::psk
                     ? "give every process of the job the same secret, job id and TLS setting"
                     : "is the certificate of each side of an authority that the other trusts?");
}

Status Filter::read(std::string& plaintext) {
  for (;;) {
    std::array<char, piece_bytes> piece;
    std::size_t count = 0;
    const int result = api_.SSL_read_ex(ssl_.get(), piece.data(), piece.size(), &count);
    if (result == 1) {
      plaintext.append(piece.data(), count);
      continue;
    }
    switch (api_.SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {};
      case SSL_ERROR_ZERO_RETURN:
        return {StatusCode::peer_lost, "the other side has ended the TLS connection"};
      default:
        // A client is ready before the server has seen its certificate.
        if (is_refusal(api_.ERR_peek_error())) return handshake_failed();
        return {StatusCode::protocol_error,
                fmt::format("what came over TLS is not what was sent, or the other side has found "
                            "so: {}",
                            openssl_words(api_))};
    }
  }
}

Status Filter::send(std::string_view plaintext) {
  if (!failure_.ok()) return failure_;
  if (!is_ready_) return {StatusCode::internal, "a send before TLS was ready"};
  if (plaintext.empty()) return {};
  api_.ERR_clear_error();
  std::size_t count = 0;
  if (api_.SSL_write_ex(ssl_.get(), plaintext.data(), plaintext.size(), &count) == 1) return {};
  failure_ = openssl_failed(api_, "encrypt");
  return failure_;
}

std::string Filter::take_output() {
  std::string output(api_.BIO_ctrl_pending(out_), '\0');
  std::size_t count = 0;
  if (!output.empty()) api_.BIO_read_ex(out_, output.data(), output.size(), &count);
  output.resize(count);
  return output;
}

Result<std::string> Filter::channel_binding() const {
  static constexpr std::string_view label = "EXPORTER-Channel-Binding";
  if (!is_ready_) return Status(StatusCode::internal, "a binding to TLS before it was ready");
  std::array<unsigned char, 32> binding;
  if (api_.SSL_export_keying_material(ssl_.get(), binding.data(), binding.size(), label.data(),
                                      label.size(), nullptr, 0, 0) != 1) {
    return openssl_failed(api_, "export a connection's binding");
  }
  return std::string(as_text(std::as_bytes(std::span(binding))));
}

}  // namespace

Status tls_support() { return openssl().status(); }

Result<std::unique_ptr<TlsContext>> TlsContext::make(Role role, const TlsOptions& options,
                                                     const Credentials& credentials) {
  if (options.mode == TlsMode::off) {
    return Status(StatusCode::internal, "a TLS context was asked for while TLS is off");
  }
  const Result<OpenSsl>& api = openssl();
  if (!api.ok()) return api.status();
  auto context = std::make_unique<Context>(*api, role, options.mode);
  if (Status status = context->prepare(options, credentials); !status.ok()) return status;
  return std::unique_ptr<TlsContext>(std::move(context));
}

}  // namespace hocket::wire
