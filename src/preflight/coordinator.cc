// SPDX-License-Identifier: Apache-2.0
#include "preflight/coordinator.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text_scan.h"
#include "preflight/host_facts.h"

namespace tacet {
namespace {

constexpr int64_t kHelloMs = 2000;  // facts are collected before a process comes

std::string TextIn(const JsonValue& message, std::string_view key) {
  const JsonValue* value = message.Find(key);
  return value != nullptr ? value->text : "";
}

int64_t IntIn(const JsonValue& message, std::string_view key) {
  const JsonValue* value = message.Find(key);
  return value != nullptr ? value->Int(-1) : -1;
}

bool IsLoopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

// Addresses that tell machines apart: all but loopback.
std::string OutsideAddresses(const HostFacts& facts) {
  std::set<std::string> addresses;
  for (const NetInterface& one : facts.interfaces)
    for (const std::string& address : one.addresses)
      if (!IsLoopback(address)) addresses.insert(address);
  std::string joined;
  for (const std::string& address : addresses) joined += address + " ";
  return joined;
}

std::string VariableOf(const HostFacts& facts, std::string_view name) {
  for (const auto& [key, value] : facts.variables)
    if (key == name) return value;
  return "";
}

}  // namespace

std::vector<std::vector<std::pair<size_t, size_t>>> PairRounds(size_t hosts, size_t most) {
  std::vector<std::vector<std::pair<size_t, size_t>>> rounds;
  if (hosts < 2) return rounds;
  const size_t seats = hosts + hosts % 2;  // with an odd number somebody sits out
  for (size_t round = 0; round + 1 < seats && round < most; ++round) {
    auto& pairs = rounds.emplace_back();
    for (size_t i = 0; i < seats / 2; ++i) {
      // The last seat stays, all others move on by one.
      const size_t a = i == 0 ? seats - 1 : (round + i) % (seats - 1), b = (round + seats - 1 - i) % (seats - 1);
      if (a < hosts && b < hosts) pairs.emplace_back(a, b);
    }
  }
  return rounds;
}

bool SelectsInterface(std::string_view list, std::string_view name) {
  const bool exclude = TakeLiteral(list, "^");
  const bool exact = TakeLiteral(list, "=");
  bool listed = false;
  while (!list.empty()) {
    const std::string_view one = TakeUntil(list, ',');
    if (!list.empty()) list.remove_prefix(1);
    const std::string_view bare = one.substr(0, one.find(':'));
    listed |= !bare.empty() && (exact ? name == bare : name.starts_with(bare));
  }
  return listed != exclude;
}

std::string InterfaceProblem(const HostFacts& facts) {
  const std::string wanted = VariableOf(facts, "NCCL_SOCKET_IFNAME");
  const bool matched =
      wanted.empty() || std::any_of(facts.interfaces.begin(), facts.interfaces.end(), [&](const NetInterface& one) {
        return one.up && SelectsInterface(wanted, one.name);
      });
  return matched ? "" : "NCCL_SOCKET_IFNAME=" + wanted + " matches no interface that is up";
}

bool Coordinator::Open() {
  evidence_.size = options_.place.size;
  evidence_.launcher = options_.place.launcher;
  int port = 0;
  auto listener = Listen(options_.place.meet_port, options_.place.meet_port, &port);
  if (!listener) {
    evidence_.meet_problem = "the job's " + listener.error().message;
    return false;
  }
  listener_ = std::move(*listener);
  return true;
}

void Coordinator::Gather() {
  const int64_t deadline = MonotonicMs() + options_.wait_ms;
  while (arrived_.size() < static_cast<size_t>(evidence_.size) && MonotonicMs() < deadline) {
    pollfd one{listener_.fd(), POLLIN, 0};
    if (::poll(&one, 1, 100) <= 0) continue;
    Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.open()) Admit(std::move(socket));
  }
  std::sort(arrived_.begin(), arrived_.end(), [](const Arrived& a, const Arrived& b) { return a.rank < b.rank; });
  size_t next = 0;
  constexpr size_t kMostListed = 65536;
  for (int rank = 0; rank < evidence_.size && evidence_.missing_ranks.size() < kMostListed; ++rank)
    if (next < arrived_.size() && arrived_[next].rank == rank)
      ++next;
    else
      evidence_.missing_ranks.push_back(rank);
  FormHosts();
}

void Coordinator::Admit(Socket socket) {
  Arrived one;
  one.our_address = LocalAddress(socket.fd());
  one.address = PeerAddress(socket.fd());
  one.channel = std::make_unique<MessageChannel>(std::move(socket));
  const auto hello = one.channel->Receive(MonotonicMs() + kHelloMs);
  if (!hello || TextIn(*hello, "tacet") != "preflight" || TextIn(*hello, "token") != options_.place.token) return;
  one.rank = static_cast<int>(IntIn(*hello, "rank"));
  if (one.rank < 0 || one.rank >= evidence_.size) return;
  if (std::any_of(arrived_.begin(), arrived_.end(), [&](const Arrived& other) { return other.rank == one.rank; })) {
    evidence_.doubled_ranks.push_back(one.rank);
    return;
  }
  if (IntIn(*hello, "size") != evidence_.size) evidence_.other_size_ranks.push_back(one.rank);
  one.port = static_cast<int>(IntIn(*hello, "port"));
  one.port_problem = TextIn(*hello, "port_problem");
  if (const JsonValue* facts = hello->Find("facts")) one.facts = ReadFacts(*facts);
  arrived_.push_back(std::move(one));
}

// Ranks with the same name, boot id and addresses are on one host.
void Coordinator::FormHosts() {
  std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
  std::map<std::string, int> names;
  for (size_t i = 0; i < arrived_.size(); ++i) {
    Arrived& one = arrived_[i];
    const auto [at, is_new] = known.try_emplace(
        {one.facts.Value("host"), one.facts.Value("boot_id"), OutsideAddresses(one.facts)}, evidence_.hosts.size());
    one.host = at->second;
    if (is_new) {
      PreflightHost& host = evidence_.hosts.emplace_back();
      host.name = one.facts.Value("host");
      ++names[host.name];
      host.facts = one.facts;
      host.port = one.port;
      host.port_problem = one.port_problem;
      ChooseAddress(one, host);
      measuring_.push_back(i);
    }
    evidence_.hosts[one.host].ranks.push_back(one.rank);
  }
  for (PreflightHost& host : evidence_.hosts)
    if (names[host.name] > 1) host.name += " (" + host.address + ")";
  for (const Arrived& one : arrived_) {
    GivenEnvironment& environment = evidence_.environments.emplace_back();
    environment.source = EnvironmentSource::process;
    environment.host = evidence_.hosts[one.host].name;
    environment.holder = "rank " + std::to_string(one.rank) + " on " + environment.host;
    for (const auto& [name, value] : one.facts.variables) environment.variables.push_back({name, value});
  }
}

// The interface that NCCL is told to use; else the address that the host came from, and for rank 0's own host the one
// that others came to.
void Coordinator::ChooseAddress(const Arrived& first, PreflightHost& host) const {
  host.address = first.address;
  if (IsLoopback(host.address))
    for (const Arrived& other : arrived_)
      if (!IsLoopback(other.address)) host.address = other.our_address;
  if (const std::string wanted = VariableOf(first.facts, "NCCL_SOCKET_IFNAME"); !wanted.empty()) {
    for (const NetInterface& one : first.facts.interfaces) {
      if (!SelectsInterface(wanted, one.name) || !one.up) continue;
      const NetInterface* now = first.facts.InterfaceOf(host.address);
      if (now != nullptr && SelectsInterface(wanted, now->name)) break;
      const auto four = std::find_if(one.addresses.begin(), one.addresses.end(),
                                     [](const std::string& a) { return a.find(':') == std::string::npos; });
      if (four != one.addresses.end()) host.address = *four;
    }
    host.interface_problem = InterfaceProblem(first.facts);
  }
  if (const NetInterface* one = first.facts.InterfaceOf(host.address)) host.interface = one->name;
}

std::vector<std::optional<JsonValue>> Coordinator::Ask(const std::vector<std::pair<size_t, std::string>>& commands,
                                                       int64_t limit_ms) {
  const int64_t deadline = MonotonicMs() + limit_ms;
  std::vector<std::optional<JsonValue>> answers;
  for (const auto& [host, command] : commands) ChannelOf(host).Send(command, deadline);
  for (const auto& [host, command] : commands) answers.push_back(ChannelOf(host).Receive(deadline));
  // Who is late once would answer the next question with this answer.
  for (size_t i = 0; i < commands.size(); ++i)
    if (!answers[i]) ChannelOf(commands[i].first).Close();
  return answers;
}

void Coordinator::End(int code) {
  const std::string message = "{\"do\":\"end\",\"code\":" + std::to_string(code) + "}";
  for (Arrived& one : arrived_) one.channel->Send(message, MonotonicMs() + 1000);
}

}  // namespace tacet
