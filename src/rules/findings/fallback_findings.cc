// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/fallback_findings.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_scan.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/topology_words.h"
#include "rules/words/words.h"

namespace tacet {

Finding FallbackFinding(const ToldEvents& told) {
  Finding finding;
  finding.cause = "transport-fallback";
  finding.status = Status::degraded;
  finding.confidence = Confidence::certain;
  finding.severity = Severity::warning;
  finding.ranks = told.ranks;
  return finding;
}

std::string OtherPlugin(const ToldEvents& told) {
  const std::string& plugin = told.events.front()->As<Warning>().object;
  return plugin.find("ibfabric") != std::string::npos || plugin == "OFI" ? std::string() : plugin;
}

Finding OtherPluginFinding(const std::string& plugin, const ToldEvents& told, const ToldEvents& socket) {
  Finding finding = FallbackFinding(told);
  finding.confidence = socket ? Confidence::certain : Confidence::likely;
  finding.headline =
      "NCCL's network plugin " + plugin + " could not start " + AtTellerWords(told) + ": " +
      (socket ? "NCCL uses TCP sockets instead" : "NCCL cannot use that network there, and uses TCP sockets or fails");
  finding.evidence.push_back(CiteEvent(*told.events.front(), "the plugin gives up"));
  if (socket) finding.evidence.push_back(CiteEvent(*socket.events.front(), "the network NCCL chose"));
  finding.fix = {
      "Read the plugin's lines before the cited one (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET): they say what it "
      "did not find.",
      "Check that the container has the adapters' devices (ls /dev/infiniband) and the libraries of the plugin in the "
      "versions that the host's driver and this NCCL need, and that every node has them.",
      "Then NCCL_DEBUG=INFO must show 'Using network' with the plugin's name. NCCL_NET set to that name makes NCCL "
      "fail "
      "instead of using sockets."};
  return finding;
}

Finding SplitHostFinding(const Case& facts, const ToldEvents& socket, const std::vector<const Event*>& splitters) {
  Finding finding = FallbackFinding({});
  finding.severity = Severity::note;
  finding.affected_ranks = socket.ranks;
  finding.headline = "NCCL uses TCP sockets between processes of one host (" + *HostsSeen(facts.incident).begin() +
                     "), which NCCL_HOSTID makes it treat as " + std::to_string(splitters.size()) + " hosts";
  finding.evidence.push_back(CiteEvent(*socket.events.front(), "the network NCCL chose"));
  constexpr size_t kMostCited = 2;
  for (size_t i = 0; i < splitters.size() && i < kMostCited; ++i)
    finding.evidence.push_back(
        CiteEvent(*splitters[i], i == 0 ? "the name of the host for one process" : "another name for another process"));
  finding.fix = {
      "Give all processes of a host the same NCCL_HOSTID, or unset it: they then use NVLink, PCIe or shared memory. "
      "If a test uses one host in place of several, nothing is wrong."};
  finding.explanation =
      "NCCL takes processes with different values of NCCL_HOSTID for processes of different hosts, and connects them "
      "over the network instead of NVLink, PCIe or shared memory.";
  return finding;
}

bool IsSurvivedSetup(const Event& event) {
  if (event.kind != EventKind::nccl_warning || event.As<Warning>().role != NcclWarningRole::notice) return false;
  const std::string_view id = event.As<Warning>().id;
  return id == "net-device-setup-failed" || id == "net-plugin-failed" || id == "net-gdr-off";
}

void TellFailedSetup(const ToldEvents& setup, Finding& finding) {
  std::set<std::string_view> told;
  for (const Event* event : setup.events) {
    const std::string_view id = event->As<Warning>().id;
    if (!told.insert(id).second) continue;
    const bool gpu_direct = id == "net-gdr-off";
    finding.evidence.push_back(
        CiteEvent(*event, gpu_direct ? "the plugin finds no GPUDirect RDMA on this host" : "what failed before that"));
    if (!gpu_direct) continue;
    finding.headline += ". The plugin finds no GPUDirect RDMA, which this type of instance has";
    finding.fix.insert(finding.fix.begin(),
                       "On that host: lsmod | grep -E 'efa|peermem', modinfo efa, nvidia-smi, uname -r. GPUDirect RDMA "
                       "needs the EFA driver and NVIDIA's driver in versions that go together, and efa_nv_peermem or a "
                       "kernel with DMA-BUF; FI_EFA_USE_DEVICE_RDMA must not be 0.");
  }
}

Finding MpiFallbackFinding(const ToldEvents& told) {
  Finding finding = FallbackFinding({});
  finding.affected_ranks = told.ranks;
  finding.confidence = Confidence::possible;  // with UCX nothing is slower
  const std::string& what = told.events.front()->As<Warning>().object;
  finding.headline =
      "Open MPI cannot use the InfiniBand or RoCE network" +
      (told.hosts.empty() ? "" : " on " + ListWords({told.hosts.begin(), told.hosts.end()})) +
      (what.empty() ? "" : " (" + what + ")") +
      " by its own openib, and continues over another transport: UCX where it was built with it, else most "
      "often TCP";
  finding.evidence.push_back(CiteEvent(*told.events.front(), "Open MPI's own note"));
  finding.fix = {
      "If the job uses UCX (--mca pml ucx), or the host has no such adapter: nothing is wrong; --mca btl ^openib "
      "silences the note.",
      "If it has one: use an Open MPI with UCX (--mca pml ucx), and check that the adapter works there: "
      "ibv_devinfo; ucx_info -d.",
      "'Cannot allocate memory' for a queue: raise ulimit -l (memlock) where the job starts."};
  // The adapter is there then.
  if (Contains(what, "Cannot allocate memory")) {
    finding.fix.erase(finding.fix.begin());
    std::reverse(finding.fix.begin(), finding.fix.end());
    finding.fix.back() =
        "Use an Open MPI with UCX (--mca pml ucx), and check that the adapter works there: ibv_devinfo; ucx_info -d.";
  }
  finding.explanation =
      "Open MPI looked for a network adapter, found none that it can use, and chose a slower way between the hosts.";
  return finding;
}

bool IsNoteOfNoAdapter(const Case& facts, const ToldEvents& told) {
  if (FindToldWords(facts.incident, EventKind::told_slow)) return false;
  return std::all_of(told.events.begin(), told.events.end(), [&](const Event* note) {
    if (!note->As<Warning>().object.starts_with("OpenFabrics")) return false;
    return std::any_of(facts.incident.outlines.begin(), facts.incident.outlines.end(), [&](const LogOutline& outline) {
      return std::any_of(outline.series.begin(), outline.series.end(), [&](const FigureSeries& figure) {
        return figure.last.file == note->source.file && figure.last.line > note->source.line;
      });
    });
  });
}

}  // namespace tacet
