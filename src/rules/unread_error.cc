// SPDX-License-Identifier: Apache-2.0
#include "rules/unread_error.h"

#include <algorithm>
#include <utility>

#include "rules/message_words.h"
#include "rules/words.h"

namespace tacet {

// The job made progress behind the line: whatever it is, it was survived.
static bool WentOnAfter(const Incident& incident, const Event& error) {
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::progress && event.source.file == error.source.file &&
           event.source.line > error.source.line;
  });
}

const Event* UnreadErrorBefore(const Incident& incident, const Event* end) {
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::unread_error || WentOnAfter(incident, event)) continue;
    if (end && event.Means(Meaning::consequence)) continue;
    if (end && event.source.file == end->source.file && event.source.line > end->source.line) continue;
    return &event;
  }
  return nullptr;
}

std::string UnreadErrorWords(const Event& error) { return MessageWords(error.text, 160); }

bool QuoteUnreadError(const Case& facts, Diagnosis& diagnosis) {
  const Event* event = UnreadErrorBefore(facts.incident, nullptr);
  // How something ended adds nothing to what is told of it already.
  if (!event || (event->Means(Meaning::consequence) && !diagnosis.findings.empty())) return false;
  Finding finding;
  finding.severity = Severity::warning;
  // Quotes within quotes would confuse.
  const std::string text = UnreadErrorWords(*event);
  const std::string words = text.find('\'') == std::string::npos ? "'" + text + "'" : text;
  finding.headline = diagnosis.headline = event->Means(Meaning::reported)
                                              ? "the job crashed: " + words + "; Tacet does not know this message"
                                              : "a line reports an error that Tacet does not know: " + words;
  // A failed assertion ends its program, whatever it is about.
  if (event->Means(Meaning::reported)) {
    diagnosis.status = finding.status = Status::crash;
    diagnosis.confidence = finding.confidence;
    finding.severity = Severity::critical;
  }
  finding.evidence.push_back(CiteEvent(*event, "the line with the error"));
  finding.fix = {
      "Read the lines around the cited one, and search for its text in the code or the documentation of the "
      "program that prints it.",
      "If lines before it are missing here, add them, and diagnose again: the first error is the one that matters."};
  diagnosis.findings.push_back(std::move(finding));
  return true;
}

}  // namespace tacet
