// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/timeline_merge.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

// A trace of two steps from `begin`, with a kernel, its launch and an operation in each.
Timeline TraceOf(int32_t rank, int64_t begin, int64_t first_step, uint32_t file, int64_t stream = 7) {
  Timeline timeline;
  timeline.rank = {rank};
  timeline.file = static_cast<FileId>(file);
  timeline.begin_ns = begin;
  timeline.end_ns = begin + 200;
  timeline.streams = {{0, stream}};
  timeline.threads = {100 + rank};
  for (int i = 0; i < 2; ++i) {
    const int64_t at = begin + 100 * i;
    timeline.steps.push_back({first_step + i, at, at + 100});
    timeline.launches.push_back({at + 10, 5, 0});
    GpuEvent event;
    event.start_ns = at + 20;
    event.end_ns = at + 60;
    event.name = timeline.names.Intern("kernel of file " + std::to_string(file));
    event.launch = event.collective = static_cast<uint32_t>(i);
    timeline.gpu.push_back(event);
    TraceCollective operation;
    operation.enter_ns = at + 10;
    operation.gpu_event = static_cast<uint32_t>(i);
    timeline.collectives.push_back(operation);
  }
  return timeline;
}

TEST(TimelineMerge, TracesThatFollowEachOtherBecomeOne) {
  std::vector<Timeline> timelines;
  timelines.push_back(TraceOf(1, 5000, 20, 2, 9));
  timelines.push_back(TraceOf(0, 1000, 10, 0));
  timelines.push_back(TraceOf(1, 1000, 10, 1));
  std::vector<Diagnostic> diagnostics;
  JoinTracesOfOneRank(timelines, diagnostics);
  ASSERT_EQ(timelines.size(), 2u);
  const Timeline& joined = timelines[1];
  EXPECT_EQ(joined.rank.value, 1);
  EXPECT_EQ(joined.begin_ns, 1000);
  EXPECT_EQ(joined.end_ns, 5200);
  ASSERT_EQ(joined.steps.size(), 4u);
  EXPECT_EQ(joined.steps[3].number, 21);
  ASSERT_EQ(joined.gpu.size(), 4u);
  EXPECT_EQ(joined.names.Get(joined.gpu[3].name), "kernel of file 2");
  EXPECT_EQ(joined.launches[joined.gpu[3].launch].start_ns, 5110);
  EXPECT_EQ(joined.collectives[joined.gpu[3].collective].gpu_event, 3u);
  EXPECT_EQ(joined.streams[joined.gpu[3].stream].id, 9);
  EXPECT_EQ(joined.threads.size(), 1u);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].code, "traces-joined");
  EXPECT_EQ(diagnostics[0].source.file, FileId{2});
}

TEST(TimelineMerge, OfTwoThatRecordTheSameTimeTheFullerStays) {
  std::vector<Timeline> timelines;
  timelines.push_back(TraceOf(3, 1000, 10, 0));
  timelines.push_back(TraceOf(3, 1010, 10, 1));
  timelines[1].gpu.push_back(timelines[1].gpu.back());
  std::vector<Diagnostic> diagnostics;
  JoinTracesOfOneRank(timelines, diagnostics);
  ASSERT_EQ(timelines.size(), 1u);
  EXPECT_EQ(timelines[0].file, FileId{1});
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].code, "trace-left-out");
  EXPECT_EQ(diagnostics[0].source.file, FileId{0});
}

TEST(TimelineMerge, WithoutStepsNothingIsJoined) {
  std::vector<Timeline> timelines;
  timelines.push_back(TraceOf(3, 1000, 10, 0));
  timelines.push_back(TraceOf(3, 9000, 20, 1));
  timelines[1].steps.clear();
  std::vector<Diagnostic> diagnostics;
  JoinTracesOfOneRank(timelines, diagnostics);
  EXPECT_EQ(timelines.size(), 1u);
  EXPECT_EQ(diagnostics.at(0).code, "trace-left-out");
}

TEST(TimelineMerge, TracesOfDifferentAndOfUnknownRanksStayApart) {
  std::vector<Timeline> timelines;
  for (int32_t rank : {0, 1, -1, -1}) timelines.push_back(TraceOf(rank, 1000, 10, 0));
  std::vector<Diagnostic> diagnostics;
  JoinTracesOfOneRank(timelines, diagnostics);
  EXPECT_EQ(timelines.size(), 4u);
  EXPECT_TRUE(diagnostics.empty());
}

}  // namespace
}  // namespace tacet
