// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/text_scan.h"
#include "rules/rule.h"
#include "rules/words.h"

namespace tacet {

static RuleAnswer JudgeFallback(const Case& facts) {
  RuleAnswer answer;
  std::set<Rank> has_fast, uses_socket, no_fast, without_gdr, with_gdr;
  const Event *fast = nullptr, *socket = nullptr, *none = nullptr, *staged = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::device_found) has_fast.insert(event.rank), fast = fast ? fast : &event;
    if (event.kind == EventKind::no_device) no_fast.insert(event.rank), none = none ? none : &event;
    if (event.kind == EventKind::network && event.subject == "Socket")
      uses_socket.insert(event.rank), socket = socket ? socket : &event;
    if (event.kind == EventKind::transport && Contains(event.subject, "NET/IB")) {
      if (Contains(event.subject, "GDRDMA"))
        with_gdr.insert(event.rank);
      else
        without_gdr.insert(event.rank), staged = staged ? staged : &event;
    }
  }
  for (const Rank rank : with_gdr) without_gdr.erase(rank);
  Finding finding;
  finding.cause = "transport-fallback";
  finding.status = Status::degraded;
  finding.confidence = Confidence::certain;
  std::set<Rank> fallen;
  for (const Rank rank : uses_socket)
    if (has_fast.contains(rank)) fallen.insert(rank);
  if (!fallen.empty()) {
    finding.severity = Severity::warning;
    finding.ranks.assign(fallen.begin(), fallen.end());
    finding.headline = RankWords(finding.ranks) + " use TCP sockets although InfiniBand devices exist";
    finding.evidence.push_back(CiteEvent(*socket, "the network NCCL chose"));
    finding.evidence.push_back(CiteEvent(*fast, "a faster device of the same host"));
  } else if (!uses_socket.empty() && uses_socket.size() < facts.analyses.life.ranks.size() && !has_fast.empty()) {
    // Some hosts have the fast network, others do not: the slowest decides for all.
    finding.severity = Severity::warning;
    finding.ranks.assign(uses_socket.begin(), uses_socket.end());
    finding.headline =
        RankWords(finding.ranks) + " have no InfiniBand device while other ranks do: the slowest path decides for all";
    finding.evidence.push_back(CiteEvent(none ? *none : *socket, "no device on this host"));
    finding.evidence.push_back(CiteEvent(*fast, "a device on another host"));
  } else if (!without_gdr.empty() && staged) {
    finding.severity = Severity::warning;
    finding.ranks.assign(without_gdr.begin(), without_gdr.end());
    finding.headline =
        RankWords(finding.ranks) + " use InfiniBand without GPUDirect RDMA: data is staged through host memory";
    finding.evidence.push_back(CiteEvent(*staged, "the connection lacks /GDRDMA"));
  } else if (!uses_socket.empty() && socket) {
    // Nothing faster exists here: worth knowing, no fault.
    finding.severity = Severity::note;
    finding.ranks = {};
    finding.affected_ranks.assign(uses_socket.begin(), uses_socket.end());
    finding.headline = "NCCL uses TCP sockets; no faster network device was found on these hosts";
    finding.evidence.push_back(CiteEvent(*socket, "the network NCCL chose"));
    if (none) finding.evidence.push_back(CiteEvent(*none, "there is no InfiniBand device"));
  } else {
    return answer;
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kTransportFallbackRule;
const Rule kTransportFallbackRule = {
    "transport-fallback",
    "A fast path exists and is not used",
    "NCCL logs (INIT, NET)",
    "NCCL fell back to a slower transport without being told to: sockets although InfiniBand devices exist, or "
    "InfiniBand without GPUDirect RDMA.",
    "Sockets on a host that has nothing else are normal and only noted. A variable that forces the slow path is "
    "another cause.",
    {"Sockets beside IB: look for 'NET/IB' and 'NET/Plugin' lines; device permissions in the container "
     "(/dev/infiniband), ulimit -l, NCCL_IB_HCA, a missing plugin on cloud images.",
     "No GDRDMA: load nvidia_peermem or use DMA-BUF, check ACS and that GPU and NIC share a PCIe switch (nvidia-smi "
     "topo -m)."},
    {"Check 'Using network' and '/GDRDMA' in the log of every new image before long jobs."},
    JudgeFallback};

}  // namespace tacet
