// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/fallback_findings.h"

#include <algorithm>
#include <string>
#include <utility>

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
