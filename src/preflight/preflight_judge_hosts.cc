// SPDX-License-Identifier: Apache-2.0
// What is wrong with hosts by themselves: who came, what they have left, what they are called, what time it is there.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/text_scan.h"
#include "preflight/preflight_judge.h"

namespace tacet {
namespace {

// NCCL maps buffers of some MB per pair of ranks; a container's default of 64 MiB is known to be too little.
constexpr int64_t kShmPerRank = int64_t{32} << 20, kShmLeast = int64_t{64} << 20;
constexpr int64_t kPortsLeast = 1000;  // sockets of a large job: channels x threads x peers
constexpr int64_t kFilesForBigJobs = 65536;
constexpr int kBigJob = 64;
constexpr double kClockBreaksMs = 1000;  // leases and timeouts of stores go wrong
constexpr double kClockSpoilsMs = 1;     // timelines of ranks can no longer be laid over each other

std::string Ranks(const std::vector<int>& ranks) {
  std::string words = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < 8; ++i) {
    const bool last = i + 1 == ranks.size();
    words.append(i == 0 ? "" : last ? " and " : ", ").append(std::to_string(ranks[i]));
  }
  return ranks.size() > 8 ? words + " and " + std::to_string(ranks.size() - 8) + " more" : words;
}

std::string MiB(int64_t bytes) {
  constexpr int64_t kManyMiB = 10'000;
  return bytes >> 20 < kManyMiB ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 30) + " GiB";
}

void JudgeSharedMemory(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  std::vector<std::string> hosts;
  std::string says;
  int64_t least = INT64_MAX;
  for (const PreflightHost& host : evidence.hosts) {
    const int64_t free = host.facts.Number("shm_free", -1);
    if (free < 0) continue;
    least = std::min(least, free);
    if (free >= std::max(kShmLeast, kShmPerRank * static_cast<int64_t>(host.ranks.size()))) continue;
    hosts.push_back(host.name);
    says += (says.empty() ? "" : ", ") + host.name + " has " + MiB(free) + " of " +
            MiB(host.facts.Number("shm_total", 0)) + " free in /dev/shm";
  }
  if (!hosts.empty())
    checks.push_back({"shared-memory", CheckLevel::fail, hosts, says,
                      "remove leftovers (ls -l /dev/shm), or give the container more: --shm-size=1g or --ipc=host"});
  else if (least != INT64_MAX)
    checks.push_back({"shared-memory", CheckLevel::ok, {}, "at least " + MiB(least) + " is free in /dev/shm", ""});
}

int64_t Limit(const std::string& text) {
  std::string_view rest = text;
  int64_t value = 0;
  return text == "unlimited" ? INT64_MAX : TakeNumber(rest, &value) ? value : -1;
}

void JudgeMemlock(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  int64_t most = -1, least = INT64_MAX;
  for (const PreflightHost& host : evidence.hosts)
    if (const int64_t limit = Limit(host.facts.Value("memlock")); limit >= 0) {
      most = std::max(most, limit);
      least = std::min(least, limit);
    }
  if (most < 0) return;
  std::vector<std::string> low;
  for (const PreflightHost& host : evidence.hosts) {
    const int64_t limit = Limit(host.facts.Value("memlock"));
    const bool rdma = !host.facts.Value("rdma_ports").empty();
    if (limit >= 0 && limit != INT64_MAX && (rdma || limit < most)) low.push_back(host.name);
  }
  const std::string advice =
      "set memlock to unlimited (/etc/security/limits.conf, LimitMEMLOCK=infinity of slurmd or containerd, --ulimit "
      "memlock=-1)";
  const auto words = [](int64_t limit) {
    return limit == INT64_MAX ? std::string("unlimited")
           : limit < 1 << 20  ? std::to_string(limit) + " bytes"
                              : MiB(limit);
  };
  if (!low.empty())
    checks.push_back({"locked-memory", CheckLevel::fail, low,
                      "ulimit -l is " + words(least) + " on " + HostList(low) +
                          (least < most ? ", " + words(most) + " elsewhere" : ", and RDMA needs it unlimited"),
                      advice});
  else
    checks.push_back({"locked-memory",
                      CheckLevel::ok,
                      {},
                      "ulimit -l is " + words(most) +
                          (most == INT64_MAX ? "" : "; only RDMA needs more, and no RDMA device was found"),
                      ""});
}

void JudgeClocks(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  std::vector<std::string> broken, off;
  double worst = 0;
  size_t told = 0;
  // The median is the time; rank 0 may be the odd one.
  std::vector<double> offsets;
  for (const PreflightHost& host : evidence.hosts)
    if (host.clock_ms) offsets.push_back(*host.clock_ms);
  if (offsets.size() < 2) return;
  std::sort(offsets.begin(), offsets.end());
  const double median = offsets[offsets.size() / 2];
  for (const PreflightHost& host : evidence.hosts) {
    if (!host.clock_ms) continue;
    ++told;
    const double offset = std::abs(*host.clock_ms - median);
    if (offset > host.clock_error_ms) worst = std::max(worst, offset);
    if (offset > kClockBreaksMs + host.clock_error_ms)
      broken.push_back(host.name);
    else if (offset > kClockSpoilsMs + host.clock_error_ms)
      off.push_back(host.name);
  }
  char text[96];
  std::snprintf(text, sizeof text, "clocks differ by up to %.1f ms", worst);
  const std::string advice = "run chrony or ntpd (timedatectl, chronyc tracking)";
  if (!broken.empty())
    checks.push_back(
        {"clock", CheckLevel::fail,
         evidence.hosts.size() == 2 ? std::vector<std::string>{evidence.hosts[0].name, evidence.hosts[1].name} : broken,
         std::string(text) + ": " + HostList(broken), advice});
  else if (!off.empty())
    checks.push_back({"clock", CheckLevel::warn, off, std::string(text) + ": " + HostList(off), advice});
  else if (told > 0)
    checks.push_back({"clock", CheckLevel::ok, {}, text, ""});
}

}  // namespace

void JudgeArrival(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  const std::string first = evidence.hosts.empty() ? "" : evidence.hosts[0].name;
  if (!evidence.meet_problem.empty())
    checks.push_back({"meeting-port",
                      CheckLevel::fail,
                      {first},
                      evidence.meet_problem,
                      "end what uses it (ss -ltnp), or choose another MASTER_PORT"});
  if (!evidence.missing_ranks.empty())
    checks.push_back(
        {"ranks",
         CheckLevel::fail,
         {},
         Ranks(evidence.missing_ranks) + " of " + std::to_string(evidence.size) + " did not join",
         std::string(evidence.missing_ranks.size() == 1 ? "its own output shows what it could not reach"
                                                        : "their own output shows what they could not reach") +
             "; check the port of rank 0, host names and the launcher"});
  if (!evidence.doubled_ranks.empty())
    checks.push_back({"ranks",
                      CheckLevel::fail,
                      {},
                      Ranks(evidence.doubled_ranks) + " joined twice",
                      "two jobs use the same address and port, or the launcher assigns a rank twice"});
  if (!evidence.other_size_ranks.empty())
    checks.push_back({"ranks",
                      CheckLevel::fail,
                      {},
                      Ranks(evidence.other_size_ranks) + (evidence.other_size_ranks.size() == 1 ? " was" : " were") +
                          " stated a different number of ranks from " + std::to_string(evidence.size),
                      "start all hosts with the same number of ranks"});
  if (evidence.missing_ranks.empty() && evidence.meet_problem.empty())
    checks.push_back({"ranks",
                      CheckLevel::ok,
                      {},
                      std::to_string(evidence.size) + (evidence.size == 1 ? " rank on " : " ranks on ") +
                          std::to_string(evidence.hosts.size()) + (evidence.hosts.size() == 1 ? " host" : " hosts"),
                      ""});
  std::map<std::string, std::vector<std::string>> by_count;
  for (const PreflightHost& host : evidence.hosts) by_count[std::to_string(host.ranks.size())].push_back(host.name);
  if (const OddOnes odd = FindOddOnes(by_count); odd.found() && evidence.missing_ranks.empty())
    checks.push_back({"ranks-per-host", CheckLevel::warn, odd.hosts, "ranks per host differ: " + odd.says,
                      "give every host the same number of ranks"});
}

void JudgeResources(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  JudgeSharedMemory(evidence, checks);
  JudgeMemlock(evidence, checks);
  JudgeClocks(evidence, checks);
  for (const PreflightHost& host : evidence.hosts) {
    const HostFacts& facts = host.facts;
    if (const std::string problem = facts.Value("gpu_problem"); !problem.empty())
      checks.push_back({"gpus",
                        CheckLevel::fail,
                        {host.name},
                        problem + " on " + host.name,
                        "check dmesg for Xid, and run nvidia-smi by hand"});
    if (const std::string gpu = facts.Value("gpu_throttled"); !gpu.empty())
      checks.push_back({"gpu-clocks",
                        CheckLevel::fail,
                        {host.name},
                        gpu + " of " + host.name + " is throttled by heat or power",
                        "check nvidia-smi -q -d PERFORMANCE and the cooling"});
    if (const std::string down = facts.Value("rdma_down"); !down.empty())
      checks.push_back({"rdma-state",
                        CheckLevel::fail,
                        {host.name},
                        "a port is not active on " + host.name + ": " + down,
                        "check the cable, the switch port and the subnet manager (ibstat)"});
    const std::string range = facts.Value("port_range");
    std::string_view rest = range;
    int64_t low = 0, high = 0;
    if (TakeNumber(rest, &low) && (rest = Trim(rest), TakeNumber(rest, &high)) && high - low < kPortsLeast)
      checks.push_back({"ports",
                        CheckLevel::fail,
                        {host.name},
                        host.name + " has only " + std::to_string(high - low + 1) + " local ports",
                        "widen net.ipv4.ip_local_port_range"});
    if (evidence.size >= kBigJob && Limit(facts.Value("open_files")) >= 0 &&
        Limit(facts.Value("open_files")) < kFilesForBigJobs)
      checks.push_back({"open-files",
                        CheckLevel::warn,
                        {host.name},
                        "ulimit -n is " + facts.Value("open_files") + " on " + host.name,
                        "raise it to 131072 for jobs of many ranks"});
    if (facts.Value("stack") == "unlimited")
      checks.push_back({"stack",
                        CheckLevel::warn,
                        {host.name},
                        "ulimit -s is unlimited on " + host.name + ": threads then get stacks of 2 MiB",
                        "set ulimit -s 8192"});
    if (facts.Value("cores") == "1" && host.ranks.size() > 1)
      checks.push_back({"cores",
                        CheckLevel::fail,
                        {host.name},
                        "all " + std::to_string(host.ranks.size()) + " ranks of " + host.name + " share one core",
                        "check the launcher's binding (srun --cpus-per-task, mpirun --bind-to none)"});
  }
}

void JudgeNames(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  if (evidence.hosts.size() < 2) return;
  // NCCL tells hosts apart by name and boot id; clones of a machine have both in common.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> twins;
  std::vector<std::string> loopback, unresolved;
  for (const PreflightHost& host : evidence.hosts) {
    const bool has_id = std::any_of(host.facts.variables.begin(), host.facts.variables.end(),
                                    [](const auto& one) { return one.first == "NCCL_HOSTID"; });
    if (!has_id) twins[{host.facts.Value("host"), host.facts.Value("boot_id")}].push_back(host.name);
    const std::string own = host.facts.Value("own_name");
    if (own.starts_with("127.") || own == "::1") loopback.push_back(host.name);
    if (own == "does not resolve") unresolved.push_back(host.name);
  }
  for (const auto& [identity, hosts] : twins)
    if (hosts.size() > 1)
      checks.push_back({"names", CheckLevel::fail, hosts,
                        std::to_string(hosts.size()) + " hosts are called " + identity.first +
                            " and have the same boot id: NCCL treats them as one",
                        "give each its own host name, or its own NCCL_HOSTID"});
  const std::string advice = "correct /etc/hosts, or set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME";
  if (!loopback.empty())
    checks.push_back({"names", CheckLevel::warn, loopback,
                      "the name of " + HostList(loopback) +
                          " resolves to the loopback address: gloo may listen where no other host can reach it",
                      advice});
  if (!unresolved.empty())
    checks.push_back({"names", CheckLevel::warn, unresolved,
                      "the name of " + HostList(unresolved) + " does not resolve there", advice});
}

}  // namespace tacet
