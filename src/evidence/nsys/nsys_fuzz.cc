// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "nsys_import.h"

namespace tacet {
extern const Format kNsysFormat;

// Whatever the bytes are, the accounting adds up, every index points into its table, and the order promised is kept.
static void Check(const Fragment& fragment) {
  const Accounting& bytes = fragment.bytes;
  if (bytes.understood + bytes.ignored + bytes.not_understood != bytes.total) std::abort();
  for (const Timeline& timeline : fragment.timelines) {
    if (timeline.speaker >= fragment.speakers.size()) std::abort();
    for (const GpuEvent& event : timeline.gpu) {
      if (event.stream >= timeline.streams.size()) std::abort();
      if (event.launch != kNoIndex && event.launch >= timeline.launches.size()) std::abort();
      if (event.collective != kNoIndex && event.collective >= timeline.collectives.size()) std::abort();
      if (event.end_ns < event.start_ns) std::abort();
    }
    for (const TraceCollective& operation : timeline.collectives) {
      if (operation.gpu_event != kNoIndex && operation.gpu_event >= timeline.gpu.size()) std::abort();
      if (operation.group != GroupIndex::none && static_cast<uint32_t>(operation.group) >= fragment.groups.size())
        std::abort();
    }
    if (!std::is_sorted(timeline.gpu.begin(), timeline.gpu.end(),
                        [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; }))
      std::abort();
  }
}
}  // namespace tacet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kNsysFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "report.sqlite");
  tacet::Fragment fragment;
  tacet::kNsysFormat.read({"report_rank1.sqlite", bytes, false}, fragment);
  tacet::Check(fragment);
  return 0;
}
