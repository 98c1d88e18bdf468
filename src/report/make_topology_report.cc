// SPDX-License-Identifier: Apache-2.0
#include "report/make_topology_report.h"

#include <algorithm>
#include <set>

#include "analysis/process/standstill.h"
#include "model/assembly/assembly.h"
#include "model/events/event_words.h"
#include "report/build_report.h"
#include "report/redact_report.h"

namespace tacet {
namespace {

constexpr std::string_view kTopologyCauses[] = {
    "ring-broken",         "graph-search-failed",  "nic-count-unequal",  "node-lowers-graph", "nic-path-through-cpu",
    "ring-reenters-node",  "nic-unbalanced",       "rails-crossed",      "pxn-off",           "nvls-not-connected",
    "channels-limited",    "rank-order-scattered", "rank-unlike-others", "ll128-lost",        "transport-fallback",
    "environment-cripples"};

bool IsTopologyCause(std::string_view cause) {
  return std::find(std::begin(kTopologyCauses), std::end(kTopologyCauses), cause) != std::end(kTopologyCauses);
}

std::string Counted(size_t n, const std::string& noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

bool OverSockets(const TopologyView& view) {
  return view.nodes.size() > 1 &&
         std::all_of(view.nodes.begin(), view.nodes.end(), [](const NodeView& node) { return node.net == "Socket"; });
}

// "6 rings over 4 nodes are complete", "6 rings of 3 communicators over 2 to 4 nodes are complete": each communicator
// has nodes of its own.
std::string CompleteRings(const TopologyView& view, size_t rings) {
  size_t comms = 0;
  int32_t least = INT32_MAX, most = 0;
  for (const CommView& comm : view.comms) {
    if (comm.rings.empty()) continue;
    ++comms;
    const int32_t nodes = comm.nodes > 0 ? comm.nodes : static_cast<int32_t>(view.nodes.size());
    least = std::min(least, nodes);
    most = std::max(most, nodes);
  }
  std::string words = Counted(rings, "ring");
  if (comms > 1) words += " of " + Counted(comms, "communicator");
  words += " over ";
  if (least < most) words += std::to_string(least) + " to ";
  words += Counted(static_cast<size_t>(most), "node");
  words += rings == 1 ? " is complete and visits every rank" : " are complete and visit every rank";
  return words + (comms > 1 ? " of their communicators once" : " once");
}

// NCCL reports these only while it builds a communicator.
constexpr std::string_view kSetupWarnings[] = {"duplicate-gpu",
                                               "version-mismatch",
                                               "bootstrap-nranks-mismatch",
                                               "bootstrap-duplicate-rank",
                                               "bootstrap-stranger",
                                               "bootstrap-message-truncated",
                                               "invalid-init-argument",
                                               "invalid-comm-id",
                                               "net-count-mismatch",
                                               "network-type-mismatch",
                                               "socket-no-interface",
                                               "oob-no-device",
                                               "port-in-use",
                                               "net-unavailable",
                                               "no-transport",
                                               "inconsistent-channels",
                                               "ipc-export-failed",
                                               "p2p-peering-failed",
                                               "fabric-not-ready",
                                               "ib-register-failed",
                                               "nvls-bind-failed"};
// And these only from operations that run.
constexpr std::string_view kTransferWarnings[] = {"message-truncated", "ib-size-mismatch",     "ib-completion-error",
                                                  "ib-async-fatal",    "transfer-failed",      "net-peer-unresponsive",
                                                  "ib-post-failed",    "mismatched-collective"};

// The error after which nothing was built, where no process says that its setup was completed.
struct FailedSetup {
  const Event* warning = nullptr;  // null: there is none
  bool in_setup = false;           // known to be of the setup; a log of warnings alone may leave that open
};

FailedSetup FindFailedSetup(const Incident& incident) {
  FailedSetup found;
  bool begun = false;
  for (const Event& event : incident.events) {
    if (event.kind == EventKind::init_completed) return {};
    begun = begun || event.kind == EventKind::init_started;
    if (!found.warning && event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::cause)
      found.warning = &event;
  }
  if (!found.warning) return found;
  const std::string_view id = found.warning->As<Warning>().id;
  const auto is_one_of = [&](const auto& ids) {
    return std::find(std::begin(ids), std::end(ids), id) != std::end(ids);
  };
  found.in_setup = is_one_of(kSetupWarnings) || (begun && !is_one_of(kTransferWarnings));
  return found;
}

// "NCCL failed during initialization on rank 1 (nccl_rank1.log:6: Bootstrap : ...). ...".
std::string FailedSetupWords(const Incident& incident, const FailedSetup& failed) {
  const Event& warning = *failed.warning;
  std::string words = failed.in_setup ? "NCCL failed during initialization" : "NCCL reported an error";
  if (warning.rank.known()) words += " on rank " + std::to_string(warning.rank.value);
  const auto file = static_cast<size_t>(warning.source.file);
  words += " (";
  if (file < incident.files.size())
    words += incident.files[file].path + ":" + std::to_string(warning.source.line) + ": ";
  return words.append(MessageOf(warning)) + "). 'tacet diagnose' says what to do.";
}

// What looks right, and how much of the job that was told by.
void SettleWithoutFault(const Incident& incident, const Analyses& analyses, Diagnosis& diagnosis) {
  const TopologyView& view = analyses.topology;
  size_t whole = 0, rings = 0, seen = 0, ranks = 0;
  for (const CommView& comm : view.comms) {
    for (const RingView& ring : comm.rings) ++rings, whole += ring.whole ? 1 : 0;
    if (&comm == &view.comms.front()) {
      seen = comm.process_of.size();
      ranks = static_cast<size_t>(std::max(comm.ranks, 0));
    }
  }
  if (rings == 0) {
    diagnosis.status = Status::undetermined;
    if (const FailedSetup failed = FindFailedSetup(incident); failed.warning) {
      diagnosis.headline =
          (failed.in_setup ? "No ring was built: " : "No ring was logged; ") + FailedSetupWords(incident, failed);
      return;
    }
    diagnosis.headline = view.empty() ? "Nothing here shows how ranks are connected"
                                      : "No ring was logged; what else is known is listed below";
    const bool no_peer = std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
      return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "p2p-disabled";
    });
    if (no_peer)
      diagnosis.headline += ". GPUs of one node cannot reach each other directly: NCCL says that P2P is disabled";
    diagnosis.open.push_back({"Which rings and transports does NCCL use?",
                              "NCCL logs with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING"});
    return;
  }
  const bool all = whole == rings && seen >= ranks;
  // Half a ring beside an error is no ring that looks right.
  if (const FailedSetup failed = FindFailedSetup(incident); !all && (failed.warning || ranks == 0)) {
    diagnosis.status = Status::undetermined;
    diagnosis.headline = failed.warning ? "Only part of the rings was logged; " + FailedSetupWords(incident, failed)
                                        : std::string("Too little was logged to judge the rings");
    return;
  }
  diagnosis.status = Status::healthy;
  diagnosis.confidence = all ? Confidence::certain : Confidence::likely;
  diagnosis.headline =
      all ? CompleteRings(view, rings) +
                (OverSockets(view) ? "; every hop uses the fastest transport that this network (TCP sockets) offers"
                                   : "; no hop is slower than it could be")
          : "The part of " + Counted(rings, "ring") + " that " + std::to_string(seen) + " of " +
                Counted(ranks, "rank") + (seen == 1 ? " shows" : " show") + " looks right";
}

// Questions about rings and transports that the logs leave open.
void AddOpenQuestions(const Incident& incident, const TopologyView& view, Diagnosis& diagnosis) {
  if (view.comms.empty()) return;
  const CommView& comm = view.comms.front();
  // What was never built, no other log shows.
  if (FindFailedSetup(incident).warning) return;
  const auto ranks = static_cast<size_t>(std::max(comm.ranks, 0));
  if (comm.process_of.size() < ranks)
    diagnosis.open.push_back({ranks - comm.process_of.size() == 1 ? "Is the other rank connected the same way?"
                                                                  : "Are the other ranks connected the same way?",
                              ranks - comm.process_of.size() == 1
                                  ? "the NCCL log of the other rank"
                                  : "the NCCL logs of the other " + Counted(ranks - comm.process_of.size(), "rank")});
  const bool graphs = std::any_of(incident.nccl_setups.begin(), incident.nccl_setups.end(),
                                  [](const NcclSetup& setup) { return !setup.graphs.empty(); });
  if (!graphs && comm.nodes > 1)
    diagnosis.open.push_back({"Does one node limit the others?", "NCCL logs with GRAPH in NCCL_DEBUG_SUBSYS"});
  const bool connected = std::any_of(incident.rank_channels.begin(), incident.rank_channels.end(),
                                     [](const RankChannels& one) { return !one.uses.empty(); });
  if (!connected)
    diagnosis.open.push_back({"Which transport does each hop take?",
                              "a log that includes the first collective: since 2.22 NCCL connects on first use"});
}

void KeepTopology(const Incident& incident, const Analyses& analyses, Diagnosis& diagnosis) {
  std::erase_if(diagnosis.findings, [](const Finding& finding) { return !IsTopologyCause(finding.cause); });
  // Which network joins nodes says nothing about a job on one node.
  const auto& comms = analyses.topology.comms;
  const bool one_node =
      !comms.empty() && std::all_of(comms.begin(), comms.end(), [](const CommView& comm) { return comm.nodes == 1; });
  std::erase_if(diagnosis.findings, [&](const Finding& finding) {
    return one_node && finding.cause == "transport-fallback" && finding.severity == Severity::note;
  });
  diagnosis.open.clear();
  diagnosis.progresses = false;  // which says nothing of rings
  diagnosis.cause.clear();
  diagnosis.ranks.clear();
  if (!diagnosis.findings.empty() && diagnosis.findings[0].severity != Severity::note) {
    const Finding& first = diagnosis.findings[0];
    diagnosis.status = first.status;
    diagnosis.cause = first.cause;
    diagnosis.ranks = first.ranks;
    diagnosis.confidence = first.confidence;
    diagnosis.headline = first.headline;
  } else {
    SettleWithoutFault(incident, analyses, diagnosis);
    // What was found comes before what was not logged.
    if (diagnosis.status == Status::undetermined && !diagnosis.findings.empty())
      diagnosis.headline = diagnosis.findings[0].headline + ". " + diagnosis.headline;
  }
  AddOpenQuestions(incident, analyses.topology, diagnosis);
}

}  // namespace

Report MakeTopologyReport(std::vector<Fragment> fragments, const CitedLineReader& read_line, bool redact) {
  const std::vector<Incident> incidents = Assemble(std::move(fragments));
  std::vector<Analyses> analyses;
  std::vector<StandstillView> standstills;
  std::vector<JudgedJob> jobs;
  analyses.reserve(incidents.size());  // jobs point into these
  standstills.reserve(incidents.size());
  for (const Incident& incident : incidents) {
    analyses.push_back(Analyse(incident));
    standstills.push_back(FindStandstills(incident, analyses.back()));
    Diagnosis diagnosis = Diagnose(incident, analyses.back(), standstills.back());
    KeepTopology(incident, analyses.back(), diagnosis);
    jobs.push_back({&incident, &analyses.back(), &standstills.back(), std::move(diagnosis)});
  }
  Report report = BuildReport(jobs);
  QuoteLines(read_line, report);
  report.ranks.clear();
  report.waits.clear();
  // The picture is of the job that the verdict is of; files without ranks (topology files) are a job of their own.
  report.topology.emplace();
  for (size_t i = 0; i < incidents.size(); ++i) {
    std::set<int> guilty;
    for (const ReportFinding& finding : report.findings)
      if (finding.job == incidents[i].label && finding.severity != Severity::note)
        guilty.insert(finding.ranks.begin(), finding.ranks.end());
    TopologyReport one = DescribeTopology(incidents[i], analyses[i], {guilty.begin(), guilty.end()});
    if (one.comms.size() > report.topology->comms.size() || one.nodes.size() > report.topology->nodes.size())
      report.topology = std::move(one);
  }
  if (redact) RedactReport(report);
  return report;
}

}  // namespace tacet
