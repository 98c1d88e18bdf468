// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/bandwidth_finding.h"

#include <algorithm>
#include <set>
#include <string>

#include "analysis/bandwidth/bandwidth_faults.h"

namespace tacet {
namespace {

constexpr size_t kMostPlaces = 5;

std::vector<Rank> RanksOnHosts(const Incident& incident, const std::vector<std::string>& hosts) {
  std::set<Rank> ranks;
  for (const Process& process : incident.processes)
    if (process.rank.known() && std::count(hosts.begin(), hosts.end(), process.host) > 0) ranks.insert(process.rank);
  return {ranks.begin(), ranks.end()};
}

}  // namespace

RuleAnswer AnswerFromBenchmarks(const Case& facts, std::string_view cause) {
  RuleAnswer answer;
  if (facts.analyses.bandwidth.empty()) return answer;
  for (BandwidthFault& fault : FindBandwidthFaults(facts.analyses.bandwidth)) {
    if (fault.cause != cause) continue;
    if (answer.findings.empty()) {
      Finding& finding = answer.findings.emplace_back();
      finding.cause = cause;
      finding.status = Status::slow;
      finding.severity = Severity::warning;
      finding.confidence = Confidence::likely;
      finding.headline = fault.headline;
      if (fault.op != OpKind::unknown) finding.operation = OperationRef{fault.op, -1, fault.bytes};
      finding.ranks = RanksOnHosts(facts.incident, fault.hosts);
    }
    Finding& finding = answer.findings.front();
    // The headline tells the first; of the others their own sentence.
    if (finding.evidence.size() < kMostPlaces)
      finding.evidence.push_back({fault.source, fault.excerpt, finding.evidence.empty() ? fault.says : fault.headline});
  }
  return answer;
}

}  // namespace tacet
