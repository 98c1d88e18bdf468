// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/http_address.h"
#include "http/http_message.h"
#include "http/tls.h"

namespace tacet {

// What clients may cost. A client that goes beyond it loses its connection, and nobody else anything.
struct HttpServerLimits {
  size_t connections = 512;                    // at a time; the largest holder gives up its oldest for a new one
  size_t waiting_requests = 256;               // of all, and
  size_t waiting_requests_of_one = 32;         // of one address or local user; more are told to come again
  uint64_t answer_bytes = uint64_t{64} << 20;  // of answers that clients have not read yet, all together
  int64_t head_ms = 5000;                      // from the first byte of a request (or the connection) to its last
  int64_t idle_ms = 15000;                     // between two requests of one connection
  int64_t stalled_ms = 5000;                   // an answer of which the client reads nothing
  int64_t answer_ms = 60000;                   // a whole answer, however slowly it is read
};

struct HttpServerOptions {
  HttpAddress listen;
  std::string unix_socket;  // also listens there; empty: not
  unsigned workers = 8;
  HttpServerLimits limits;
  // Whether to use TLS, asked for each new connection on the address (never for the unix socket); may be empty.
  std::function<std::shared_ptr<TlsContext>()> tls;
  // Sets request.viewer, or answers in the handler's place; called by workers. May be empty.
  std::function<std::optional<HttpReply>(HttpRequest&)> gate;
  // Answers at once, on the thread that serves all connections: what must work even when all workers are busy. Empty,
  // or nothing: the handler is asked.
  std::function<std::optional<HttpReply>(const HttpRequest&)> at_once;
};

// Answers GET and HEAD. One thread holds all connections and never waits for a client; workers call the handler.
class HttpServer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  // Listens and serves until Stop. The handler is called from several threads.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options, Handler handler);
  static Result<std::unique_ptr<HttpServer>> Start(const HttpAddress& address, unsigned workers, Handler handler);
  ~HttpServer();
  int port() const;
  void Stop();

 private:
  HttpServer();
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tacet
