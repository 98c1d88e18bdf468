// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_payload.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "evidence/load.h"
#include "recorded_files.h"

namespace tacet {
namespace {

// A profiler's traces take long to read and hold none.
bool MayHoldEvents(std::string_view path) { return !path.ends_with(".json.gz"); }

class GoldenEvents : public testing::TestWithParam<std::string_view> {};

// Whoever makes an event fills the struct that belongs to its kind, and whoever reads it looks into no other.
TEST_P(GoldenEvents, HoldThePayloadOfTheirKind) {
  std::set<EventKind> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(TestFolder(GetParam()))) {
    if (!entry.is_directory()) continue;
    for (const RecordedFile& file : ReadRecording(entry.path(), MayHoldEvents)) {
      const Fragment fragment = ReadFragment(file.path, file.bytes, {});
      for (const Event& event : fragment.events) {
        kinds.insert(event.kind);
        ASSERT_EQ(event.detail.index(), PayloadOf(event.kind))
            << "kind " << static_cast<int>(event.kind) << " at " << file.path << ":" << event.source.line;
      }
    }
  }
  EXPECT_GE(kinds.size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Inputs, GoldenEvents, testing::Values("wild", "users", "golden", "corpus"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tacet
