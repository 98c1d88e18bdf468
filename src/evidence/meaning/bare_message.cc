// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/bare_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/meaning/event_meaning.h"
#include "evidence/meaning/unread_error.h"
#include "evidence/told/prose_events.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"
#include "evidence/torch_log/torch_log_import.h"
#include "evidence/torch_log/torch_log_prefix.h"
#include "model/events/device_error.h"
#include "model/events/site_messages.h"

namespace tacet {
namespace {

constexpr size_t kMostTextOfMessages = size_t{256} << 10;
constexpr size_t kMostLinesRead = 2000;  // of one file are looked at
constexpr size_t kLongestMessage = 2000, kShortestMessage = 20;

// Another line says already what went wrong. How a process ended is no reason.
bool TellsAReason(const Event& event) {
  switch (event.kind) {
    case EventKind::exception:  // Ctrl-C is a reason, and what is printed behind it comes of it
      return !event.Means(Meaning::consequence) || event.As<Raised>().type == "KeyboardInterrupt";
    case EventKind::nccl_warning: return event.As<Warning>().role == NcclWarningRole::cause;
    case EventKind::site_message: {
      const SiteMessage* message = FindSiteMessage(event.As<SiteNote>().id);
      return message && message->role != SiteRole::harmless;
    }
    case EventKind::cuda_error:
    case EventKind::nccl_error:
    case EventKind::watchdog_timeout:
    case EventKind::segfault:
    case EventKind::oom_kill:
    case EventKind::xid:
    case EventKind::shared_memory_full:
    case EventKind::disk_full:
    case EventKind::port_in_use:
    case EventKind::scheduler_kill:
    case EventKind::job_time_limit:
    case EventKind::peer_access_failed:
    case EventKind::rdma_failed:
    case EventKind::fabric_down:
    case EventKind::model_mismatch:
    case EventKind::mismatch_report:
    case EventKind::monitored_barrier_failed:
    case EventKind::ddp_unused_parameters:
    case EventKind::ddp_marked_twice:
    case EventKind::connect_failed:
    case EventKind::store_unreachable:
    case EventKind::rendezvous_incomplete: return true;
    default: return false;
  }
}

// Nobody writes about himself in a message of a program.
bool IsPersonal(std::string_view low) {
  return Contains(low, "?") ||
         HasAnyWord(low, {"i",     "i'm",    "i've",     "my",        "we",     "we're",  "our",
                          "us",    "me",     "hi",       "hello",     "thanks", "anyone", "anybody",
                          "fixed", "solved", "resolved", "no longer", "avoid",  "prevent"});
}

bool MayStandAlone(std::string_view text) {
  // A record of a program's own says in other fields what became of it.
  if (text.size() < kShortestMessage || text.size() > kLongestMessage || text[0] == '{' || IsAdvice(text)) return false;
  if (ContainsAny(text, {"INFO", "DEBUG", "WARN", "Warn", "warn", " instead", "alling back", "etrying", "will retry"}))
    return false;
  const std::string low = LowSentence(text);
  return !IsPersonal(low) && !PlaysDown(low);
}

// "unhandled cuda error", "Connection reset by peer": it fails because somebody else did.
bool TellsAFailure(std::string_view text) {
  return ContainsAny(
      text, {"rror", "ERROR", "ail", "FAIL", "imed out", "imeout", "reset", "closed", "efused", "bort", "roken"});
}

// What the message means is known: more than that something was raised.
bool HasAMeaning(const Event& event) {
  switch (event.kind) {
    case EventKind::progress:
    case EventKind::process_started:
    case EventKind::process_finished: return false;
    case EventKind::exception: {
      const auto& raised = event.As<Raised>();
      if (raised.points_back) return false;
      return !raised.refusal.empty() || event.Means(Meaning::host_memory) ||
             (event.Means(Meaning::consequence) && TellsAFailure(event.text)) || event.Means(Meaning::diverged) ||
             event.Means(Meaning::loader_worker) || event.Means(Meaning::no_launcher) ||
             event.Means(Meaning::no_interface) || event.Means(Meaning::calls_differ);
    }
    default: return true;
  }
}

// "an illegal memory access was encountered": the words of CUDA, which always stand behind its name.
bool IsOfCuda(std::string_view text) {
  return ContainsAny(text, {"was encountered", "unspecified launch failure", "uncorrectable ECC error encountered"}) &&
         ContainsAny(text, {"memory access", "launch failure", "ECC error", "instruction", "misaligned address"}) &&
         text.size() < 80 && IsOfTheDevice(text);
}

// The line with an exception's name before its message, as the reader of a job's output takes it. What it knows as it
// stands is not read a second time: where no event is left of it, it harmed nobody.
Fragment ReadAsRaised(std::string_view line, std::string_view text, std::string_view name) {
  Fragment part;
  if (ParseTorchLog(line).understood > 0) return part;
  // Behind a logger's head the reader expects the logger's own words.
  const bool headed = line.starts_with("[W") || line.starts_with("[E");
  std::string raised(line.substr(0, headed ? 0 : static_cast<size_t>(text.data() - line.data())));
  raised.append(name).append(text).append("\n");
  part.bytes.total = raised.size();
  ReadTorchLog({"", raised}, part);
  for (Event& event : part.events) {
    if (event.text.starts_with(name)) event.text.erase(0, name.size());
    ReadMeaning(event);
  }
  return part;
}

void TakeMeaning(Fragment& part, const SourceRef& source, Fragment& fragment) {
  for (Event& event : part.events) {
    if (!HasAMeaning(event)) continue;
    if (event.speaker < part.speakers.size()) {
      const Speaker& speaker = part.speakers[event.speaker];
      if (!event.rank.known()) event.rank = speaker.rank;
      if (event.pid < 0) event.pid = speaker.pid;
    }
    event.speaker = kNobody;
    event.source = source;
    if (event.kind == EventKind::exception) {
      event.Make<Raised>().type = event.Means(Meaning::cuda_failed) ? "a CUDA error" : "an error";
      event.Set(Meaning::reported);
    }
    fragment.events.push_back(std::move(event));
  }
}

// The rule above and below a message of Open MPI, whose lines belong together.
bool IsRule(std::string_view line) { return line.size() > 40 && line.find_first_not_of('-') == std::string_view::npos; }

// "... contains custom code which must be executed ...", and below it "Do you wish to run the custom code? [y/N]": what
// is said there belongs to the question.
bool LeadsToAQuestion(std::string_view rest) {
  constexpr size_t kNear = 600;
  return ContainsAny(rest.substr(0, kNear), {"? [", "[y/N]", "[Y/n]", "(y/n)"});
}

// Whoever waits in a line that is a warning goes on, unless the line behind it is the error.
bool IsWarningBefore(std::string_view text, uint32_t line, const std::set<uint32_t>& errors) {
  return text.starts_with("[W") && errors.contains(line + 1);
}

// Words for what went wrong, as they begin: "broken", "corrupt state", "giving up", "handshake mismatch".
constexpr std::string_view kTroubles[] = {
    "abort",        "fail",      "error",     "fatal",       "panic",   "broken",      "corrupt",  "mismatch",
    "refus",        "reject",    "denied",    "cannot",      "can't",   "could not",   "couldn't", "unable",
    "invalid",      "illegal",   "lost",      "stale",       "expired", "unreachable", "no such",  "not found",
    "exceeded",     "crash",     "died",      "giving up",   "gave up", "gives up",    "uncaught", "unhandled",
    "not answered", "no answer", "timed out", "out of range"};

bool BeginsAWord(std::string_view low, size_t at) { return at == 0 || (!IsLetter(low[at - 1]) && low[at - 1] != '_'); }

// "xoptim: state shard 3/8 corrupt, refusing to start": no reader knows the program, and the words say that something
// went wrong. Not "0 errors", "no failed steps", "error_limit=3".
bool NamesATrouble(std::string_view text) {
  const std::string low = LowSentence(text);
  for (const std::string_view trouble : kTroubles)
    for (size_t at = low.find(trouble); at != std::string::npos; at = low.find(trouble, at + 1)) {
      const size_t end = at + trouble.size();
      if (!BeginsAWord(low, at) || (end < low.size() && (low[end] == '_' || low[end] == '='))) continue;
      const std::string_view before = std::string_view(low).substr(0, at);
      const auto denied = [&](std::string_view word) { return before.ends_with(word); };
      if (denied("no ") || denied("0 ") || denied("not ") || denied("without ") || denied("if ")) continue;
      return true;
    }
  return false;
}

// Code, and sentences that do not say whose words they are, are no reports.
bool MayBeAReport(std::string_view line, std::string_view text) {
  if (line.starts_with("    ") || IsFrame(line) || text.starts_with("raise ") || text.starts_with("#")) return false;
  return !IsProse(text) || Contains(text, ": ");
}

bool TellsABadEnd(const Event& event) {
  switch (event.kind) {
    case EventKind::process_exited: return event.As<ProcessEnd>().code != 0;
    case EventKind::process_killed:
    case EventKind::abort_signal: return true;
    case EventKind::unread_error: return event.Means(Meaning::consequence);
    default: return false;
  }
}

// The first line of trouble in words that no reader knows. Only where the file tells an end and no reason for it, or
// where nothing of it is known: else it may be anything that a job survives.
void AddUnknownTrouble(std::string_view bytes, uint32_t progress, const std::set<uint32_t>& read, Fragment& fragment) {
  const auto& events = fragment.events;
  const auto is_told = [](const Event& event) {
    return event.kind == EventKind::unread_error && !event.Means(Meaning::consequence);
  };
  const bool ended = std::any_of(events.begin(), events.end(), TellsABadEnd);
  if ((!ended && (fragment.format != "unknown" || !events.empty())) ||
      std::any_of(events.begin(), events.end(), is_told))
    return;
  const LabelStyle style = FindLabelStyle(bytes);
  size_t looked_at = 0;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line) && looked_at++ < kMostLinesRead) {
    if (reader.number() <= progress || read.contains(reader.number())) continue;
    const std::string_view text = Trim(SplitPrefix(line, style).text);
    if (!MayStandAlone(text) || !MayBeAReport(line, text) || ReportsAnEnd(text) || !NamesATrouble(text)) continue;
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::unread_error;
    event.speaker = kNobody;
    event.source = {FileId{}, reader.number(), reader.offset()};
    event.text = std::string(text.substr(0, 400));
    return;
  }
}

}  // namespace

void AddBareMessages(std::string_view bytes, Fragment& fragment) {
  if (bytes.size() > kMostTextOfMessages || bytes.find('\0') != std::string_view::npos) return;
  std::set<uint32_t> read, errors;
  uint32_t progress = 0;
  for (const Event& event : fragment.events) {
    if (TellsAReason(event)) return;
    if (event.kind == EventKind::unread_error)
      errors.insert(event.source.line);
    else
      read.insert(event.source.line);
    if (event.kind == EventKind::progress) progress = std::max(progress, event.source.line);
  }
  const LabelStyle style = FindLabelStyle(bytes);
  size_t looked_at = 0;
  bool in_block = false;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line) && looked_at < kMostLinesRead) {
    in_block ^= IsRule(Trim(line));
    if (in_block || reader.number() <= progress || read.contains(reader.number())) continue;
    const LinePrefix prefix = SplitPrefix(line, style);
    const std::string_view text = Trim(prefix.text);
    if (LeadsToAQuestion(bytes.substr(reader.offset())) || prefix.severity == 'I' || !MayStandAlone(text)) continue;
    if (prefix.severity == 'W' && !IsWarningBefore(Trim(line), reader.number(), errors)) continue;
    ++looked_at;
    const size_t before = fragment.events.size();
    Fragment part = ReadAsRaised(line, text, IsOfCuda(text) ? "RuntimeError: CUDA error: " : "RuntimeError: ");
    TakeMeaning(part, {FileId{}, reader.number(), reader.offset()}, fragment);
    // The first error is the one that matters.
    if (fragment.events.size() > before) return;
  }
  AddUnknownTrouble(bytes, progress, read, fragment);
}

}  // namespace tacet
