// SPDX-License-Identifier: Apache-2.0
#include "report/make_report.h"

#include <algorithm>

#include "analysis/analyses.h"
#include "analysis/standstill.h"
#include "model/assembly.h"
#include "report/build_report.h"
#include "report/redact_report.h"

namespace tacet {

void QuoteLines(const CitedLineReader& read_line, Report& report) {
  constexpr size_t kMost = 200;  // a report with more evidence than this is read by nobody
  if (!read_line) return;
  std::vector<CitedEvidence*> wanted;
  for (ReportFinding& finding : report.findings)
    for (CitedEvidence& cited : finding.evidence)
      if (cited.line > 0 && wanted.size() < kMost) wanted.push_back(&cited);
  if (report.why) {
    if (report.why->status.line > 0) wanted.push_back(&report.why->status);
    for (ReportClaim& claim : report.why->claims)
      if (claim.because.line > 0 && wanted.size() < kMost) wanted.push_back(&claim.because);
  }
  // File by file, so that each is opened once.
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto* a, const auto* b) { return a->file < b->file; });
  for (CitedEvidence* cited : wanted) cited->quote = read_line(cited->file, cited->line, cited->offset);
}

Report MakeReport(std::vector<Fragment> fragments, const Patience& patience, const ReportOptions& options) {
  const std::vector<Incident> incidents = Assemble(std::move(fragments), patience);
  std::vector<Analyses> analyses;
  std::vector<StandstillView> standstills;
  std::vector<JudgedJob> jobs;
  // Jobs point into these vectors: they must not move.
  analyses.reserve(incidents.size());
  standstills.reserve(incidents.size());
  for (const Incident& incident : incidents) {
    analyses.push_back(Analyse(incident));
    standstills.push_back(FindStandstills(incident, analyses.back()));
    jobs.push_back(
        {&incident, &analyses.back(), &standstills.back(), Diagnose(incident, analyses.back(), standstills.back())});
  }
  Report report = BuildReport(jobs, options.why);
  QuoteLines(options.read_line, report);
  if (options.redact) RedactReport(report);
  return report;
}

}  // namespace tacet
