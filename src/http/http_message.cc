// SPDX-License-Identifier: Apache-2.0
#include "http/http_message.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/json_writer.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostQueryFields = 32;

bool IsTokenByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte); }

HttpHead BadHead(int status, std::string why) {
  HttpHead head;
  head.state = HttpHead::State::bad;
  head.status = status;
  head.why = std::move(why);
  return head;
}

std::string_view StatusWords(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
  }
}

bool ReadQuery(std::string_view text, std::map<std::string, std::string>& out) {
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    if (field.empty()) continue;
    const size_t equals = field.find('=');
    std::string name, value;
    if (!DecodeUrl(field.substr(0, equals), true, &name)) return false;
    if (equals != std::string_view::npos && !DecodeUrl(field.substr(equals + 1), true, &value)) return false;
    if (out.size() >= kMostQueryFields && !out.contains(name)) return false;
    out[name] = std::move(value);
  }
  return true;
}

// "GET /path?query HTTP/1.1"
bool ReadRequestLine(std::string_view line, HttpHead& head) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !IsToken(line.substr(0, first)))
    return head = BadHead(400, "the first line is not an HTTP request"), false;
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return head = BadHead(version.starts_with("HTTP/") ? 505 : 400, "only HTTP/1.0 and HTTP/1.1 are supported"), false;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const size_t question = target.find('?');
  if (!target.starts_with('/') || !DecodeUrl(target.substr(0, question), false, &head.request.path) ||
      head.request.path.find('\0') != std::string::npos ||
      (question != std::string_view::npos && !ReadQuery(target.substr(question + 1), head.request.query)))
    return head = BadHead(400, "the path cannot be read"), false;
  head.request.method = line.substr(0, first);
  head.request.keep_alive = version == "HTTP/1.1";
  return true;
}

bool ReadHeaderLine(std::string_view line, HttpHead& head) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)))
    return head = BadHead(400, "a header line is malformed"), false;
  std::string name = LowerCase(line.substr(0, colon));
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  const auto control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), control)) return head = BadHead(400, "a header line is malformed"), false;
  // Two of them may mean one thing to a proxy in front and another one here.
  const bool once = name == "host" || name == "authorization" || name == "content-length";
  if (once && !head.request.Header(name).empty()) return head = BadHead(400, "a header occurs twice"), false;
  head.request.headers.emplace_back(std::move(name), value);
  return true;
}

bool NamesOption(std::string_view list, std::string_view wanted) {
  return LowerCase(list).find(wanted) != std::string::npos;
}

}  // namespace

std::string HttpRequest::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known == name) return value;
  return {};
}

HttpReply ErrorReply(int status, std::string_view what) {
  JsonWriter json;
  json.BeginObject().Key("error").String(what).EndObject();
  return {status, "application/json", json.Take() + "\n"};
}
HttpReply NotFound(std::string_view what) { return ErrorReply(404, what); }
HttpReply BadRequest(std::string_view what) { return ErrorReply(400, what); }

HttpHead ParseHttpHead(std::string_view bytes) {
  HttpHead head;
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() >= kMostHeadBytes) return BadHead(431, "the head of the request is too long");
    // What is no HTTP at all need not be waited for.
    const size_t line = bytes.find('\n');
    if (!bytes.empty() && !IsTokenByte(bytes[0])) return BadHead(400, "this is not an HTTP request");
    if (line != std::string_view::npos && (line == 0 || bytes[line - 1] != '\r'))
      return BadHead(400, "lines end in CR LF");
    return head;
  }
  if (end + 4 > kMostHeadBytes) return BadHead(431, "the head of the request is too long");
  std::string_view text = bytes.substr(0, end);
  const std::string_view first = text.substr(0, text.find("\r\n"));
  if (!ReadRequestLine(first, head)) return head;
  text.remove_prefix(std::min(text.size(), first.size() + 2));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    text.remove_prefix(std::min(text.size(), line.size() + 2));
    if (head.request.headers.size() >= kMostHeaders) return BadHead(431, "there are too many headers");
    if (!ReadHeaderLine(line, head)) return head;
  }
  HttpRequest& request = head.request;
  if (const auto length = request.Header("content-length");
      (!length.empty() && length != "0") || !request.Header("transfer-encoding").empty())
    return BadHead(413, "requests with a body are not accepted");
  const std::string_view connection = request.Header("connection");
  if (NamesOption(connection, "close")) request.keep_alive = false;
  if (NamesOption(connection, "keep-alive")) request.keep_alive = true;
  head.bytes = end + 4;
  head.state = HttpHead::State::whole;
  return head;
}

std::string WriteReplyHead(const HttpReply& reply, bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  out.append(StatusWords(reply.status)).append("\r\nContent-Type: ").append(reply.type);
  out.append("\r\nContent-Length: ").append(std::to_string(reply.body.size()));
  if (!reply.challenge.empty()) out.append("\r\nWWW-Authenticate: ").append(reply.challenge);
  if (reply.status == 405) out.append("\r\nAllow: GET, HEAD");
  if (reply.status == 503) out.append("\r\nRetry-After: 1");
  out.append("\r\nAccept-Ranges: none\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY");
  out.append("\r\nContent-Security-Policy: frame-ancestors 'none'\r\nCross-Origin-Resource-Policy: same-origin");
  out.append("\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store");
  out.append(keep_alive ? "\r\nConnection: keep-alive\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
  return out;
}

bool DecodeUrl(std::string_view text, bool plus_is_blank, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      *out += ' ';
    } else if (text[i] != '%') {
      *out += text[i];
    } else {
      unsigned byte = 0;
      const char* from = text.data() + i + 1;
      if (i + 2 >= text.size() || std::from_chars(from, from + 2, byte, 16).ptr != from + 2) return false;
      *out += static_cast<char>(byte);
      i += 2;
    }
  }
  return true;
}

std::string EncodeUrlPath(std::string_view path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain)
      out += c;
    else
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

}  // namespace tacet
