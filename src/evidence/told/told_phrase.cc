// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_phrase.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/line_reader.h"
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
  if (was_open)
    event.Make<LostPeer>();
  else
    event.Make<ConnectFailure>().words = std::string(found->words);
  event.text = std::string(Trim(line).substr(0, 400));
  event.Set(Meaning::in_prose);
  ReadMeaning(event);
}

// "10.9.1.20:8477", "node-3.cluster:8477": a host and a port.
std::string_view AddressIn(std::string_view text) {
  constexpr std::string_view kMarks = "'\"`()<>,;";
  while (!text.empty()) {
    std::string_view word = TakeWord(text);
    while (!word.empty() && kMarks.find(word.front()) != std::string_view::npos) word.remove_prefix(1);
    while (!word.empty() && (kMarks.find(word.back()) != std::string_view::npos || word.back() == '.'))
      word.remove_suffix(1);
    for (const std::string_view scheme : {"tcp://", "grpc://", "http://"}) TakeLiteral(word, scheme);
    const size_t colon = word.rfind(':');
    if (colon == std::string_view::npos || colon < 2) continue;
    const std::string_view port = word.substr(colon + 1), host = word.substr(0, colon);
    const bool number = port.size() >= 2 && port.size() <= 5 &&
                        std::all_of(port.begin(), port.end(), [](char c) { return IsDigit(c); });
    if (number && host.find_first_of("/=[]:") == std::string_view::npos) return word;
  }
  return {};
}

// Waiting to connect to client mesh master (300 seconds) 10.9.1.20:8477
// [hub] still trying to connect to tcp://node-3:7777
// The address of the peer that the line waits for, whatever the program; empty where it names none.
std::string_view AwaitedAddress(std::string_view line) {
  for (const std::string_view words : {"onnect to ", "onnection to ", "onnection from ", "onnecting to "}) {
    const auto rest = After(line, words);
    if (!rest) continue;
    const std::string_view before = line.substr(0, static_cast<size_t>(rest->data() - line.data()));
    if (ContainsAny(before, {"aiting ", "aits ", "rying ", "ries ", "etry"})) return AddressIn(rest->substr(0, 160));
  }
  return {};
}

bool TellsThatItConnected(std::string_view line) {
  return ContainsAny(line, {"onnected to ", "onnection established", "onnected.", "onnection accepted"});
}

}  // namespace

void AddAwaitedAddress(std::string_view bytes, Fragment& fragment) {
  constexpr int kOften = 3;
  const bool hangs = std::any_of(fragment.events.begin(), fragment.events.end(),
                                 [](const Event& event) { return event.kind == EventKind::told_hang; });
  if (std::any_of(fragment.events.begin(), fragment.events.end(),
                  [](const Event& event) { return TellsConnection(event) || event.kind == EventKind::progress; }))
    return;
  SourceRef found;
  std::string address, text;
  int times = 0;
  bool last = false;
  LineReader reader(bytes);
  for (std::string_view line; reader.Next(&line);) {
    if (Trim(line).empty()) continue;
    line = line.substr(0, std::min<size_t>(line.size(), 2000));
    const std::string_view here = AwaitedAddress(line);
    if (last = !here.empty(); last) {
      if (here != address) times = 0;
      ++times;
      address = here;
      text = std::string(Trim(line).substr(0, 400));
      found = {FileId{}, reader.number(), reader.offset()};
    } else if (TellsThatItConnected(line)) {
      address.clear();
      times = 0;
    }
  }
  if (address.empty() || !(hangs || (last && times >= kOften))) return;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::connect_failed;
  event.speaker = kNobody;
  event.source = found;
  event.library = Library::other;
  event.Make<ConnectFailure>().address = std::move(address);
  event.text = std::move(text);
}

void AddToldPhrase(std::string_view line, bool titled, bool outside, const SourceRef& source, Fragment& fragment) {
  line = Trim(line.substr(0, std::min<size_t>(line.size(), 2000)));
  if (line.size() < 12) return;
  AddRefusal(line, source, fragment);
  if (titled || (outside && IsSentence(line))) AddConnection(line, titled, source, fragment);
}

}  // namespace tacet
