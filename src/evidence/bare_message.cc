// SPDX-License-Identifier: Apache-2.0
#include "evidence/bare_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/event_meaning.h"
#include "evidence/told_states.h"
#include "evidence/torch_log/torch_log_import.h"
#include "evidence/torch_log/torch_log_prefix.h"
#include "model/device_error.h"
#include "model/site_messages.h"

namespace tacet {
namespace {

constexpr size_t kMostTextOfMessages = size_t{256} << 10;
constexpr size_t kMostLinesRead = 2000;  // of one file are looked at
constexpr size_t kLongestMessage = 2000, kShortestMessage = 20;

// Another line says already what went wrong. How a process ended is no reason.
bool TellsAReason(const Event& event) {
  switch (event.kind) {
    case EventKind::exception: return !event.Means(Meaning::consequence);
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
  return !IsPersonal(LowSentence(text));
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
  std::string raised(line.substr(0, static_cast<size_t>(text.data() - line.data())));
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

// Whoever waits in a line that is a warning goes on, unless the line behind it is the error.
bool IsWarningBefore(std::string_view text, uint32_t line, const std::set<uint32_t>& errors) {
  return text.starts_with("[W") && errors.contains(line + 1);
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
    if (prefix.severity == 'I' || !MayStandAlone(text)) continue;
    if (prefix.severity == 'W' && !IsWarningBefore(Trim(line), reader.number(), errors)) continue;
    ++looked_at;
    const size_t before = fragment.events.size();
    Fragment part = ReadAsRaised(line, text, IsOfCuda(text) ? "RuntimeError: CUDA error: " : "RuntimeError: ");
    TakeMeaning(part, {FileId{}, reader.number(), reader.offset()}, fragment);
    // The first error is the one that matters.
    if (fragment.events.size() > before) return;
  }
}

}  // namespace tacet
