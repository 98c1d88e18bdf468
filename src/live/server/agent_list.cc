// SPDX-License-Identifier: Apache-2.0
#include "live/server/agent_list.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace tacet {
namespace {

constexpr std::string_view kSeparators = ", \t\r\n";

Error BadList(std::string_view text, std::string_view why) {
  return {"'" + std::string(text.substr(0, 100)) + "' is not a node list: " + std::string(why),
          "for instance node[01-16,20],gpu7"};
}

// "01-03": 01 02 03, as wide as the first is written.
bool ExpandRange(std::string_view range, std::vector<std::string>& out) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  uint64_t from = 0, to = 0;
  const auto read = [](std::string_view digits, uint64_t* value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    return !digits.empty() && digits.size() < 10 && error == std::errc() && end == digits.data() + digits.size();
  };
  if (!read(first, &from) || !read(last, &to) || from > to || to - from >= kMostAgents) return false;
  for (uint64_t n = from; n <= to; ++n) {
    const std::string number = std::to_string(n);
    out.push_back(std::string(first.size() > number.size() ? first.size() - number.size() : 0, '0') + number);
  }
  return true;
}

// One name with any number of brackets; false when it is malformed or grows too large.
bool ExpandName(std::string_view name, std::vector<std::string>& out) {
  std::vector<std::string> made = {""};
  while (!name.empty()) {
    const size_t open = name.find('[');
    for (std::string& one : made) one += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = name.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> numbers, longer;
    std::string_view ranges = name.substr(open + 1, close - open - 1);
    for (bool more = true; more;) {
      const size_t comma = ranges.find(',');
      more = comma != std::string_view::npos;
      if (!ExpandRange(ranges.substr(0, comma), numbers)) return false;
      if (more) ranges.remove_prefix(comma + 1);
    }
    if (made.size() * numbers.size() > kMostAgents) return false;
    for (const std::string& one : made)
      for (const std::string& number : numbers) longer.push_back(one + number);
    made = std::move(longer);
    name.remove_prefix(close + 1);
  }
  out.insert(out.end(), made.begin(), made.end());
  return out.size() <= kMostAgents;
}

}  // namespace

Result<std::vector<std::string>> ExpandNodeList(std::string_view text) {
  std::vector<std::string> names;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool ends = i == text.size() || (depth == 0 && kSeparators.find(text[i]) != std::string_view::npos);
    if (!ends) {
      depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
      if (depth < 0 || depth > 1) return BadList(text, "the brackets do not match");
      continue;
    }
    if (depth != 0) return BadList(text, "a bracket is not closed");
    if (i > begin && !ExpandName(text.substr(begin, i - begin), names))
      return BadList(text, "a range is malformed or too large");
    begin = i + 1;
  }
  if (names.empty()) return BadList(text, "it is empty");
  return names;
}

Result<std::vector<HttpAddress>> ParseAgents(std::string_view text, int port) {
  std::vector<HttpAddress> agents;
  while (!text.empty()) {
    const size_t end = text.find_first_of(kSeparators);
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.empty()) continue;
    auto address = ParseHttpAddress(one, {"127.0.0.1", port});
    if (!address) return address.error();
    agents.push_back(*address);
    if (agents.size() > kMostAgents) return Error{"more agents than one server can poll", ""};
  }
  return agents;
}

Result<std::vector<HttpAddress>> ReadAgentsFile(const std::string& path, int port) {
  std::ifstream file(path);
  if (!file) return Error{"cannot read the list of agents '" + path + "'", "one host:port per line"};
  std::string text, line;
  while (std::getline(file, line) && text.size() < (16u << 20)) text += line.substr(0, line.find('#')) + "\n";
  return ParseAgents(text, port);
}

Result<std::vector<HttpAddress>> ResolveAgents(const std::string& name_and_port, int port) {
  auto address = ParseHttpAddress(name_and_port, {"", port});
  if (!address) return address.error();
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = ::getaddrinfo(address->host.c_str(), nullptr, &hints, &found); error != 0)
    return Error{"cannot resolve '" + address->host + "': " + ::gai_strerror(error), "check the name"};
  std::vector<HttpAddress> agents;
  for (const addrinfo* one = found; one != nullptr && agents.size() < kMostAgents; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      agents.push_back({text, address->port});
  }
  ::freeaddrinfo(found);
  return agents;
}

AgentListing AgentSource::Read() const {
  AgentListing listing{fixed, ""};
  for (const bool from_file : {true, false}) {
    if ((from_file ? file : dns).empty()) continue;
    auto more = from_file ? ReadAgentsFile(file, port) : ResolveAgents(dns, port);
    if (more)
      listing.agents.insert(listing.agents.end(), more->begin(), more->end());
    else
      listing.trouble += (listing.trouble.empty() ? "" : "; ") + more.error().message;
  }
  std::set<std::string> seen;
  std::erase_if(listing.agents, [&](const HttpAddress& address) { return !seen.insert(Show(address)).second; });
  return listing;
}

}  // namespace tacet
