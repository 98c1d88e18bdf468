// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_phrase.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/text_scan.h"
#include "evidence/meaning/event_meaning.h"
#include "evidence/told/told_error.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"
#include "model/events/refusals.h"

namespace tacet {
namespace {

// Refusals whose words are the program's own message, and nothing that a sentence would hold by chance.
constexpr std::string_view kOwnWords[] = {"old-driver", "driver-mismatch", "driver-down",      "gpu-access-lost",
                                          "gpu-taken",  "no-kernel-image", "libnccl-mismatch", "no-container-gpu"};

// The system's words for a connection that was not made, in small letters, and as it writes them.
struct ConnectionWords {
  std::string_view low, words;
};
constexpr ConnectionWords kConnection[] = {{"connection refused", "Connection refused"},
                                           {"network is unreachable", "Network is unreachable"},
                                           {"no route to host", "No route to host"},
                                           {"connection timed out", "Connection timed out"},
                                           {"connection reset by peer", "Connection reset by peer"}};

bool IsQuoted(std::string_view line, size_t at, size_t end) {
  constexpr std::string_view kQuotes = "'\"`(";
  return at > 0 && end < line.size() && kQuotes.find(line[at - 1]) != std::string_view::npos &&
         std::string_view("'\"`).:").find(line[end]) != std::string_view::npos;
}

// "encounters a "Connection reset by peer" error", "fails with connection refused"
bool TellsThatItHappened(std::string_view low) {
  return HasAnyWord(low, {"error", "errors", "fails", "failed", "fail", "throws", "threw", "get", "gets", "getting",
                          "got", "encounter", "encounters", "raises", "raised", "crashes", "crashed", "dies"});
}

bool IsOver(std::string_view low) {
  return HasAnyWord(low, {"fixed", "solved", "resolved", "no longer", "was able to", "if", "in case"}) ||
         Contains(low, "?");
}

void AddRefusal(std::string_view line, const SourceRef& source, Fragment& fragment) {
  // Most lines hold none of the words that such messages have.
  if (!ContainsAny(line, {"river", "CUDA", "cuda", "Cuda", "NVML", "vidia", "kernel image", "symbol", "device"}))
    return;
  if (ContainsAny(line, {"INFO", "DEBUG", "WARN", "Warning", "warning"})) return;
  const Refusal* refusal = ClassifyRefusal(line);
  if (!refusal || std::find(std::begin(kOwnWords), std::end(kOwnWords), refusal->id) == std::end(kOwnWords)) return;
  const bool prose = IsProse(ProseOf(line));
  const std::string low = LowSentence(line);
  if (prose && IsOver(low)) return;
  for (const Event& event : fragment.events)
    if (event.As<Raised>().refusal == refusal->id) return;
  for (const BenchmarkRun& run : fragment.benchmark_runs)
    if (run.failed_at.line == source.line) return;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::exception;
  event.speaker = kNobody;
  event.source = source;
  event.Make<Raised>().type = ContainsAny(line, {"CUDA", "Cuda", "cuda"}) ? "a CUDA error" : "an error";
  event.text = std::string(Trim(line).substr(0, 400));
  while (!event.text.empty() && (event.text.front() == '`' || event.text.front() == ' ')) event.text.erase(0, 1);
  while (!event.text.empty() && (event.text.back() == '`' || event.text.back() == ' ')) event.text.pop_back();
  event.Set(Meaning::in_prose, prose);
  ReadMeaning(event);
}

// "fails in all_reduce", "after 40 minutes": whoever is that far has connected to its peers.
bool TellsWork(std::string_view low) {
  return HasAnyWord(low, {"all_reduce", "allreduce",      "all-reduce", "allgather",  "all_gather", "all-gather",
                          "broadcast",  "reduce_scatter", "alltoall",   "all_to_all", "backward",   "training",
                          "inference",  "serving",        "requests",   "session",    "epoch",      "epochs",
                          "steps",      "iterations",     "hours",      "hour",       "minutes"});
}

bool TellsConnection(const Event& event) {
  switch (event.kind) {
    case EventKind::connect_failed:
    case EventKind::connection_lost:
    case EventKind::store_unreachable:
    case EventKind::store_lost:
    case EventKind::rendezvous_incomplete:
    case EventKind::nccl_error: return true;
    case EventKind::nccl_warning: return event.As<Warning>().role == NcclWarningRole::cause;
    default: return EndsOrFails(event);
  }
}

// Only where the log itself tells no failure: then the sentence is all there is.
void AddConnection(std::string_view line, bool titled, const SourceRef& source, Fragment& fragment) {
  const std::string low = LowSentence(line);
  const ConnectionWords* found = nullptr;
  size_t at = std::string::npos;
  for (const ConnectionWords& one : kConnection)
    if (const size_t here = low.find(one.low); here < at) at = here, found = &one;
  if (!found || IsOver(low) || HasAnyWord(low, {"no", "not", "never", "without"})) return;
  // "NCCL Network is unreachable when initializing DDP": a title that is the error itself.
  const std::string_view before = std::string_view(low).substr(0, at);
  const bool itself =
      titled && (IsQuoted(low, at, at + found->low.size()) || std::count(before.begin(), before.end(), ' ') <= 3);
  if (!TellsThatItHappened(low) && !itself) return;
  if (std::any_of(fragment.events.begin(), fragment.events.end(), TellsConnection)) return;
  Event& event = fragment.events.emplace_back();
  // What is reset in the middle of the work was open: a peer is gone, and the setup went well.
  const bool was_open = found->low == "connection reset by peer" && TellsWork(low);
  event.kind = was_open ? EventKind::connection_lost : EventKind::connect_failed;
  event.speaker = kNobody;
  event.source = source;
  if (!was_open) event.Make<ConnectFailure>().words = std::string(found->words);
  event.text = std::string(Trim(line).substr(0, 400));
  event.Set(Meaning::in_prose);
  ReadMeaning(event);
}

}  // namespace

void AddToldPhrase(std::string_view line, bool titled, bool outside, const SourceRef& source, Fragment& fragment) {
  line = Trim(line.substr(0, std::min<size_t>(line.size(), 2000)));
  if (line.size() < 12) return;
  AddRefusal(line, source, fragment);
  if (titled || (outside && IsSentence(line))) AddConnection(line, titled, source, fragment);
}

}  // namespace tacet
