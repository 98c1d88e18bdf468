// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacet {

// The other end of a connection, as the kernel knows it.
struct HttpPeer {
  std::string address;    // "10.0.3.4"; "uid 1000" for a process of this host
  bool is_local = false;  // loopback or a unix socket
  int64_t uid = -1;       // of a local process; -1 unknown
};

// What a request may see: the jobs of one user, all of them, or nothing.
struct Viewer {
  bool sees_all = false;
  int64_t uid = -1;
  std::string name;  // for logs; empty: told by the kernel, or nobody
  bool Sees(int64_t owner) const { return sees_all || (uid >= 0 && owner == uid); }
};

struct HttpRequest {
  std::string method = "GET";
  std::string path;                                          // decoded
  std::map<std::string, std::string> query;                  // the last of equal names
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  bool keep_alive = true;
  HttpPeer peer;
  bool over_tls = false, has_client_certificate = false;
  Viewer viewer;
  std::string Query(const std::string& name) const;
  std::string_view Header(std::string_view name) const;  // in lower case; empty when there is none
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string challenge = {};  // WWW-Authenticate of a 401
};
HttpReply ErrorReply(int status, std::string_view what);  // {"error": "..."}
HttpReply NotFound(std::string_view what);
HttpReply BadRequest(std::string_view what);

inline constexpr size_t kMostHeadBytes = 8192, kMostHeaders = 64;

// The head of a request: "GET /api/v1/state?brief=1 HTTP/1.1\r\nHost: node7:9560\r\n\r\n". Requests with a body, folded
// lines, or a head beyond the limits are refused; ranges are not looked at.
struct HttpHead {
  enum class State { incomplete, whole, bad } state = State::incomplete;
  size_t bytes = 0;  // of the head, when it is whole
  HttpRequest request;
  int status = 400;  // when it is bad
  std::string why;
};
HttpHead ParseHttpHead(std::string_view bytes);

// Status line and headers. All answers forbid sniffing, framing and caching.
std::string WriteReplyHead(const HttpReply& reply, bool keep_alive);

// "a%2Fb" -> "a/b"; false where a '%' is not followed by two digits.
bool DecodeUrl(std::string_view text, bool plus_is_blank, std::string* out);
std::string EncodeUrlPath(std::string_view path);  // everything but letters, digits and "-._~/" becomes %XX

}  // namespace tacet
