// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/unread_error.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

// The job made progress behind the line: whatever it is, it was survived. An end alone shows nothing: a job may say
// that it is done after it failed to save.
static bool WentOnAfter(const Incident& incident, const Event& error) {
  const auto is_behind = [&](const SourceRef& source) {
    return source.file == error.source.file && source.line > error.source.line;
  };
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    if (event.kind != EventKind::progress) return false;
    // The same rank may print its steps into another file.
    const bool later = event.rank.known() && event.rank == error.rank && event.wall_ns != kNoTime &&
                       error.wall_ns != kNoTime && event.wall_ns > error.wall_ns;
    return is_behind(event.source) || later;
  });
}

// The same words, with other numbers and names of files.
static bool IsAlike(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view text, size_t at) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at;
  };
  size_t i = next(a, 0), j = next(b, 0);
  while (i < a.size() && j < b.size() && a[i] == b[j]) i = next(a, i + 1), j = next(b, j + 1);
  return i == a.size() && j == b.size();
}

// What the job survived once in these words, it survives again.
static bool IsSurvived(const Incident& incident, const Event& error) {
  return WentOnAfter(incident, error) ||
         std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
           return &event != &error && event.kind == EventKind::unread_error && event.source.file == error.source.file &&
                  event.source.line < error.source.line && IsAlike(event.text, error.text) &&
                  WentOnAfter(incident, event);
         });
}

const Event* UnreadErrorBefore(const Incident& incident, const Event* end) {
  const Event* consequence = nullptr;  // how something ended says less than any other line
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::unread_error || IsSurvived(incident, event)) continue;
    if (event.Means(Meaning::consequence)) {
      if (!end && !consequence) consequence = &event;
      continue;
    }
    if (end && event.source.file == end->source.file && event.source.line > end->source.line) continue;
    return &event;
  }
  return consequence;
}

std::string UnreadErrorWords(const Event& error) { return MessageWords(error.text, 160); }

void QuoteBesideAnEnd(const Case& facts, Diagnosis& diagnosis) {
  if (diagnosis.findings.empty() || diagnosis.findings.front().cause != "rank-dead") return;
  const auto& events = facts.incident.events;
  // A signal came from outside of the program.
  const bool by_itself = std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::process_exited && event.As<ProcessEnd>().code > 0;
  });
  const Event* event = UnreadErrorBefore(facts.incident, nullptr);
  if (!by_itself || !event || event->Means(Meaning::consequence)) return;
  Finding& finding = diagnosis.findings.front();
  finding.evidence.push_back(CiteEvent(*event, "a line that reports an error, which Tacet does not know"));
  finding.headline += "; a line reports: '" + UnreadErrorWords(*event) + "'";
  finding.fix.insert(finding.fix.begin(),
                     "Read the lines around the one that reports an error: if the program that exited printed it, it "
                     "is the reason.");
  diagnosis.headline = finding.headline;
}

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
