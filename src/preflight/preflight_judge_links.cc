// SPDX-License-Identifier: Apache-2.0
// What is wrong between hosts: connections, packet sizes, speed.
#include <algorithm>
#include <cstdio>
#include <set>

#include "preflight/preflight_judge.h"

namespace tacet {
namespace {

// Links of healthy, equal hosts differ by a factor of two under load; a bad one by far more.
constexpr double kOddShare = 0.4;
// TCP from one process reaches half to nine tenths of what a link and its hosts promise; a quarter has another reason.
constexpr double kPromisedShare = 0.25;
constexpr double kRingSlack = 4;  // steps wait for each other; a machine busy with something else doubles that

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string GigabytesPerS(double bytes_per_s) {
  char text[48];
  std::snprintf(text, sizeof text, bytes_per_s < 1e8 ? "%.3f GB/s" : "%.2f GB/s", bytes_per_s / 1e9);
  return text;
}

// Of pairs that fail, the host in most of them; where several are in equally many, all of those.
std::vector<std::string> HostsInMost(const PreflightEvidence& evidence,
                                     const std::vector<std::pair<size_t, size_t>>& pairs) {
  std::vector<size_t> counts(evidence.hosts.size());
  for (const auto& [from, to] : pairs) {
    ++counts[from];
    ++counts[to];
  }
  const size_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::vector<std::string> hosts;
  for (size_t i = 0; i < counts.size(); ++i)
    if (most > 0 && counts[i] == most) hosts.push_back(evidence.hosts[i].name);
  return hosts;
}

void JudgeMtu(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  std::map<std::string, std::vector<std::string>> by_mtu;
  for (const PreflightHost& host : evidence.hosts)
    if (const NetInterface* one = host.facts.InterfaceOf(host.address); one != nullptr && one->mtu > 0)
      by_mtu[std::to_string(one->mtu)].push_back(host.name);
  const std::string advice = "set one MTU on all interfaces and switch ports of this network (ip link set DEV mtu N)";
  if (const OddOnes odd = FindOddOnes(by_mtu); odd.found())
    return checks.push_back({"mtu", CheckLevel::fail, odd.hosts, "the MTU differs: " + odd.says, advice});
  std::vector<std::pair<size_t, size_t>> lost;
  size_t tried = 0;
  for (const LinkMeasurement& link : evidence.links) {
    if (!link.tried_datagrams || !link.small) continue;
    ++tried;
    if (!link.large) lost.emplace_back(link.from, link.to);
  }
  if (!lost.empty()) {
    const std::vector<std::string> hosts = HostsInMost(evidence, lost);
    checks.push_back({"mtu", CheckLevel::fail, hosts,
                      "full-size packets do not arrive on links of " + HostList(hosts) +
                          ", small ones do: a device on the path has a smaller MTU",
                      advice});
  } else if (!by_mtu.empty()) {
    checks.push_back(
        {"mtu",
         CheckLevel::ok,
         {},
         "MTU " + by_mtu.begin()->first + " on all hosts" + (tried > 0 ? ", and packets of that size arrive" : ""),
         ""});
  }
}

void JudgeRings(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  for (const RingMeasurement& ring : evidence.rings) {
    char text[160];
    if (!ring.error.empty()) {
      checks.push_back({ring.kind,
                        CheckLevel::warn,
                        {},
                        "the " + ring.kind + " did not finish: " + ring.error,
                        "see the links above"});
      continue;
    }
    if (ring.bytes >= 1 << 20)
      std::snprintf(text, sizeof text, "%s of %lld MiB takes %.1f ms; the links allow %.1f ms", ring.kind.c_str(),
                    static_cast<long long>(ring.bytes >> 20), ring.seconds * 1e3, ring.predicted_s * 1e3);
    else
      std::snprintf(text, sizeof text, "%s takes %.0f µs; the links allow %.0f µs", ring.kind.c_str(),
                    ring.seconds * 1e6, ring.predicted_s * 1e6);
    const bool slow = ring.predicted_s > 0 && ring.seconds > kRingSlack * ring.predicted_s && ring.seconds > 0.01;
    checks.push_back({ring.kind,
                      slow ? CheckLevel::warn : CheckLevel::ok,
                      {},
                      text,
                      slow ? "other traffic or load: measure again on idle hosts" : ""});
  }
}

// Equal hosts give equal figures within some percent; a GPU, NVLink or PCIe path that is broken costs far more.
constexpr double kOddGpuShare = 0.8;

void JudgeGpus(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  std::vector<double> rates;
  for (const PreflightHost& host : evidence.hosts)
    if (host.gpus && host.gpus->error.empty()) rates.push_back(host.gpus->bus_bytes_per_s);
  const double usual = rates.size() == 2 ? std::max(rates[0], rates[1]) : Median(rates);
  bool good = !rates.empty();
  for (const PreflightHost& host : evidence.hosts) {
    if (!host.gpus) continue;
    const std::string advice = "check dmesg for Xid, nvidia-smi nvlink -s and topo -m, or exclude the host";
    if (!host.gpus->error.empty())
      checks.push_back({"gpu-all-reduce",
                        CheckLevel::fail,
                        {host.name},
                        "the GPUs of " + host.name + " cannot do an all-reduce: " + host.gpus->error,
                        advice});
    else if (host.gpus->bus_bytes_per_s < kOddGpuShare * usual)
      checks.push_back({"gpu-all-reduce",
                        CheckLevel::fail,
                        {host.name},
                        "the GPUs of " + host.name + " reach " + GigabytesPerS(host.gpus->bus_bytes_per_s) +
                            " instead of the usual " + GigabytesPerS(usual),
                        advice});
    else
      continue;
    good = false;
  }
  if (good)
    checks.push_back({"gpu-all-reduce",
                      CheckLevel::ok,
                      {},
                      "the GPUs of a host reach " + GigabytesPerS(usual) + " (bus bandwidth, 64 MiB)",
                      ""});
  if (!evidence.all_gpus) return;
  if (!evidence.all_gpus->error.empty())
    checks.push_back({"gpu-all-reduce-across",
                      CheckLevel::fail,
                      {},
                      "the GPUs of all hosts cannot do an all-reduce: " + evidence.all_gpus->error,
                      "start the job with NCCL_DEBUG=INFO, and give the logs to tacet diagnose"});
  else
    checks.push_back({"gpu-all-reduce-across",
                      CheckLevel::ok,
                      {},
                      "the GPUs of all hosts reach " + GigabytesPerS(evidence.all_gpus->bus_bytes_per_s) +
                          " (bus bandwidth, 64 MiB)",
                      ""});
}

// The links of interfaces differ in what the driver says: one negotiated less.
void JudgeLinkRates(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  std::map<std::string, std::vector<std::string>> by_rate;
  for (const PreflightHost& host : evidence.hosts)
    if (const NetInterface* one = host.facts.InterfaceOf(host.address); one != nullptr && one->speed_mbps > 0)
      by_rate[std::to_string(one->speed_mbps) + " Mb/s"].push_back(host.name);
  if (const OddOnes odd = FindOddOnes(by_rate); odd.found())
    checks.push_back({"link-rate", CheckLevel::fail, odd.hosts, "interfaces run at different rates: " + odd.says,
                      "check cable, module and switch port (ethtool DEV)"});
}

}  // namespace

double ExpectedBytesPerS(const PreflightHost& from, const PreflightHost& to) {
  double expected = 0;
  const auto limit = [&](double rate) {
    if (rate > 0 && (expected == 0 || rate < expected)) expected = rate;
  };
  for (const PreflightHost* host : {&from, &to}) {
    if (const NetInterface* one = host->facts.InterfaceOf(host->address); one != nullptr)
      limit(static_cast<double>(one->speed_mbps) * 1e6 / 8);
    limit(host->loopback_bytes_per_s);
  }
  return expected;
}

std::vector<SlowHost> FindSlowHosts(const PreflightEvidence& evidence) {
  std::vector<SlowHost> slow;
  for (const bool sends : {true, false}) {
    // The best link counts: a good host is slow with a bad partner, a bad one with all.
    std::vector<double> best(evidence.hosts.size(), -1);
    for (const LinkMeasurement& link : evidence.links)
      if (link.error.empty())
        best[sends ? link.from : link.to] = std::max(best[sends ? link.from : link.to], link.bytes_per_s);
    std::vector<double> known;
    for (const double rate : best)
      if (rate > 0) known.push_back(rate);
    if (known.size() < 2) continue;
    // Of two, the faster direction is the measure.
    const double usual = known.size() == 2 ? std::max(known[0], known[1]) : Median(known);
    for (size_t host = 0; host < best.size(); ++host)
      if (best[host] > 0 && best[host] < kOddShare * usual) slow.push_back({host, sends, best[host], usual});
  }
  return slow;
}

void JudgeLinks(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  for (const PreflightHost& host : evidence.hosts) {
    if (!host.port_problem.empty())
      checks.push_back({"ports",
                        CheckLevel::fail,
                        {host.name},
                        host.port_problem + " on " + host.name,
                        "end what uses the ports (ss -ltnp), or choose others: --ports A-B"});
    if (!host.interface_problem.empty())
      checks.push_back({"interface",
                        CheckLevel::fail,
                        {host.name},
                        host.interface_problem + " on " + host.name,
                        "correct NCCL_SOCKET_IFNAME (ip -br addr lists the interfaces)"});
  }
  if (evidence.hosts.size() < 2) return;
  if (!evidence.failed.empty()) {
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const FailedConnection& failed : evidence.failed) pairs.emplace_back(failed.from, failed.to);
    const std::vector<std::string> hosts = HostsInMost(evidence, pairs);
    const FailedConnection& first = evidence.failed.front();
    checks.push_back({"connections", CheckLevel::fail, hosts,
                      std::to_string(evidence.failed.size()) +
                          (evidence.failed.size() == 1 ? " connection fails" : " connections fail") + ", most with " +
                          HostList(hosts) + ": " + evidence.hosts[first.from].name + " to " +
                          evidence.hosts[first.to].name + " port " + std::to_string(evidence.hosts[first.to].port) +
                          ": " + first.error,
                      "open the ports between all hosts of the job (firewall, security group, network policy)"});
  } else if (evidence.tried_connections) {
    checks.push_back({"connections", CheckLevel::ok, {}, "all hosts reach each other", ""});
  } else {
    checks.push_back({"connections", CheckLevel::skipped, {}, "links between hosts were not tested", ""});
  }
  JudgeMtu(evidence, checks);
}

void JudgeSpeed(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  JudgeGpus(evidence, checks);
  if (evidence.hosts.size() < 2 || evidence.links.empty()) return;
  JudgeLinkRates(evidence, checks);
  const std::vector<SlowHost> slow = FindSlowHosts(evidence);
  std::vector<std::string> hosts;
  std::string says;
  std::set<size_t> named;
  for (const SlowHost& one : slow) {
    if (named.insert(one.host).second) hosts.push_back(evidence.hosts[one.host].name);
    says += (says.empty() ? "" : ", ") + evidence.hosts[one.host].name + (one.sends ? " sends" : " receives") +
            " at most " + GigabytesPerS(one.best_bytes_per_s) + " instead of the usual " +
            GigabytesPerS(one.usual_bytes_per_s);
  }
  double best = 0, promised = 0;
  std::vector<double> trips;
  for (const LinkMeasurement& link : evidence.links) {
    if (!link.error.empty()) continue;
    best = std::max(best, link.bytes_per_s);
    promised = std::max(promised, ExpectedBytesPerS(evidence.hosts[link.from], evidence.hosts[link.to]));
    trips.push_back(link.rtt_us);
  }
  const std::string advice =
      "check the host's cable, switch port and interface errors (ethtool -S), and what else it sends";
  if (!slow.empty()) {
    checks.push_back({"bandwidth", CheckLevel::fail, hosts, says, advice});
  } else if (promised > 0 && best < kPromisedShare * promised) {
    // All are slow. Between two hosts that is a fault of the one link; among many it may be the way of this network.
    std::vector<std::string> all;
    for (const PreflightHost& host : evidence.hosts) all.push_back(host.name);
    checks.push_back({"bandwidth", all.size() == 2 ? CheckLevel::fail : CheckLevel::warn, all,
                      "the best link gives " + GigabytesPerS(best) + " instead of the " + GigabytesPerS(promised) +
                          " that interfaces and hosts should allow",
                      advice});
  } else {
    char text[160];
    std::snprintf(text, sizeof text, "the best link gives %s of the expected %s; round trips take %.0f µs",
                  GigabytesPerS(best).c_str(), GigabytesPerS(promised).c_str(), Median(trips));
    checks.push_back({"bandwidth", CheckLevel::ok, {}, text, ""});
  }
  JudgeRings(evidence, checks);
}

}  // namespace tacet
