// The functions of OpenSSL that we call, found at run time.
#pragma once

#include <span>

#include <openssl/ssl.h>

#include "hocket/status.hpp"

namespace hocket::wire {

#define HOCKET_OPENSSL_FUNCTIONS(each)                                                             \
  each(BIO_ctrl_pending) each(BIO_new) each(BIO_read_ex) each(BIO_s_mem) each(BIO_write_ex) each(  \
      ERR_clear_error) each(ERR_get_error) each(ERR_reason_error_string) each(SSL_CIPHER_find)     \
      each(SSL_CTX_check_private_key) each(SSL_CTX_ctrl) each(SSL_CTX_free) each(                  \
          SSL_CTX_load_verify_locations) each(SSL_CTX_new) each(SSL_CTX_set_ciphersuites)          \
          each(SSL_CTX_set_default_passwd_cb) each(SSL_CTX_set_num_tickets)                        \
              each(SSL_CTX_set_options) each(SSL_CTX_set_psk_find_session_callback) each(          \
                  SSL_CTX_set_psk_use_session_callback) each(SSL_CTX_set_verify)                   \
                  each(SSL_CTX_use_PrivateKey_file) each(SSL_CTX_use_certificate_chain_file) each( \
                      SSL_SESSION_free) each(SSL_SESSION_new) each(SSL_SESSION_set1_master_key)    \
                      each(SSL_SESSION_set_cipher) each(SSL_SESSION_set_protocol_version)          \
                          each(SSL_do_handshake) each(SSL_export_keying_material) each(SSL_free)   \
                              each(SSL_get_error) each(SSL_get_ex_data)                            \
                                  each(SSL_get_verify_result) each(SSL_new) each(SSL_read_ex)      \
                                      each(SSL_session_reused) each(SSL_set_accept_state)          \
                                          each(SSL_set_bio) each(SSL_set_connect_state)            \
                                              each(SSL_set_ex_data) each(SSL_write_ex)             \
                                                  each(TLS_method)                                 \
                                                      each(X509_verify_cert_error_string)

struct OpenSsl {
#define HOCKET_OPENSSL_MEMBER(name) decltype(&::name) name = nullptr;
  HOCKET_OPENSSL_FUNCTIONS(HOCKET_OPENSSL_MEMBER)
#undef HOCKET_OPENSSL_MEMBER
};

/// All of them from the first of these libraries that can be loaded. Fails with unsupported.
[[nodiscard]] Result<OpenSsl> load_openssl(std::span<const char* const> libraries);

/// Those of the libssl that fits the header; loaded once. Any thread.
[[nodiscard]] const Result<OpenSsl>& openssl();

}  // namespace hocket::wire
