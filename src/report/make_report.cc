// SPDX-License-Identifier: Apache-2.0
#include "report/make_report.h"

#include <algorithm>

#include "analysis/analyses.h"
#include "analysis/process/standstill.h"
#include "model/assembly/assembly.h"
#include "report/build_report.h"
#include "report/redact_report.h"

namespace tacet {

// The message of a line that a terminal or a mail wrapped goes on in the next one, with which the reader has joined it.
static std::string JoinWrapped(std::string line, std::string_view message, const std::function<std::string()>& next) {
  constexpr size_t kFewest = 12, kTelling = 8;
  const auto behind_blanks = [](std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text.substr(0, kTelling);
  };
  message = message.substr(0, message.find('\n'));
  if (message.ends_with(" times)")) message = message.substr(0, message.rfind(" ("));  // a count, and no part of it
  for (size_t n = std::min(line.size(), message.size()); n >= kFewest; --n) {
    if (!line.ends_with(message.substr(0, n))) continue;
    const std::string_view rest = message.substr(n);
    const std::string following = rest.empty() ? "" : next();
    const std::string_view one = behind_blanks(rest), other = behind_blanks(following);
    const size_t length = std::min(one.size(), other.size());
    return length > 0 && one.substr(0, length) == other.substr(0, length) ? line.append(rest) : line;
  }
  return line;
}

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
  for (CitedEvidence* cited : wanted)
    cited->quote = JoinWrapped(read_line(cited->file, cited->line, cited->offset), cited->excerpt,
                               [&] { return read_line(cited->file, cited->line + 1, 0); });
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
