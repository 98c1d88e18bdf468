// SPDX-License-Identifier: Apache-2.0
#include "http/http_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace tacet {

Result<HttpAddress> ParseHttpAddress(std::string_view text, const HttpAddress& otherwise) {
  const int example = otherwise.port > 0 ? otherwise.port : 9560;
  const auto wrong = [&](const std::string& why = "") {
    return Error{"'" + std::string(text) + "' is not a valid address" + why,
                 "host:port, for instance 127.0.0.1:" + std::to_string(example)};
  };
  HttpAddress address = otherwise;
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return wrong();
    host = text.substr(1, close - 1);
    if (close + 1 < text.size() && text[close + 1] != ':') return wrong();
    port = text.substr(std::min(text.size(), close + 2));
  } else if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  } else if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    host = "";
    port = text;
  }
  if (text.empty()) return wrong();
  if (!host.empty()) address.host = host;
  if (port.empty()) return address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port < 0 || address.port > 65535)
    return wrong(": the port must be a number from 0 to 65535");
  return address;
}

std::string Show(const HttpAddress& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string WhyNotOurs(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr)
    return "'" + host + "' does not resolve";
  bool ours = false;
  for (const addrinfo* one = found; one != nullptr && !ours; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // Whatever else is wrong is told by the server that tries it.
    ours = socket < 0 || ::bind(socket, one->ai_addr, one->ai_addrlen) == 0 || errno != EADDRNOTAVAIL;
    if (socket >= 0) ::close(socket);
  }
  ::freeaddrinfo(found);
  return ours ? "" : "'" + host + "' is not an address of this host";
}

bool IsAddressLiteral(std::string_view host) {
  const std::string text(host.substr(0, 64));
  in_addr four{};
  in6_addr six{};
  return ::inet_pton(AF_INET, text.c_str(), &four) == 1 || ::inet_pton(AF_INET6, text.c_str(), &six) == 1;
}

bool IsLoopbackName(std::string_view host) {
  const std::string text(host.substr(0, 64));
  in_addr four{};
  in6_addr six{};
  if (text == "localhost") return true;
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  return ::inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace tacet
