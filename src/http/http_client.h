// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/http_address.h"
#include "http/http_message.h"
#include "http/tls.h"

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

// How to speak to the other end, and who one is.
struct HttpCredentials {
  std::shared_ptr<TlsContext> tls;  // null: plain HTTP
  std::string authorization;        // value of the header; empty: none
};

struct HttpCredentialFiles {
  bool use_tls = false;  // also without the next: then by the authorities of the system
  TlsClientFiles tls;
  std::string token_file;  // one line: a bearer token
  std::string user_file;   // one line: user:password
};
Result<HttpCredentials> ReadHttpCredentials(const HttpCredentialFiles& files);

// Asks other programs over HTTP, from as many threads as one likes. An answer that comes too slowly or is too large is
// given up, however it is drawn out.
class HttpClient {
 public:
  explicit HttpClient(HttpCredentials credentials = {});
  ~HttpClient();
  Result<std::string> Get(const HttpAddress& address, const std::string& path, const HttpLimits& limits = {});
  // Ends what is under way, and refuses what comes after: for a program that wants to end.
  void Cancel();
  // Whatever the status is, it is an answer.
  Result<HttpReply> Post(const HttpAddress& address, const HttpPost& post, const HttpLimits& limits = {});

 private:
  struct Exchange;
  Result<HttpReply> Ask(const HttpAddress& address, std::string request, std::shared_ptr<TlsContext> tls,
                        const HttpLimits& limits);

  HttpCredentials credentials_;
  int cancel_ = -1;  // an eventfd that becomes readable, and stays so
};

// The answer as far as it has come: "HTTP/1.1 200 OK\r\n..." with a length, in chunks, or up to the end.
class HttpAnswerReader {
 public:
  explicit HttpAnswerReader(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  enum class State { more, whole, bad, too_large };
  State Take(std::string_view bytes);
  State End();  // the other end has closed
  HttpReply reply;

 private:
  State ReadHead();
  State ReadChunks();
  State ReadPlain();
  uint64_t most_bytes_;
  std::string in_;
  bool has_head_ = false, chunked_ = false, has_length_ = false;
  uint64_t length_ = 0, chunk_left_ = 0;
};

}  // namespace tacet
