// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/site_finding.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "model/events/site_messages.h"
#include "model/subject.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kMostSitesCited = 3, kMostFindings = 4;

// One kind of message, and the lines that hold it.
struct SiteReport {
  const SiteMessage* message = nullptr;
  std::vector<const Event*> lines;
};

bool IsMild(const SiteReport& report) {
  return report.message->role == SiteRole::degraded || report.message->role == SiteRole::tool;
}

// What ended the job comes before how it ended, and that before what is only out of service.
int OrderOf(const SiteReport& report) {
  return IsMild(report) ? 2 : report.message->role == SiteRole::end_only ? 1 : 0;
}

bool IsBehind(const Event& later, const Event& event) {
  return later.source.file == event.source.file && later.source.line > event.source.line;
}

// The server answers again, the container started after all.
bool IsCleared(const Incident& incident, const Event& event, const SiteMessage& message) {
  return !message.cleared_by.empty() &&
         std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& later) {
           return later.kind == EventKind::site_message && later.As<SiteNote>().id == message.cleared_by &&
                  IsBehind(later, event);
         });
}

// What is out of service stays so while the job makes progress; what ends or holds up a job is over then.
bool IsSurvived(const Incident& incident, const Event& event, const SiteMessage& message) {
  return message.role != SiteRole::degraded && message.role != SiteRole::corrupt &&
         std::any_of(incident.events.begin(), incident.events.end(),
                     [&](const Event& later) { return later.kind == EventKind::progress && IsBehind(later, event); });
}

std::vector<SiteReport> ReportsIn(const Incident& incident) {
  std::vector<SiteReport> reports;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::site_message) continue;
    const SiteMessage* message = FindSiteMessage(event.As<SiteNote>().id);
    if (!message || message->role == SiteRole::harmless) continue;
    if (IsCleared(incident, event, *message) || IsSurvived(incident, event, *message)) continue;
    const auto known =
        std::find_if(reports.begin(), reports.end(), [&](const SiteReport& one) { return one.message == message; });
    if (known != reports.end())
      known->lines.push_back(&event);
    else if (reports.size() < kMostFindings)
      reports.push_back({message, {&event}});
  }
  std::stable_sort(reports.begin(), reports.end(),
                   [](const SiteReport& a, const SiteReport& b) { return OrderOf(a) < OrderOf(b); });
  return reports;
}

Status StatusOf(SiteRole role) {
  switch (role) {
    case SiteRole::ended:
    case SiteRole::refused:
    case SiteRole::end_only: return Status::crash;
    case SiteRole::stalled:
    case SiteRole::pending: return Status::hang;
    case SiteRole::degraded: return Status::degraded;
    case SiteRole::corrupt: return Status::corrupt;
    case SiteRole::tool:
    case SiteRole::harmless: break;
  }
  return Status::undetermined;
}

std::string ProofOf(const SiteReport& report) {
  return report.lines.front()->As<SiteNote>().by_kernel ? "the kernel's report" : "the line that reports it";
}

Finding FindingOf(const Case& facts, const SiteReport& report) {
  const SiteMessage& message = *report.message;
  Finding finding;
  finding.cause = message.cause;
  finding.status = StatusOf(message.role);
  finding.severity = IsMild(report) ? Severity::warning : Severity::critical;
  // Nothing in the line ties it to a rank of the job.
  finding.confidence = facts.analyses.life.ranks.empty() ? Confidence::likely : Confidence::possible;
  finding.headline = SiteSentence(message, report.lines.front()->As<SiteNote>().subject);
  if (const std::string host = SubjectOf(facts.incident, *report.lines.front()).host; !host.empty())
    finding.headline += " (" + host + ")";
  if (message.cause.empty())
    finding.explanation = "A program beside the job reports this; the line does not show which ranks it concerns.";
  for (const Event* line : report.lines)
    if (finding.evidence.size() < kMostSitesCited) finding.evidence.push_back(CiteEvent(*line, ProofOf(report)));
  for (const std::string_view step : message.steps)
    if (!step.empty()) finding.fix.emplace_back(step);
  // The job came to its end all the same.
  if (message.role != SiteRole::corrupt && (facts.analyses.outcome.ended_in_order || facts.analyses.end.said)) {
    finding.severity = Severity::note;
    finding.status = Status::healthy;
  }
  return finding;
}

bool Cites(const Finding& finding, const Event& line) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
    return item.source.file == line.source.file && item.source.line == line.source.line;
  });
}

}  // namespace

void AddSiteFindings(const Case& facts, std::vector<Finding>& findings) {
  for (const SiteReport& report : ReportsIn(facts.incident)) {
    const auto same = std::find_if(findings.begin(), findings.end(), [&](const Finding& one) {
      return !report.message->cause.empty() && one.cause == report.message->cause && one.severity != Severity::note;
    });
    if (same != findings.end()) {
      for (const Event* line : report.lines)
        if (!Cites(*same, *line) && same->evidence.size() < kMostSitesCited + 1)
          same->evidence.push_back(CiteEvent(*line, ProofOf(report)));
      continue;
    }
    Finding finding = FindingOf(facts, report);
    // Others did start, and wait: it is a matter of that node, and who never joined is missing because of it.
    const bool awaited = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
      return one.cause == "init-rank-missing" && one.confidence == Confidence::possible;
    });
    if (awaited && finding.cause.empty() &&
        (report.message->role == SiteRole::refused || report.message->role == SiteRole::end_only)) {
      finding.cause = "node-unavailable";
      finding.headline += "; the ranks that started waited for those of that node";
      findings.push_back(std::move(finding));
      continue;
    }
    // A rule that knows what happened to the job comes first.
    const bool known = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
      return one.severity == Severity::critical && !one.cause.empty();
    });
    if (known && report.message->role == SiteRole::end_only) continue;
    if (known && finding.cause.empty() && finding.severity == Severity::critical) finding.severity = Severity::warning;
    findings.push_back(std::move(finding));
  }
}

}  // namespace tacet
