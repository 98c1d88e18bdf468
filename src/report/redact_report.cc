// SPDX-License-Identifier: Apache-2.0
#include "report/redact_report.h"

#include <set>
#include <string>
#include <string_view>

#include "base/redact.h"

namespace tacet {
namespace {

// Walks over texts, one overload a type, so that a new kind of value is either walked over or does not compile.
class Redaction {
 public:
  void operator()(std::string& text) {
    RedactedText redacted = RedactSecrets(text);
    if (redacted.kinds.empty()) return;
    text = std::move(redacted.text);
    kinds_.insert(redacted.kinds.begin(), redacted.kinds.end());
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    for (T& one : list) (*this)(one);
  }
  void operator()(CitedEvidence& cited) { All(cited.file, cited.excerpt, cited.says, cited.quote); }
  void operator()(ReportSubject& subject) { All(subject.host); }
  void operator()(ReportGroup& group) { All(group.name, group.description); }
  void operator()(ReportFinding& finding) {
    All(finding.headline, finding.explanation, finding.evidence, finding.fix, finding.prevent, finding.job,
        finding.subjects);
    if (finding.group) (*this)(*finding.group);
  }
  void operator()(ReportInput& input) { All(input.file); }
  void operator()(ReportDiagnostic& diagnostic) {
    All(diagnostic.message, diagnostic.file, diagnostic.hint, diagnostic.files);
  }
  void operator()(ReportRank& rank) { All(rank.host, rank.last_operation, rank.doing); }
  void operator()(std::pair<std::string, std::string>& version) { All(version.second); }
  void operator()(ReportJob& job) { All(job.label, job.hosts, job.groups, job.versions); }
  void operator()(ReportWait& wait) { All(wait.where); }
  void operator()(ReportClaim& claim) { All(claim.because); }
  void operator()(ReportRival& rival) { All(rival.because); }
  void operator()(ReportWhy& why) { All(why.status, why.claims, why.rivals); }
  void operator()(CannotTell& open) { All(open.question, open.missing); }
  void operator()(Advice& advice) { All(advice.what, advice.why); }
  void operator()(TopologyGpu& gpu) { All(gpu.bus, gpu.nearest); }
  void operator()(TopologyNic& nic) { All(nic.name, nic.link, nic.nearest); }
  void operator()(TopologyNode& node) { All(node.name, node.net, node.gpus, node.nics); }
  void operator()(TopologyRing& ring) { All(ring.breaks); }
  void operator()(TopologyGraph& graph) { All(graph.name, graph.type_intra, graph.type_inter, graph.lowered_by); }
  void operator()(TopologyComm& comm) { All(comm.label, comm.graphs, comm.rings, comm.connected); }
  void operator()(TopologyTransport& transport) { All(transport.text); }
  void operator()(ProfileRank& rank) { All(rank.host, rank.device); }
  void operator()(ProfileTableRow& row) { All(row.group, row.members); }
  void operator()(GroupShare& share) { All(share.group); }
  void operator()(ProfileSeries& series) { All(series.name); }

  template <typename... T>
  void All(T&... values) {
    ((*this)(values), ...);
  }

  // "secrets were removed: API key, password (--no-redact keeps them)"; empty where there was none.
  std::string Summary() const {
    std::string names;
    for (const std::string_view kind : kinds_) (names += names.empty() ? "" : ", ") += kind;
    return names.empty() ? "" : "secrets were removed: " + names + " (--no-redact keeps them)";
  }

 private:
  std::set<std::string_view> kinds_;
};

}  // namespace

void RedactReport(Report& report) {
  Redaction redact;
  redact.All(report.verdict.headline, report.verdict.subjects, report.findings, report.jobs, report.ranks, report.waits,
             report.inputs, report.diagnostics, report.cannot_tell, report.assumptions);
  if (report.why) redact(*report.why);
  if (report.topology) redact.All(report.topology->transports, report.topology->nodes, report.topology->comms);
  if (std::string summary = redact.Summary(); !summary.empty()) report.assumptions.push_back(std::move(summary));
}

void RedactProfile(ProfileReport& profile) {
  Redaction redact;
  redact.All(profile.job, profile.headline, profile.setup, profile.advice, profile.budgets, profile.table,
             profile.table_by_role, profile.groups, profile.ddp_group, profile.fsdp_group, profile.expert_group,
             profile.series, profile.remarks);
  if (std::string summary = redact.Summary(); !summary.empty()) profile.remarks.push_back(std::move(summary));
}

}  // namespace tacet
