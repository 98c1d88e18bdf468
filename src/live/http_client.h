// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "live/http_server.h"

namespace tacet {

struct HttpLimits {
  int64_t connect_ms = 1000;
  int64_t whole_ms = 3000;  // from the first byte sent to the last received
  uint64_t most_bytes = uint64_t{16} << 20;
};

struct HttpPost {
  bool https = false;  // the server's certificate is checked
  std::string path;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string type = "application/octet-stream";
  std::string body;
};

// Asks other programs over HTTP, from as many threads as one likes. An answer that comes too slowly or is too large is
// given up, however it is drawn out.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  Result<std::string> Get(const HttpAddress& address, const std::string& path, const HttpLimits& limits = {});
  // Ends what is under way, and refuses what comes after: for a program that wants to end.
  void Cancel();
  // Whatever the status is, it is an answer.
  Result<HttpReply> Post(const HttpAddress& address, const HttpPost& post, const HttpLimits& limits = {});

 private:
  struct Inside;
  class Timed;
  std::unique_ptr<Inside> inside_;
};

std::string EncodeUrlPath(std::string_view path);  // everything but letters, digits and "-._~/" becomes %XX

}  // namespace tacet
