// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacet {

struct HttpRequest {
  std::string path;                          // decoded
  std::map<std::string, std::string> query;  // the last of equal names
  std::string Query(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};
HttpReply NotFound(std::string_view what);  // {"error": "..."}
HttpReply BadRequest(std::string_view what);

struct HttpAddress {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
};
// "9560", "host:9560", "[::1]:9560", "host" (with `port` from the default).
Result<HttpAddress> ParseHttpAddress(std::string_view text, const HttpAddress& otherwise);
std::string Show(const HttpAddress& address);

// Answers GET requests; one request a connection. Clients that say nothing or are slow hold nobody up: there are as
// many threads as it takes, within reason.
class HttpServer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  // Listens and serves until Stop. The handler is called from several threads.
  static Result<std::unique_ptr<HttpServer>> Start(const HttpAddress& address, int threads, Handler handler);
  ~HttpServer();
  int port() const;
  void Stop();

 private:
  HttpServer();
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tacet
