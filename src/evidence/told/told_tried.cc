// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_tried.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text_scan.h"
#include "evidence/told/told_error.h"
#include "evidence/told/told_states.h"

namespace tacet {
namespace {

constexpr size_t kMostTried = 16;

bool IsCapital(char c) { return (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_'; }

// "NCCL_P2P_DISABLE", "--shm-size" at this place; empty where none begins there.
std::string_view SettingAt(std::string_view line, size_t at) {
  if (at > 0 && (IsLetter(line[at - 1]) || IsDigit(line[at - 1]) || line[at - 1] == '_' || line[at - 1] == '-'))
    return {};
  std::string_view rest = line.substr(at);
  if (rest.starts_with("--") && rest.size() > 4 && IsLetter(rest[2])) {
    size_t end = 2;
    while (end < rest.size() && (IsLetter(rest[end]) || rest[end] == '-' || rest[end] == '_' || IsDigit(rest[end])))
      ++end;
    return rest.substr(0, end);
  }
  size_t end = 0;
  while (end < rest.size() && IsCapital(rest[end])) ++end;
  const std::string_view name = rest.substr(0, end);
  const bool whole = end == rest.size() || !IsLetter(rest[end]);
  return whole && name.size() > 5 && Contains(name, "_") && IsLetter(name[0]) ? name : std::string_view();
}

// The sentence says that it is so already, or that it did not help.
bool SaysItWasTried(std::string_view low) {
  if (Contains(low, "?") || HasAnyWord(low, {"should", "you can", "you could", "please", "try to", "recommend"}))
    return false;
  const bool in_vain =
      HasAnyWord(low, {"not help", "no effect", "no change", "no difference", "without success", "in vain",
                       "not change", "not work", "not solve", "not fix", "still", "the same", "no luck", "not make"}) ||
      ContainsAny(low, {"n't help", "n't change", "n't work", "n't solve", "n't fix", "n't make"});
  const bool already = HasAnyWord(low, {"already", "i set", "i've set", "i have set", "we set", "i tried", "we tried",
                                        "i've tried", "i have tried", "tried to set", "tried setting"});
  return in_vain || already;
}

}  // namespace

void AddToldTried(std::string_view line, const SourceRef& source, Fragment& fragment) {
  line = line.substr(0, std::min<size_t>(line.size(), 2000));
  const std::string low = LowSentence(line);
  if (!SaysItWasTried(low)) return;
  size_t tried = 0;
  for (const Event& event : fragment.events)
    tried += event.kind == EventKind::environment && event.Means(Meaning::in_prose);
  for (size_t at = 0; at < line.size() && tried < kMostTried; ++at) {
    const std::string_view name = SettingAt(line, at);
    if (name.empty()) continue;
    at += name.size();
    std::string_view value = line.substr(std::min(at, line.size()));
    value = value.starts_with('=') ? value.substr(1, value.find_first_of(" ,;`'\")") - 1) : std::string_view();
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::environment;
    event.speaker = kNobody;
    event.source = source;
    event.text = std::string(Trim(line).substr(0, 400));
    event.detail = EnvironmentSetting{std::string(name), std::string(value.substr(0, 100))};
    event.Set(Meaning::in_prose);
    ++tried;
  }
}

void AddToldLimit(std::string_view line, const SourceRef& source, Fragment& fragment) {
  const std::string low = LowSentence(line);
  if (!HasAnyWord(low, {"exception", "error", "timeout", "timed out", "crash", "crashes", "killed", "fails", "aborts",
                        "aborted", "watchdog"}) ||
      Contains(low, "?"))
    return;
  for (const std::string_view words : {"takes longer than ", "take longer than ", "takes more than ", "take more than ",
                                       "took longer than ", "took more than ", "lasts longer than "}) {
    auto rest = After(low, words);
    if (!rest) continue;
    int64_t amount = 0;
    const bool half = TakeLiteral(*rest, "half an hour");
    if (!half && (!TakeNumber(*rest, &amount) || amount <= 0 || amount > 100'000)) continue;
    const std::string_view unit = Trim(*rest);
    const int64_t minutes = half                       ? 30
                            : unit.starts_with("min")  ? amount
                            : unit.starts_with("hour") ? amount * 60
                                                       : 0;
    if (minutes == 0) continue;
    for (const Event& event : fragment.events)
      if (EndsOrFails(event) || event.kind == EventKind::watchdog_timeout) return;
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::watchdog_timeout;
    event.speaker = kNobody;
    event.source = source;
    event.text = std::string(Trim(line).substr(0, 400));
    event.Make<WatchdogTimeout>().timeout_ms = minutes * 60'000;
    event.Set(Meaning::in_prose);
    return;
  }
}

}  // namespace tacet
