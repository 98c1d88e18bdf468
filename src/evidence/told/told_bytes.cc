// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_bytes.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/line_reader.h"

namespace tacet {
namespace {

bool IsSentenceOfReporter(const Event& event) {
  switch (event.kind) {
    case EventKind::told_hang:
    case EventKind::told_stop:
    case EventKind::told_slow:
    case EventKind::told_wrong:
    case EventKind::told_remedy:
    case EventKind::told_uneven:
    case EventKind::told_guard:
    case EventKind::told_not_finite: return true;
    default: return event.Means(Meaning::in_prose);
  }
}

}  // namespace

void CountToldLines(std::string_view bytes, size_t first, Fragment& fragment) {
  const bool unknown = fragment.format == "unknown";
  std::set<uint32_t> lines;
  for (size_t i = 0; i < fragment.events.size(); ++i) {
    const Event& event = fragment.events[i];
    if (i >= first && (unknown || IsSentenceOfReporter(event))) lines.insert(event.source.line);
    if (const uint32_t told = event.As<Raised>().told_line; told > 0) lines.insert(told);
  }
  if (lines.empty()) return;
  uint64_t understood = 0;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line))
    if (lines.contains(reader.number())) understood += reader.line_bytes();
  understood = std::min<uint64_t>(understood, fragment.bytes.not_understood);
  fragment.bytes.understood += understood;
  fragment.bytes.not_understood -= understood;
}

}  // namespace tacet
