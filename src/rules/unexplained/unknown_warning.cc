// SPDX-License-Identifier: Apache-2.0
// Warnings that no rule knows, and advice that is no fault.
#include <algorithm>
#include <string>
#include <utility>

#include "rules/unexplained/open_finding.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

namespace {

constexpr size_t kMostOfAdvice = 3;

bool IsStepOfSetup(const Event& event) {
  switch (event.kind) {
    case EventKind::network:
    case EventKind::interface_used:
    case EventKind::device_found:
    case EventKind::transport:
    case EventKind::init_started:
    case EventKind::init_completed:
    case EventKind::comm_destroyed: return true;
    default: return false;
  }
}

// RCCL's advice on the host: worth a note, and no verdict.
bool QuoteAdvice(const Case& facts, Diagnosis& diagnosis) {
  Finding finding;
  finding.severity = Severity::note;
  finding.headline =
      "no line reports a fault; RCCL advises settings of the host or of the environment that are missing here";
  finding.explanation =
      "The messages name them. They matter for speed and stability on some machines; setup continues.";
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "rccl-host-setting" &&
        finding.evidence.size() < kMostOfAdvice)
      finding.evidence.push_back(CiteEvent(event, "RCCL's advice"));
  if (finding.evidence.empty()) return false;
  finding.fix = {"Set them when convenient, as the cited messages say."};
  diagnosis.headline = finding.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

}  // namespace

bool SetupWentOn(const Incident& incident, const Event& warning) {
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return IsStepOfSetup(event) && event.speaker == warning.speaker && event.source.file == warning.source.file &&
           event.source.line > warning.source.line;
  });
}

bool HasNcclInfo(const Incident& incident) {
  return !incident.rank_channels.empty() || std::any_of(incident.events.begin(), incident.events.end(), IsStepOfSetup);
}

bool QuoteUnknownWarning(const Case& facts, Diagnosis& diagnosis) {
  const auto& events = facts.incident.events;
  const auto warning = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "other" && !event.text.empty() &&
           !SetupWentOn(facts.incident, event);
  });
  if (warning == events.end()) return QuoteAdvice(facts, diagnosis);
  Finding finding;
  finding.severity = Severity::note;
  finding.headline = "NCCL warns in " + SubjectWords(SubjectOf(facts.incident, *warning)) + ": '" +
                     MessageWords(warning->text) + "'; its consequences are not in these files";
  finding.explanation = "Tacet does not know this warning, and nothing shows how the job ended.";
  finding.evidence.push_back(CiteEvent(*warning, "a warning that Tacet does not know"));
  finding.fix = {"Look at what follows in the log: NCCL's error names the call that failed ('-> 2', '-> 3').",
                 HasNcclInfo(facts.incident)
                     ? "Keep the complete output of every rank."
                     : "Run again with NCCL_DEBUG=INFO and keep the output of every rank from the start."};
  diagnosis.headline = finding.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

}  // namespace tacet
