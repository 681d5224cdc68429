// TLS 1.3 as a filter between bytes and bytes: whoever owns the socket hands over what came, and
// sends what comes out. OpenSSL's libssl is loaded when the first context is made, so that a
// process without TLS never has it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "wire/credentials.hpp"

namespace hocket::wire {

enum class TlsMode {
  off,
  psk,          // both sides prove the job's secret; no certificates
  certificate,  // both sides show a certificate that ca_file vouches for
};

struct TlsOptions {
  TlsMode mode = TlsMode::off;
  // All in PEM, for mode certificate only.
  std::string certificate_file = {};  // ours, with what stands between it and the authority
  std::string key_file = {};          // its key, without a passphrase
  std::string ca_file = {};           // the authorities that the other side's may come from

  friend bool operator==(const TlsOptions&, const TlsOptions&) = default;
};

/// One end of one connection. After a failure there may still be output to send: the alert by which
/// the other side learns of it.
class TlsFilter {
 public:
  TlsFilter() = default;
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;
  virtual ~TlsFilter() = default;

  /// Takes what came from the other side, in pieces of any size, and appends what it said.
  /// permission_denied: the other side does not prove who it is, or refuses us; mismatch: it is of
  /// another job; protocol_error: it speaks no TLS, or a byte was altered; limit_exceeded: its
  /// handshake is too long; peer_lost: it has ended the connection. All failures are final.
  [[nodiscard]] virtual Status receive(std::string_view ciphertext, std::string& plaintext) = 0;

  /// Encrypts into the output, which grows by a little more than that. Only when ready.
  [[nodiscard]] virtual Status send(std::string_view plaintext) = 0;

  /// What is to be sent to the other side by now; then it is gone from here.
  [[nodiscard]] virtual std::string take_output() = 0;

  /// Both sides have proved themselves.
  [[nodiscard]] virtual bool is_ready() const noexcept = 0;

  /// A client named the pre-shared key of our job. That proves nothing before is_ready().
  [[nodiscard]] virtual bool has_named_job() const noexcept = 0;

  /// Known to the two ends of this connection only (RFC 9266), for the handshake inside it. Only
  /// when ready.
  [[nodiscard]] virtual Result<std::string> channel_binding() const = 0;
};

/// What all connections of one side share. Any thread; outlives its filters.
class TlsContext {
 public:
  enum class Role { client, server };

  /// Fails with unsupported where Hocket was built without TLS or libssl can't be loaded, and with
  /// invalid_argument for options that can't be, such as a file that is not there. Borrows nothing.
  [[nodiscard]] static Result<std::unique_ptr<TlsContext>> make(Role role,
                                                                const TlsOptions& options,
                                                                const Credentials& credentials);

  TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  virtual ~TlsContext() = default;

  /// The end of a new connection. A client's has output at once.
  [[nodiscard]] virtual Result<std::unique_ptr<TlsFilter>> new_filter() const = 0;
};

/// Success where TLS can be had, else why not. Loads libssl.
[[nodiscard]] Status tls_support();

}  // namespace hocket::wire
