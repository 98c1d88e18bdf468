// SPDX-License-Identifier: Apache-2.0
#include "rules/words/words.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "base/text_scan.h"
#include "model/events/event_words.h"
#include "model/subject.h"

namespace tacet {

std::string RankWords(const std::vector<Rank>& ranks) {
  std::vector<Rank> sorted = ranks;
  std::erase_if(sorted, [](Rank rank) { return !rank.known(); });
  if (sorted.empty()) return "a rank that the log does not name";
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  // A run of three or more is written as a range, "0-2"; shorter ones as single numbers.
  std::vector<std::string> parts;
  for (size_t i = 0; i < sorted.size();) {
    size_t j = i;
    while (j + 1 < sorted.size() && sorted[j + 1].value == sorted[j].value + 1) ++j;
    if (j >= i + 2) {
      parts.push_back(std::to_string(sorted[i].value) + "-" + std::to_string(sorted[j].value));
    } else {
      for (size_t k = i; k <= j; ++k) parts.push_back(std::to_string(sorted[k].value));
    }
    i = j + 1;
  }
  constexpr size_t kMost = 8;
  const size_t shown = std::min(parts.size(), kMost);
  std::string text = sorted.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  if (shown < parts.size()) text += ", ... (" + std::to_string(sorted.size()) + " in all)";
  return text;
}

std::string GoneWords(const std::vector<Rank>& ranks) {
  return ranks.size() > 1 ? "the processes of " + RankWords(ranks) + " are gone"
                          : RankWords(ranks) + "'s process is gone";
}

std::string OperationWords(const Incident& incident, const Call& call) {
  // PyTorch records a batch of sends and receives as one operation.
  const bool batch = call.kind == OpKind::coalesced && call.has(kPointToPoint);
  std::string text(batch ? "batch_isend_irecv" : Name(call.kind));
  text += " #" + std::to_string(call.seq);
  if (call.group == GroupIndex::none) return text;
  const std::string group = incident.groups[static_cast<uint32_t>(call.group)].Label();
  return text + (group.starts_with("communicator of ") ? " on the " : " on ") + group;
}

std::string ShapeWords(const Call& call) {
  std::string text(Name(call.kind));
  if (call.in_elements >= 0) text += " of " + std::to_string(call.in_elements);
  if (call.type != DataType::unknown) text += (call.in_elements >= 0 ? " " : " of ") + std::string(Name(call.type));
  if (call.reduction != ReduceOp::unknown &&
      (call.kind == OpKind::all_reduce || call.kind == OpKind::reduce || call.kind == OpKind::reduce_scatter))
    text += " (" + std::string(Name(call.reduction)) + ")";
  return text;
}

std::string DurationWords(int64_t ns) {
  char text[32];
  const double seconds = static_cast<double>(ns) / 1e9;
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.0f µs", seconds * 1e6);
  else if (seconds < 1e-2)
    std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1e3);
  else if (seconds < 120)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else if (seconds < 3 * 3600)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.3g h", seconds / 3600);
  return text;
}

std::string MeasuredWords(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000, kLast = 120 * kSecond;
  if (ns < kSecond || ns >= kLast) return DurationWords(ns);
  char text[32];
  std::snprintf(text, sizeof text, "%.*f s",
                ns < 10 * kSecond    ? 2
                : ns < 100 * kSecond ? 1
                                     : 0,
                static_cast<double>(ns) / 1e9);
  return text;
}

static std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The places of the user's program in the stack of a call, innermost first.
static std::vector<std::string> UserPlaces(const Incident& incident, const Call& call, size_t most) {
  std::vector<std::string> places;
  for (const Frame& frame : incident.stacks.Get(call.stack)) {
    if (places.size() == most) break;
    const std::string_view function = incident.strings.Get(frame.function), file = incident.strings.Get(frame.file);
    if (ClassifyFrame(function, file) == FrameKind::user)
      places.push_back(std::string(function) + " (" + std::string(BaseName(file)) + ":" + std::to_string(frame.line) +
                       ")");
  }
  return places;
}

std::string CallSiteWords(const Incident& incident, const Call& call) {
  const std::vector<std::string> places = UserPlaces(incident, call, 1);
  return places.empty() ? "" : places.front();
}

std::string CallerWords(const Incident& incident, const Call& call, const Call& other) {
  constexpr size_t kDeepest = 64;
  const std::vector<std::string> own = UserPlaces(incident, call, kDeepest),
                                 others = UserPlaces(incident, other, kDeepest);
  const size_t both = std::min(own.size(), others.size());
  size_t same = 0;
  while (same < both && own[same] == others[same]) ++same;
  return same == 0 || same == own.size() ? "" : own[same];
}

// "rank 0", "ranks 1-3".
static bool NamesARank(std::string_view text) {
  for (const std::string_view word : {"rank ", "ranks "})
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
      if (at + word.size() < text.size() && IsDigit(text[at + word.size()])) return true;
  return false;
}

std::string NamePlaces(const Incident& incident, const std::vector<Rank>& ranks, std::string advice) {
  if (ranks.empty()) return advice;
  const auto replace = [&](std::string_view what, const std::string& by) {
    for (size_t at = advice.find(what); at != std::string::npos; at = advice.find(what, at + by.size()))
      advice.replace(at, what.size(), by);
  };
  // A step stands by itself, in a chat for instance. One that names another rank may mean whoever reports it.
  if (ranks.size() == 1 && !NamesARank(advice)) replace("this rank", RankWords(ranks));
  std::set<std::string> hosts;
  for (const Rank rank : ranks) {
    const auto known = incident.process_of.find(rank);
    const Process* process = known == incident.process_of.end() ? nullptr : &incident.processes[known->second];
    if (ranks.size() == 1 && process && process->pid > 0) replace(" PID", " " + std::to_string(process->pid));
    // The events are looked through for one rank alone: there may be millions of them, and thousands of ranks.
    hosts.insert(ranks.size() == 1 ? ToldHostOf(incident, rank) : process ? process->host : std::string());
  }
  const bool named = hosts.size() == 1 && !hosts.begin()->empty();
  if (!named && ranks.size() == 1) {
    for (const std::string_view on : {"on ", "On "})
      replace(std::string(on) + "that host", std::string(on) + "the host of " + RankWords(ranks));
    return advice;
  }
  const std::string its = named ? *hosts.begin() : "their hosts", that = named ? *hosts.begin() : "those hosts";
  for (const std::string_view on : {"on ", "On "}) {
    replace(std::string(on) + "its host", std::string(on) + its);
    replace(std::string(on) + "that host", std::string(on) + that);
  }
  return advice;
}

EvidenceItem CiteCall(const Incident& incident, const CallStream& stream, const Call& call, std::string says) {
  // "all_reduce #32 on default_pg: 1049600 float32": the kind is not said twice.
  std::string shape = ShapeWords(call);
  if (const std::string kind = std::string(Name(call.kind)) + " of "; shape.starts_with(kind))
    shape.erase(0, kind.size());
  std::string excerpt = OperationWords(incident, call) + ": " + shape;
  static constexpr std::string_view kStates[] = {"", "enqueued", "started", "completed"};
  if (stream.knows_finish) excerpt += ", " + std::string(kStates[static_cast<size_t>(call.state)]);
  if (call.has(kEndedByAbort)) excerpt += " (only after the abort)";
  if (const std::string site = CallSiteWords(incident, call); !site.empty()) excerpt += ", called in " + site;
  return {SourceRef{stream.file, call.line, call.offset}, std::move(excerpt), std::move(says)};
}

// The line that carries what is said of the event, where it is another than its first.
static uint32_t ProofLine(const Event& event) {
  return std::max(
      {event.As<NcclError>().reason_line, event.As<DdpParameters>().list_line, event.As<Raised>().told_line});
}

EvidenceItem CiteEvent(const Event& event, std::string says) {
  const std::string_view message = MessageOf(event);
  std::string excerpt(message.empty() ? WordOf(event) : message);
  if (const auto& setting = event.As<EnvironmentSetting>(); event.kind == EventKind::environment)
    excerpt = setting.name + "=" + setting.value;
  SourceRef source = event.source;
  if (const uint32_t line = ProofLine(event); line > 0) {
    source.line = line, source.offset = 0;
    if (const std::string& reason = event.As<NcclError>().reason; !reason.empty()) excerpt = reason;
    if (const std::string& names = event.As<DdpParameters>().names; !names.empty()) excerpt = names;
  }
  if (excerpt.size() > 300) excerpt = excerpt.substr(0, 300) + "...";
  return {source, std::move(excerpt), std::move(says)};
}

EvidenceItem CiteStack(const Incident& incident, const ThreadStack& thread, std::string says) {
  std::string excerpt;
  int shown = 0;
  for (const Frame& frame : incident.stacks.Get(thread.stack)) {
    if (shown++ == 3) break;
    const std::string_view file = incident.strings.Get(frame.file);
    excerpt += (excerpt.empty() ? "" : " < ") + std::string(incident.strings.Get(frame.function)) + " (" +
               std::string(BaseName(file)) + ":" + std::to_string(frame.line) + ")";
  }
  SourceRef source = thread.source;
  if (thread.first_line > 0 && thread.first_line != source.line) {
    source.line = thread.first_line;
    source.offset = 0;  // that of the thread's head, which is another line
  }
  return {source, std::move(excerpt), std::move(says)};
}

EvidenceItem CiteFile(FileId file, std::string says) { return {SourceRef{file, 0, 0}, "", std::move(says)}; }

EvidenceItem CiteAbsence(std::string says) {
  return {SourceRef{static_cast<FileId>(0xffffffffu), 0, 0}, "", std::move(says)};
}

std::string Capitalised(std::string sentence) {
  // Names are written as they are: "all_gather reaches ...".
  if (sentence.find('_') < sentence.find(' ')) return sentence;
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return sentence;
}

OperationRef RefOf(const Call& call) { return {call.kind, static_cast<int64_t>(call.seq), call.Bytes()}; }

}  // namespace tacet
