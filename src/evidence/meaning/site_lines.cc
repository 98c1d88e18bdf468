// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/site_lines.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "model/events/site_messages.h"

namespace tacet {
namespace {

// A log of a job may hold many; what is as large as this is a trace or a dump.
constexpr size_t kMostBytes = size_t{16} << 20;
// Of one message about one subject these are enough.
constexpr size_t kMostAlike = 3;

bool MayHoldLines(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kMostBytes || bytes[0] == '{' || bytes[0] == '<') return false;
  return bytes.substr(0, size_t{64} << 10).find('\0') == std::string_view::npos;
}

// "Warning  Failed  3s  kubelet  Error: failed to ...", read as an error of that name: no class has a blank in its
// name, and no reader knew what it means.
bool IsGuessed(const Event& event) {
  return event.kind == EventKind::exception && event.As<Raised>().refusal.empty() &&
         Contains(event.As<Raised>().type, "  ");
}

// What somebody asks or denies, and what a program only advises, did not happen; what it does without, does no harm.
bool IsNoReport(std::string_view line) {
  return Trim(line).ends_with('?') || IsAdvice(line) ||
         ContainsAny(line, {"alling back to ", " DEBUG", "[DEBUG", "there is no ", "There is no ", " no sign of ",
                            "n't see ", "not see ", "without any "});
}

}  // namespace

void AddSiteMessages(std::string_view bytes, Fragment& fragment) {
  if (fragment.format == "run_record" || !MayHoldLines(bytes)) return;
  std::set<uint32_t> read, guessed;
  for (const Event& event : fragment.events) (IsGuessed(event) ? guessed : read).insert(event.source.line);
  std::map<std::pair<std::string_view, std::string>, size_t> alike;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    if (read.contains(reader.number())) continue;
    SiteMatch match = ClassifySiteMessage(line);
    if (!match.message || (match.message->role != SiteRole::harmless && IsNoReport(line))) continue;
    // The last of those that clear others counts, and so they are all kept.
    if (guessed.contains(reader.number()))
      std::erase_if(fragment.events,
                    [&](const Event& event) { return event.source.line == reader.number() && IsGuessed(event); });
    size_t& count = alike[{match.message->id, match.subject}];
    if (match.message->role != SiteRole::harmless && ++count > kMostAlike) continue;
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::site_message;
    event.speaker = kNobody;
    event.source = {FileId{}, reader.number(), reader.offset()};
    event.text = std::string(Trim(line).substr(0, 400));
    event.detail = SiteNote{match.message->id, std::move(match.subject), false};
  }
}

}  // namespace tacet
