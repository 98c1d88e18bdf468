// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/tls.h"

namespace tacet {

// Who may ask, and how: the web configuration of Prometheus' exporters, with three more keys of our own.
//
//     tls_server_config:
//       cert_file: /etc/tacet/tls.crt
//       key_file: /etc/tacet/tls.key
//       client_auth_type: RequireAndVerifyClientCert
//       client_ca_file: /etc/tacet/clients.crt
//       min_version: TLS13
//     basic_auth_users:
//       prometheus: $2y$10$...            # bcrypt: htpasswd -nBC 10 prometheus
//     bearer_tokens_sha256:
//       alice: 9f86d081...                # printf %s "$token" | sha256sum
//     operators: [prometheus, root]       # see all jobs; names from above and users of this host
//     user_ids:
//       alice: 1004                       # whose jobs a name sees, unless it is the name of a user of this host
struct WebConfig {
  std::optional<TlsServerFiles> tls;
  std::map<std::string, std::string> basic_auth_users, bearer_tokens_sha256;
  std::map<std::string, int64_t> user_ids;
  std::optional<std::vector<std::string>> operators;
  bool AsksWhoItIs() const {
    return !basic_auth_users.empty() || !bearer_tokens_sha256.empty() || (tls && tls->client_certificate_required);
  }
};

// Names of files in it are meant relative to `folder`.
Result<WebConfig> ParseWebConfig(std::string_view text, const std::string& folder);
Result<WebConfig> ReadWebConfig(const std::string& path);

}  // namespace tacet
