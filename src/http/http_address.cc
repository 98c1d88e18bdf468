// SPDX-License-Identifier: Apache-2.0
#include "http/http_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace tacet {

Result<HttpAddress> ParseHttpAddress(std::string_view text, const HttpAddress& otherwise) {
  const auto wrong = [&] {
    return Error{"'" + std::string(text) + "' is not a valid address", "host:port, for instance 127.0.0.1:9560"};
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
    return wrong();
  return address;
}

std::string Show(const HttpAddress& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
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
