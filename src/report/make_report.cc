// SPDX-License-Identifier: Apache-2.0
#include "report/make_report.h"

#include "analysis/analyses.h"
#include "analysis/standstill.h"
#include "model/assembly.h"
#include "report/build_report.h"
#include "report/redact_report.h"

namespace tacet {

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
  if (options.redact) RedactReport(report);
  return report;
}

}  // namespace tacet
