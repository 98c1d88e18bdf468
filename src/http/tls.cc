// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "http/http_address.h"

namespace tacet {
namespace {

std::string TakeOpenSslError() {
  char text[256] = "";
  if (const unsigned long code = ::ERR_peek_last_error(); code != 0) ::ERR_error_string_n(code, text, sizeof text);
  ::ERR_clear_error();
  const std::string whole = text;  // "error:0A000086:SSL routines::certificate verify failed"
  const size_t colon = whole.rfind(':');
  return colon == std::string::npos ? whole : whole.substr(colon + 1);
}

Error TlsFileError(const std::string& what, const std::string& file) {
  const std::string reason = TakeOpenSslError();
  return {"cannot use the " + what + " '" + file + "'" + (reason.empty() ? "" : ": " + reason),
          "name a PEM file that this user can read"};
}

// OpenSSL writes with write(), and a peer that has gone would end the program.
void IgnoreBrokenPipes() {
  static const bool done = [] { return ::signal(SIGPIPE, SIG_IGN) != SIG_ERR; }();
  (void)done;
}

// A program that carries its own OpenSSL looks where the OpenSSL of its builder keeps the authorities. Distributions
// keep them in different places; SSL_CERT_FILE and SSL_CERT_DIR are heard first.
void TrustTheSystem(SSL_CTX* context) {
  ::SSL_CTX_set_default_verify_paths(context);
  if (std::getenv(::X509_get_default_cert_file_env()) != nullptr ||
      std::getenv(::X509_get_default_cert_dir_env()) != nullptr || ::access(::X509_get_default_cert_dir(), R_OK) == 0 ||
      ::access(::X509_get_default_cert_file(), R_OK) == 0)
    return;
  for (const char* bundle : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                             "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (::access(bundle, R_OK) == 0 && ::SSL_CTX_load_verify_locations(context, bundle, nullptr) == 1) return;
}

}  // namespace

struct TlsContext::Inside {
  SSL_CTX* context = nullptr;
  ~Inside() { ::SSL_CTX_free(context); }
};

TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::ForServer(const TlsServerFiles& files) {
  IgnoreBrokenPipes();
  ::ERR_clear_error();
  std::shared_ptr<TlsContext> made(new TlsContext);
  made->inside_ = std::make_unique<Inside>();
  SSL_CTX* const context = made->inside_->context = ::SSL_CTX_new(::TLS_server_method());
  if (context == nullptr) return Error{"cannot use TLS: " + TakeOpenSslError(), ""};
  const bool newest = files.min_version == "TLS13";
  if (!newest && files.min_version != "TLS12")
    return Error{"min_version '" + files.min_version + "' is unknown", "TLS12 or TLS13"};
  ::SSL_CTX_set_min_proto_version(context, newest ? TLS1_3_VERSION : TLS1_2_VERSION);
  // A renegotiation is work for the server that a client may ask for again and again.
  ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  ::SSL_CTX_set_mode(context,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (::SSL_CTX_use_certificate_chain_file(context, files.cert_file.c_str()) != 1)
    return TlsFileError("certificate", files.cert_file);
  if (::SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return TlsFileError("key", files.key_file);
  if (::SSL_CTX_check_private_key(context) != 1) return TlsFileError("key for the certificate", files.key_file);
  if (files.client_ca_file.empty()) return made;
  if (::SSL_CTX_load_verify_locations(context, files.client_ca_file.c_str(), nullptr) != 1)
    return TlsFileError("authority of clients", files.client_ca_file);
  ::SSL_CTX_set_client_CA_list(context, ::SSL_load_client_CA_file(files.client_ca_file.c_str()));
  ::SSL_CTX_set_verify(
      context, SSL_VERIFY_PEER | (files.client_certificate_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  return made;
}

Result<std::shared_ptr<TlsContext>> TlsContext::ForClient(const TlsClientFiles& files) {
  IgnoreBrokenPipes();
  ::ERR_clear_error();
  std::shared_ptr<TlsContext> made(new TlsContext);
  made->inside_ = std::make_unique<Inside>();
  SSL_CTX* const context = made->inside_->context = ::SSL_CTX_new(::TLS_client_method());
  if (context == nullptr) return Error{"cannot use TLS: " + TakeOpenSslError(), ""};
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (files.ca_file.empty())
    TrustTheSystem(context);
  else if (::SSL_CTX_load_verify_locations(context, files.ca_file.c_str(), nullptr) != 1)
    return TlsFileError("authority", files.ca_file);
  if (files.cert_file.empty()) return made;
  if (::SSL_CTX_use_certificate_chain_file(context, files.cert_file.c_str()) != 1)
    return TlsFileError("certificate", files.cert_file);
  if (::SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return TlsFileError("key", files.key_file);
  return made;
}

struct ByteStream::Tls {
  std::shared_ptr<TlsContext> context;
  SSL* session = nullptr;
  ~Tls() { ::SSL_free(session); }
};

ByteStream::ByteStream(int socket) : socket_(socket) {}

ByteStream::ByteStream(int socket, std::shared_ptr<TlsContext> accept)
    : socket_(socket), tls_(std::make_unique<Tls>()) {
  tls_->session = ::SSL_new(accept->inside_->context);
  tls_->context = std::move(accept);
  ::SSL_set_fd(tls_->session, socket_);
  ::SSL_set_accept_state(tls_->session);
}

ByteStream::ByteStream(int socket, std::shared_ptr<TlsContext> connect, const std::string& host)
    : socket_(socket), tls_(std::make_unique<Tls>()) {
  tls_->session = ::SSL_new(connect->inside_->context);
  tls_->context = std::move(connect);
  ::SSL_set_fd(tls_->session, socket_);
  ::SSL_set_connect_state(tls_->session);
  if (IsAddressLiteral(host)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(tls_->session), host.c_str());
  } else {
    ::SSL_set_tlsext_host_name(tls_->session, host.c_str());
    ::SSL_set1_host(tls_->session, host.c_str());
  }
}

ByteStream::~ByteStream() {
  tls_.reset();
  if (socket_ >= 0) ::close(socket_);
}

bool ByteStream::has_peer_certificate() const {
  return tls_ != nullptr && ::SSL_get0_peer_certificate(tls_->session) != nullptr &&
         ::SSL_get_verify_result(tls_->session) == X509_V_OK;
}

StreamStep ByteStream::Judge(int result) {
  switch (::SSL_get_error(tls_->session, result)) {
    case SSL_ERROR_NONE: return StreamStep::done;
    case SSL_ERROR_WANT_READ: return StreamStep::want_read;
    case SSL_ERROR_WANT_WRITE: return StreamStep::want_write;
    default: trouble_ = TakeOpenSslError(); return StreamStep::closed;
  }
}

StreamStep ByteStream::Handshake() {
  if (!tls_) return StreamStep::done;
  ::ERR_clear_error();
  return Judge(::SSL_do_handshake(tls_->session));
}

StreamStep ByteStream::Read(char* into, size_t most, size_t* got) {
  *got = 0;
  if (tls_) {
    ::ERR_clear_error();
    return Judge(::SSL_read_ex(tls_->session, into, most, got));
  }
  for (;;) {
    const ssize_t bytes = ::recv(socket_, into, most, 0);
    if (bytes > 0) return *got = static_cast<size_t>(bytes), StreamStep::done;
    if (bytes < 0 && errno == EINTR) continue;
    return bytes < 0 && errno == EAGAIN ? StreamStep::want_read : StreamStep::closed;
  }
}

StreamStep ByteStream::Write(const char* from, size_t bytes, size_t* put) {
  *put = 0;
  if (tls_) {
    ::ERR_clear_error();
    return Judge(::SSL_write_ex(tls_->session, from, bytes, put));
  }
  for (;;) {
    const ssize_t sent = ::send(socket_, from, bytes, MSG_NOSIGNAL);
    if (sent >= 0) return *put = static_cast<size_t>(sent), StreamStep::done;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? StreamStep::want_write : StreamStep::closed;
  }
}

void ByteStream::SayGoodbye() {
  if (tls_) {
    ::ERR_clear_error();
    ::SSL_shutdown(tls_->session);
    ::ERR_clear_error();
  }
  ::shutdown(socket_, SHUT_WR);
}

}  // namespace tacet
