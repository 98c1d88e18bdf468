// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace tacet {

// What became of one attempt on a socket that never blocks.
enum class StreamStep { done, want_read, want_write, closed };

struct TlsServerFiles {
  std::string cert_file, key_file;  // PEM; the certificate may be a chain
  std::string client_ca_file;       // who signs the certificates of clients; empty: none is asked for
  bool client_certificate_required = false;
  std::string min_version = "TLS12";  // or TLS13
};

struct TlsClientFiles {
  std::string ca_file;              // PEM; empty: those of the system
  std::string cert_file, key_file;  // to identify oneself with; may be empty
};

// Keys and rules for many connections.
class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> ForServer(const TlsServerFiles& files);
  static Result<std::shared_ptr<TlsContext>> ForClient(const TlsClientFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class ByteStream;
  TlsContext() = default;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// A connected socket that never blocks, plain or inside TLS. Closes it at the end.
class ByteStream {
 public:
  explicit ByteStream(int socket);                             // plain
  ByteStream(int socket, std::shared_ptr<TlsContext> accept);  // TLS, the server's end
  // TLS, the client's end: the certificate must be that of `host`, a name or an address.
  ByteStream(int socket, std::shared_ptr<TlsContext> connect, const std::string& host);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  StreamStep Handshake();  // done at once for a plain socket
  StreamStep Read(char* into, size_t most, size_t* got);
  StreamStep Write(const char* from, size_t bytes, size_t* put);
  void SayGoodbye();  // ends the stream towards the peer, as far as it can be said without waiting

  int socket() const { return socket_; }
  bool is_tls() const { return tls_ != nullptr; }
  bool has_peer_certificate() const;
  const std::string& trouble() const { return trouble_; }  // why it was closed, where OpenSSL says so

 private:
  StreamStep Judge(int result);
  int socket_;
  struct Tls;
  std::unique_ptr<Tls> tls_;
  std::string trouble_;
};

}  // namespace tacet
