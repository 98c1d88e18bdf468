// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/prose_events.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/told/told_error.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"
#include "evidence/told/told_title.h"
#include "model/events/event_witness.h"
#include "model/events/site_messages.h"

namespace tacet {
namespace {

// Fewer words, or shorter ones, are alike by chance.
constexpr size_t kWordsAlike = 3, kShortestAlike = 14;

bool TellsTrouble(const Event& event) {
  switch (event.kind) {
    case EventKind::rdma_failed:
    case EventKind::disk_full:
    case EventKind::shared_memory_full:
    case EventKind::port_in_use:
    case EventKind::fabric_down:
    case EventKind::connect_failed:
    case EventKind::nccl_warning:
    case EventKind::nccl_error:
    case EventKind::peer_access_failed: return true;
    case EventKind::site_message: {
      const SiteMessage* message = FindSiteMessage(event.As<SiteNote>().id);
      return message && message->role != SiteRole::harmless;
    }
    default: return EndsOrFails(event);
  }
}

// One kind of event tells one fault.
bool KindSaysItAll(EventKind kind) {
  switch (kind) {
    case EventKind::rdma_failed:
    case EventKind::disk_full:
    case EventKind::shared_memory_full:
    case EventKind::port_in_use:
    case EventKind::fabric_down:
    case EventKind::peer_access_failed: return true;
    default: return false;
  }
}

// "no space left on device" stands in both.
bool ShareAPhrase(const std::string& low, const std::string& other) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < low.size(); ++at)
    if (IsLetter(low[at]) && (at == 0 || low[at - 1] == ' ')) begins.push_back(at);
  for (size_t i = 0; i + kWordsAlike <= begins.size(); ++i) {
    const size_t begin = begins[i], last = begins[i + kWordsAlike - 1];
    size_t end = last;
    while (end < low.size() && IsLetter(low[end])) ++end;
    if (end - begin >= kShortestAlike && other.find(low.substr(begin, end - begin)) != std::string::npos) return true;
  }
  return false;
}

std::map<uint32_t, std::string> LowLinesOf(std::string_view bytes, const Fragment& fragment) {
  std::map<uint32_t, std::string> lines;
  for (const Event& event : fragment.events)
    if (TellsTrouble(event)) lines.try_emplace(event.source.line);
  LineReader reader(bytes);
  for (std::string_view line; !lines.empty() && reader.number() < lines.rbegin()->first && reader.Next(&line);)
    if (const auto found = lines.find(reader.number()); found != lines.end()) found->second = LowSentence(line);
  return lines;
}

// The numbers of the lines, among those with events, that are sentences around the log.
std::vector<uint32_t> ProseAmong(std::string_view bytes, const std::map<uint32_t, std::string>& lines) {
  std::vector<uint32_t> prose;
  const std::string_view title = TitleOf(bytes);
  AroundTheLog around(bytes);
  LineReader reader(bytes);
  for (std::string_view line; reader.Next(&line);) {
    const bool outside = around.Holds(line, reader.number());
    if (!lines.contains(reader.number())) continue;
    const bool titled = line.data() == title.data() && !title.empty();
    if (titled || (outside && IsProse(ProseOf(line)))) prose.push_back(reader.number());
  }
  return prose;
}

}  // namespace

bool PlaysDown(std::string_view low) {
  return HasAnyWord(low,
                    {"misleading",     "harmless",          "spurious",         "can be ignored", "could be ignored",
                     "safe to ignore", "safely ignored",    "safely ignore",    "no error",       "no errors",
                     "no exception",   "no exceptions",     "no error message", "no timeout",     "without error",
                     "without errors", "without any error", "without an error", "not an error",   "false positive"});
}

void DropRepeatedInProse(std::string_view bytes, Fragment& fragment) {
  const std::map<uint32_t, std::string> lines = LowLinesOf(bytes, fragment);
  if (lines.empty()) return;
  const std::vector<uint32_t> prose = ProseAmong(bytes, lines);
  if (prose.empty()) return;
  const auto is_prose = [&](const Event& event) {
    return std::binary_search(prose.begin(), prose.end(), event.source.line);
  };
  const auto repeats = [&](const Event& event) {
    const std::string& low = lines.at(event.source.line);
    return std::any_of(fragment.events.begin(), fragment.events.end(), [&](const Event& other) {
      if (!TellsTrouble(other) || is_prose(other)) return false;
      return (other.kind == event.kind && KindSaysItAll(event.kind)) || ShareAPhrase(low, lines.at(other.source.line));
    });
  };
  std::vector<bool> dropped;
  for (const Event& event : fragment.events)
    dropped.push_back(TellsTrouble(event) && is_prose(event) && WitnessOf(event) != Witness::reporter &&
                      !event.rank.known() && event.pid < 0 &&
                      (PlaysDown(lines.at(event.source.line)) || repeats(event)));
  // Without a fence a line at the end may as well be the log's own.
  const bool fenced = Contains(bytes, "```");
  for (Event& event : fragment.events)
    if ((fenced || (event.source.line == 1 && !TitleOf(bytes).empty())) && TellsTrouble(event) && is_prose(event) &&
        !event.rank.known() && event.pid < 0)
      event.Set(Meaning::in_prose);
  size_t at = 0;
  std::erase_if(fragment.events, [&](const Event&) { return dropped[at++]; });
}

}  // namespace tacet
