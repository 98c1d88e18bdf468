// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tacet {

struct HttpAddress {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
};
// "9560", "host:9560", "[::1]:9560", "host" (with `port` from the default).
Result<HttpAddress> ParseHttpAddress(std::string_view text, const HttpAddress& otherwise);
std::string Show(const HttpAddress& address);

// Why nothing can listen there; empty: one can. Asks the name service.
std::string WhyNotOurs(const std::string& host);

// "localhost", 127.0.0.0/8 and ::1: nobody beyond this host can reach it.
bool IsLoopbackName(std::string_view host);
bool IsAddressLiteral(std::string_view host);  // 10.0.0.7 or ::1, without brackets

}  // namespace tacet
