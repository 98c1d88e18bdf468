// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/http_server.h"

namespace tacet {

inline constexpr int kAgentPort = 9560;
inline constexpr size_t kMostAgents = 65536;

// "node[01-03,07],gpu5" as Slurm writes node lists: node01 node02 node03 node07 gpu5. Several brackets a name may
// stand.
Result<std::vector<std::string>> ExpandNodeList(std::string_view text);

// "node1,node2:9000,[::1]:9560": separated by commas or blanks.
Result<std::vector<HttpAddress>> ParseAgents(std::string_view text, int port = kAgentPort);
// One or several a line, '#' begins a comment.
Result<std::vector<HttpAddress>> ReadAgentsFile(const std::string& path, int port = kAgentPort);
// All addresses of a name, such as a headless service.
Result<std::vector<HttpAddress>> ResolveAgents(const std::string& name_and_port, int port = kAgentPort);

// Where the agents are. A file and a name are asked again, since clusters change.
struct AgentListing {
  std::vector<HttpAddress> agents;  // without duplicates
  std::string trouble;              // of a file or a name that cannot be read now; the others are listed
};
struct AgentSource {
  std::vector<HttpAddress> fixed;
  std::string file, dns;
  int port = kAgentPort;  // of those named without one
  AgentListing Read() const;
  bool changes() const { return !file.empty() || !dns.empty(); }
};

}  // namespace tacet
