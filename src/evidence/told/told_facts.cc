// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_facts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/char_set.h"
#include "base/signal_name.h"
#include "base/text_scan.h"
#include "evidence/told/told_error.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"
#include "model/events/xid.h"

namespace tacet {
namespace {

constexpr size_t kMostToldXids = 16;

bool IsWordChar(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_'; }

bool HasOwnWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordChar(text[at - 1])) && (end == text.size() || !IsWordChar(text[end]))) return true;
  }
  return false;
}

// Asked, supposed or denied.
bool IsOpenOrDenied(std::string_view line) {
  if (Contains(line, "?") || Contains(line, "n't")) return true;
  for (const std::string_view word :
       {"no",    "No",   "not",   "without", "if",    "If",  "would",  "could",  "may",   "might",
        "maybe", "like", "fixed", "solved",  "never", "nor", "unless", "should", "means", "e.g."})
    if (HasOwnWord(line, word)) return true;
  return false;
}

Event& AddProse(EventKind kind, std::string_view line, const SourceRef& source, Fragment& fragment) {
  Event& event = fragment.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source = source;
  event.text = std::string(Trim(line).substr(0, 400));
  event.Set(Meaning::in_prose);
  return event;
}

void AddToldXid(int64_t number, std::string_view line, const SourceRef& source, Fragment& fragment) {
  if (!FindXid(number)) return;
  size_t told = 0;
  for (const Event& event : fragment.events) {
    if (event.kind != EventKind::xid) continue;
    if (event.As<Xid>().number == number) return;
    ++told;
  }
  if (told >= kMostToldXids) return;
  Event& event = AddProse(EventKind::xid, line, source, fragment);
  event.Make<Xid>().number = number;
}

// The sentence says that somebody saw it, or is an item of a list of what was seen; "what an Xid 79 is" is neither.
bool TellsOccurrence(std::string_view sentence) {
  for (const std::string_view word : {"what", "What", "which", "curious", "wonder", "docs", "mean", "meaning"})
    if (HasOwnWord(sentence, word)) return false;
  std::string_view item = Trim(sentence);
  while (!item.empty() && (item[0] == '-' || item[0] == '*' || item[0] == ' ')) item.remove_prefix(1);
  if (item.starts_with("Xid ") || item.starts_with("XID ")) return true;
  for (const std::string_view word :
       {"dmesg",  "got",  "get",    "gets",  "see",    "saw", "shows", "show", "reports", "reported",
        "bursts", "then", "logged", "threw", "throws", "hit", "hits",  "had",  "times",   "journalctl"})
    if (HasOwnWord(sentence, word)) return true;
  return false;
}

// "Xid 48 / 171: ...", "Xid error 79", "bursts of Xid 94, then Xid 154", "XID 63 and 94"
void ReadToldXids(std::string_view line, const SourceRef& source, Fragment& fragment) {
  if (!TellsOccurrence(line)) return;
  for (const std::string_view name : {"Xid", "XID"})
    for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
      if (at > 0 && IsWordChar(line[at - 1])) continue;
      std::string_view rest = line.substr(at + name.size());
      for (const std::string_view filler : {"s", " errors", " error", " codes", " code", ":"})
        TakeLiteral(rest, filler);
      SkipBlanks(rest);
      int64_t number = 0;
      if (rest.empty() || !IsDigit(rest[0])) continue;
      while (TakeNumber(rest, &number) && number > 0 && number < 1000) {
        AddToldXid(number, line, source, fragment);
        bool more = false;
        for (const std::string_view between : {" / ", "/", ", ", " and ", " & "}) {
          std::string_view ahead = rest;
          if (!more && TakeLiteral(ahead, between) && !ahead.empty() && IsDigit(ahead[0])) rest = ahead, more = true;
        }
        if (!more) break;
      }
    }
}

// "ends with -9 after 5 or 6 steps", "exits with signal 11": the number of a signal, told by whoever saw it.
void ReadToldEnd(std::string_view line, const SourceRef& source, Fragment& fragment) {
  const bool known = std::any_of(fragment.events.begin(), fragment.events.end(), [](const Event& event) {
    return event.kind == EventKind::process_exited || event.kind == EventKind::process_killed;
  });
  if (known) return;
  for (const std::string_view verb : {"ends with ", "ended with ", "exits with ", "exited with ", "dies with ",
                                      "died with ", "crashes with ", "fails with ", "killed with "}) {
    auto rest = After(line, verb);
    if (!rest) continue;
    bool signal = false;
    for (const std::string_view filler : {"a ", "an ", "the ", "exit ", "return ", "error ", "code ", "status "})
      TakeLiteral(*rest, filler);
    signal = TakeLiteral(*rest, "signal ");
    int64_t code = 0;
    if (!TakeNumber(*rest, &code)) continue;
    // "-9.5", "-9 %", "-9k" are other numbers.
    const char next = rest->empty() ? ' ' : rest->front();
    const bool fraction = next == '.' && rest->size() > 1 && IsDigit((*rest)[1]);
    if (fraction || IsWordChar(next) || next == '%') continue;
    if (signal && code > 0) code = -code;
    if (code >= 0 || code < -64) continue;
    Event& event = AddProse(EventKind::process_exited, line, source, fragment);
    auto& end = event.Make<ProcessEnd>();
    end.code = code;
    end.how = SignalName(-code);
    return;
  }
}

// "I get a segmentation fault after the first step", "Bus error when using 16 GPUs": a signal by its name.
void ReadToldSignal(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  std::string low(Trim(sentence));
  std::transform(low.begin(), low.end(), low.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const bool bus = Contains(low, "bus error");
  const bool fault = Contains(low, "segmentation fault") || HasOwnWord(low, "segfault") || HasOwnWord(low, "segfaults");
  const bool begins =
      low.starts_with("bus error") || low.starts_with("segmentation fault") || low.starts_with("segfault");
  if (bus == fault || !(begins || TellsOccurrence(sentence))) return;
  const bool known = std::any_of(fragment.events.begin(), fragment.events.end(), [](const Event& event) {
    return EndsOrFails(event) || event.kind == EventKind::shared_memory_full;
  });
  if (known) return;
  Event& event = AddProse(EventKind::process_exited, sentence, source, fragment);
  auto& end = event.Make<ProcessEnd>();
  end.code = bus ? -7 : -11;
  end.how = SignalName(bus ? 7 : 11);
}

// "The GPU is not usable due to an uncorrectable ECC error": told by whoever saw it on the device.
void ReadToldMemoryError(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  std::string low(sentence);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const size_t at = low.find("uncorrectable ecc error");
  if (at == std::string::npos || Contains(low, "?")) return;
  const std::string_view before = std::string_view(low).substr(0, at);
  for (const std::string_view word : {"no", "without", "if", "any", "zero", "never", "what", "when", "after an"})
    if (HasOwnWord(before.substr(before.size() - std::min<size_t>(before.size(), 24)), word)) return;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::xid || event.kind == EventKind::cuda_error) return;
  AddProse(EventKind::cuda_error, sentence, source, fragment).Make<CudaError>().words =
      "uncorrectable ECC error encountered";
}

// "near 100W of 700W", "41 W / 70 W"
std::optional<GpuLoad> TakePower(std::string_view line) {
  for (size_t at = line.find('W'); at != std::string_view::npos; at = line.find('W', at + 1)) {
    if (at + 1 < line.size() && IsWordChar(line[at + 1])) continue;
    size_t end = at;
    while (end > 0 && line[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && (IsDigit(line[begin - 1]) || line[begin - 1] == '.')) --begin;
    std::string_view number = line.substr(begin, end - begin), rest = line.substr(at + 1);
    double watts = 0, most = 0;
    if (number.empty() || !TakeDouble(number, &watts)) continue;
    if (!TakeLiteral(rest, " of ") && !TakeLiteral(rest, " / ") && !TakeLiteral(rest, "/") &&
        !TakeLiteral(rest, " out of "))
      continue;
    if (!TakeDouble(rest, &most) || !(Trim(rest).starts_with('W')) || !(watts > 0) || !(most >= watts) || most > 5000)
      continue;
    GpuLoad load;
    load.watts = static_cast<float>(watts);
    load.most_watts = static_cast<float>(most);
    return load;
  }
  return std::nullopt;
}

void ReadToldPower(std::string_view line, const SourceRef& source, Fragment& fragment) {
  if (!ContainsAny(line, {"util", "Util", "UTIL"}) || !ContainsAny(line, {"100%", "100 %"})) return;
  auto load = TakePower(line);
  const bool listed = std::any_of(fragment.events.begin(), fragment.events.end(),
                                  [](const Event& event) { return event.kind == EventKind::gpu_load; });
  if (!load || listed) return;
  load->percent = 100;
  AddProse(EventKind::gpu_load, line, source, fragment).detail = std::move(*load);
}

// "ulimit -l shows 64 in the container", "ulimit -l is 65536": in KiB; "unlimited" is no limit.
void ReadToldLockLimit(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  auto rest = After(sentence, "ulimit -l");
  if (!rest) return;
  while (!rest->empty() && (rest->front() == '`' || rest->front() == '\'' || rest->front() == '"'))
    rest->remove_prefix(1);
  for (const std::string_view verb : {" shows", " says", " prints", " gives", " returns", " reports", " is", ":", " ="})
    if (TakeLiteral(*rest, verb)) break;
  SkipBlanks(*rest);
  int64_t kib = 0;
  if (!TakeNumber(*rest, &kib) || kib <= 0 || kib > (int64_t{1} << 20)) return;  // 1 GiB suffices
  if (!rest->empty() && IsWordChar(rest->front())) return;
  for (const Event& event : fragment.events)
    if (event.As<RdmaFailure>().only_warned) return;
  auto& limit = AddProse(EventKind::rdma_failed, sentence, source, fragment).Make<RdmaFailure>();
  limit.fault = RdmaFault::locked_memory;
  limit.only_warned = true;
  limit.code = kib * 1024;
}

// "both have 4x HDR", "the nodes have ConnectX-7 adapters": what somebody who knows the hosts says of their network.
void ReadToldAdapters(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  // "the nodes have HDR", "two nodes with ConnectX-6 cards"
  const bool with = HasOwnWord(sentence, "with") &&
                    HasAnyWord(LowSentence(sentence), {"cards", "card", "adapters", "adapter", "nics", "nic", "hcas"});
  if (!with && !HasOwnWord(sentence, "have") && !HasOwnWord(sentence, "has")) return;
  const bool told = std::any_of(fragment.events.begin(), fragment.events.end(), [](const Event& event) {
    return event.kind == EventKind::device_found && event.Means(Meaning::in_prose);
  });
  if (told) return;
  for (const std::string_view word :
       {"InfiniBand", "Infiniband", "infiniband", "IB", "HDR", "NDR", "EDR", "XDR", "RoCE", "ConnectX"}) {
    const bool found = word == "ConnectX" ? Contains(sentence, word) : HasOwnWord(sentence, word);
    if (!found) continue;
    auto& device = AddProse(EventKind::device_found, sentence, source, fragment).Make<NetworkDevice>();
    const bool rate = word.ends_with("DR");
    device.name = rate                                   ? std::string(word) + " InfiniBand"
                  : word == "RoCE" || word == "ConnectX" ? std::string(word) + " adapters"
                                                         : "InfiniBand";
    return;
  }
}

// "uses NET/SOCKET instead of IB", "fails to use the Net/IB but instead relies on sockets", "the InfiniBand device is
// not found": who says that knows that there is one.
void ReadToldFallback(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  const std::string low = LowSentence(sentence);
  const bool fast =
      HasAnyWord(low, {"infiniband", "infini-band", "inifiniband", "infinband", "ib", "net/ib", "rdma", "roce"});
  const bool slow = HasAnyWord(low, {"net/socket", "socket", "sockets", "tcp", "ethernet"});
  // "Expected (IB) | Actual (Socket)" is the head of a table.
  const bool instead =
      HasAnyWord(low, {"instead", "instead of", "rather than", "falls back", "fall back", "fallback"}) ||
      (HasAnyWord(low, {"expected"}) && HasAnyWord(low, {"actual", "actually", "observed", "got"}));
  const bool lost = HasAnyWord(low, {"not found", "cannot be found", "can't be found", "not detected", "not used",
                                     "not being used", "not use", "not find", "fails to use"}) ||
                    ContainsAny(low, {"n't use", "n't find"});
  if (!fast ||
      !((slow && instead) || (lost && HasAnyWord(low, {"device", "devices", "adapter", "card", "nccl", "log"}))))
    return;
  if (Contains(sentence, "?") || HasOwnWord(low, "if") || HasOwnWord(low, "fixed") || HasOwnWord(low, "solved")) return;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::device_found && event.Means(Meaning::in_prose)) return;
  auto& device = AddProse(EventKind::device_found, sentence, source, fragment).Make<NetworkDevice>();
  device.name = HasAnyWord(low, {"roce"}) ? "RoCE adapters" : "InfiniBand";
  device.passed_over = slow;
}

// "why GPU Direct RDMA is being disabled", "I do not see GDRDMA being enabled on those adapters"
void ReadToldGpuDirect(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  const std::string low = LowSentence(sentence);
  if (!HasAnyWord(low, {"gpu direct rdma", "gpudirect rdma", "gpu-direct rdma", "gdrdma", "gdr"})) return;
  const bool off =
      HasAnyWord(low, {"disabled", "is off", "not enabled", "not used", "not being used", "not working"}) ||
      ((Contains(low, "n't see") || HasAnyWord(low, {"not see", "cannot see"})) &&
       HasAnyWord(low, {"enabled", "used", "active"}));
  const bool no_matter = Contains(sentence, "?") ||
                         HasAnyWord(low, {"if", "fixed", "solved", "i disabled", "we disabled", "should", "can"});
  if (!off || no_matter) return;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::gpu_direct && event.Means(Meaning::in_prose)) return;
  AddProse(EventKind::gpu_direct, sentence, source, fragment).Make<GpuDirect>().on = false;
}

// "GPU0 is at 0% utilization, and GPUs 1-7 are at 100%", "all GPUs are at 100 % except GPU 3 (0 %)"
void ReadToldUtilization(std::string_view sentence, const SourceRef& source, Fragment& fragment) {
  std::string low = LowSentence(sentence);
  for (size_t at = low.find(" %"); at != std::string::npos; at = low.find(" %", at)) low.erase(at, 1);
  const size_t busy = low.find("100%");
  if (busy == std::string::npos || !ContainsAny(low, {"gpu"})) return;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::gpu_load) return;
  // The one at 0 %, and the GPU that is named next to it.
  size_t idle = low.find("0%");
  while (idle != std::string::npos && idle > 0 && (IsDigit(low[idle - 1]) || low[idle - 1] == '.'))
    idle = low.find("0%", idle + 1);
  if (idle == std::string::npos) return;
  const bool others = ContainsAny(low, {"gpu's ", "gpus ", "others", "other gpu", "all gpu", "rest", "the other"});
  if (!others) return;
  size_t name = std::string::npos;
  for (size_t at = low.find("gpu"); at != std::string::npos && at < idle; at = low.find("gpu", at + 1)) {
    std::string_view rest = std::string_view(low).substr(at + 3);
    SkipBlanks(rest);
    if (!rest.empty() && IsDigit(rest[0])) name = at;
  }
  if (name == std::string::npos || idle - name > 40) return;
  std::string_view rest = std::string_view(low).substr(name + 3);
  SkipBlanks(rest);
  int64_t index = -1;
  if (!TakeNumber(rest, &index) || index < 0 || index > 64) return;
  constexpr int32_t kInUse = 1024;  // who speaks of the job's GPUs means those that it uses
  for (const bool is_idle : {true, false}) {
    auto& load = AddProse(EventKind::gpu_load, sentence, source, fragment).Make<GpuLoad>();
    load.index = static_cast<decltype(load.index)>(is_idle ? index : -1);
    load.percent = is_idle ? 0.F : 100.F;
    load.memory_mib = kInUse;
  }
}

// "Model training has ended, but there was an error when releasing resources": what hangs or fails below came after it.
void ReadToldFinish(std::string_view sentence, Fragment& fragment, const SourceRef& source) {
  const std::string low = LowSentence(sentence);
  if (!HasAnyWord(low, {"training", "fine-tuning", "finetuning", "pretraining", "pre-training"}) || IsDoubted(low) ||
      HasAnyWord(low, {"not", "before", "until", "whether", "every", "each", "epoch", "epochs", "once"}))
    return;
  for (const std::string_view verb :
       {"has ended", "had ended", "has finished", "had finished", "has completed", "had completed", "is finished",
        "is done", "is over", "was finished", "was done", "finished successfully", "completed successfully"}) {
    const auto behind = After(low, verb);
    // "has finished 3 of 10 steps" is no end of it.
    if (!behind || (!Trim(*behind).empty() && IsDigit(Trim(*behind)[0]))) continue;
    for (LogOutline& outline : fragment.outlines)
      if (!outline.trained) outline.trained = {"training had finished (as the text around the log says)", source};
    return;
  }
}

bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// "0000:9c:00", "00000000:9C:00.0"
std::string PciAt(std::string_view text) {
  size_t domain = 0;
  while (domain < text.size() && IsHex(text[domain])) ++domain;
  if ((domain != 4 && domain != 8) || text.size() < domain + 6) return "";
  const std::string_view rest = text.substr(domain);
  if (rest[0] != ':' || !IsHex(rest[1]) || !IsHex(rest[2]) || rest[3] != ':' || !IsHex(rest[4]) || !IsHex(rest[5]))
    return "";
  if (rest.size() > 6 && (IsWordChar(rest[6]) || rest[6] == ':')) return "";
  std::string pci(text.substr(domain - 4, 10));
  std::transform(pci.begin(), pci.end(), pci.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  return pci;
}

constexpr CharSet kSentenceEnds(".;!?");

}  // namespace

void AddToldSituation(std::string_view line, const SourceRef& source, Fragment& fragment) {
  line = line.substr(0, std::min<size_t>(line.size(), 2000));
  while (!line.empty()) {
    size_t end = 0;
    while ((end = kSentenceEnds.FindIn(line, end)) != std::string_view::npos && end + 1 < line.size() &&
           line[end + 1] != ' ')
      ++end;
    const std::string_view sentence = line.substr(0, end == std::string_view::npos ? end : end + 1);
    ReadToldFallback(sentence, source, fragment);
    ReadToldGpuDirect(sentence, source, fragment);
    ReadToldUtilization(sentence, source, fragment);
    line.remove_prefix(sentence.size());
  }
}

void AddToldFacts(std::string_view line, const SourceRef& source, Fragment& fragment) {
  line = line.substr(0, std::min<size_t>(line.size(), 2000));
  if (Contains(line, "NVRM")) return;
  TakeLiteral(line, "# ");
  // Sentence by sentence: what is denied in one may be told in the next.
  while (!line.empty()) {
    size_t end = 0;
    while ((end = kSentenceEnds.FindIn(line, end)) != std::string_view::npos && end + 1 < line.size() &&
           line[end + 1] != ' ')
      ++end;
    const std::string_view sentence = line.substr(0, end == std::string_view::npos ? end : end + 1);
    ReadToldMemoryError(sentence, source, fragment);
    ReadToldFinish(sentence, fragment, source);
    if (!IsOpenOrDenied(sentence)) {
      ReadToldXids(sentence, source, fragment);
      ReadToldEnd(sentence, source, fragment);
      ReadToldSignal(sentence, source, fragment);
      ReadToldPower(sentence, source, fragment);
      ReadToldLockLimit(sentence, source, fragment);
    }

    // "the nodes have HDR InfiniBand, but NCCL does not use it": what is denied comes behind it.
    if (const std::string_view first = sentence.substr(0, sentence.find(" but ")); !IsOpenOrDenied(first))
      ReadToldAdapters(first, source, fragment);
    line.remove_prefix(sentence.size());
  }
}

void PlaceToldXids(std::string_view bytes, Fragment& fragment) {
  const auto is_told = [](const Event& event) {
    return event.kind == EventKind::xid && event.Means(Meaning::in_prose);
  };
  if (std::none_of(fragment.events.begin(), fragment.events.end(), is_told)) return;
  std::set<std::string> addresses;
  for (size_t at = bytes.find(':'); at != std::string_view::npos; at = bytes.find(':', at + 1))
    for (const size_t domain : {size_t{8}, size_t{4}}) {
      if (at < domain || (at > domain && IsWordChar(bytes[at - domain - 1]))) continue;
      if (std::string pci = PciAt(bytes.substr(at - domain, domain + 8)); !pci.empty())
        addresses.insert(std::move(pci));
    }
  if (addresses.size() != 1) return;
  for (Event& event : fragment.events)
    if (is_told(event)) event.Make<Xid>().pci = *addresses.begin();
}

}  // namespace tacet
