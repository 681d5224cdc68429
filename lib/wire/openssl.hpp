// The functions of OpenSSL that we call, found at run time.
#pragma once

#include <span>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "hocket/status.hpp"

#include "base/library.hpp"

namespace hocket::wire {

struct OpenSsl {
  explicit OpenSsl(Library library) : find(std::move(library)) {}
  FunctionFinder find;

#define HOCKET_FUNCTION(name) decltype(&::name) name = find(#name)
  HOCKET_FUNCTION(BIO_ctrl_pending);
  HOCKET_FUNCTION(BIO_new);
  HOCKET_FUNCTION(BIO_read_ex);
  HOCKET_FUNCTION(BIO_s_mem);
  HOCKET_FUNCTION(BIO_write_ex);
  HOCKET_FUNCTION(ERR_clear_error);
  HOCKET_FUNCTION(ERR_get_error);
  HOCKET_FUNCTION(ERR_peek_error);
  HOCKET_FUNCTION(ERR_reason_error_string);
  HOCKET_FUNCTION(OPENSSL_init_ssl);
  HOCKET_FUNCTION(SSL_CIPHER_find);
  HOCKET_FUNCTION(SSL_CTX_check_private_key);
  HOCKET_FUNCTION(SSL_CTX_ctrl);
  HOCKET_FUNCTION(SSL_CTX_free);
  HOCKET_FUNCTION(SSL_CTX_load_verify_locations);
  HOCKET_FUNCTION(SSL_CTX_new);
  HOCKET_FUNCTION(SSL_CTX_set_ciphersuites);
  HOCKET_FUNCTION(SSL_CTX_set_default_passwd_cb);
  HOCKET_FUNCTION(SSL_CTX_set_num_tickets);
  HOCKET_FUNCTION(SSL_CTX_set_options);
  HOCKET_FUNCTION(SSL_CTX_set_psk_find_session_callback);
  HOCKET_FUNCTION(SSL_CTX_set_psk_use_session_callback);
  HOCKET_FUNCTION(SSL_CTX_set_verify);
  HOCKET_FUNCTION(SSL_CTX_use_PrivateKey_file);
  HOCKET_FUNCTION(SSL_CTX_use_certificate_chain_file);
  HOCKET_FUNCTION(SSL_SESSION_free);
  HOCKET_FUNCTION(SSL_SESSION_new);
  HOCKET_FUNCTION(SSL_SESSION_set1_master_key);
  HOCKET_FUNCTION(SSL_SESSION_set_cipher);
  HOCKET_FUNCTION(SSL_SESSION_set_protocol_version);
  HOCKET_FUNCTION(SSL_do_handshake);
  HOCKET_FUNCTION(SSL_export_keying_material);
  HOCKET_FUNCTION(SSL_free);
  HOCKET_FUNCTION(SSL_get_error);
  HOCKET_FUNCTION(SSL_get_ex_data);
  HOCKET_FUNCTION(SSL_get_verify_result);
  HOCKET_FUNCTION(SSL_new);
  HOCKET_FUNCTION(SSL_read_ex);
  HOCKET_FUNCTION(SSL_session_reused);
  HOCKET_FUNCTION(SSL_set_accept_state);
  HOCKET_FUNCTION(SSL_set_bio);
  HOCKET_FUNCTION(SSL_set_connect_state);
  HOCKET_FUNCTION(SSL_set_ex_data);
  HOCKET_FUNCTION(SSL_write_ex);
  HOCKET_FUNCTION(TLS_method);
  HOCKET_FUNCTION(X509_verify_cert_error_string);
#undef HOCKET_FUNCTION
};

/// All of them, from the first of these libraries that can be loaded. Fails with unsupported.
[[nodiscard]] Result<OpenSsl> load_openssl(std::span<const char* const> libraries);

/// Those of the libssl that fits the headers; loaded once. Any thread.
[[nodiscard]] const Result<OpenSsl>& openssl();

}  // namespace hocket::wire
