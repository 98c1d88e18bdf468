// SPDX-License-Identifier: Apache-2.0

#include "model/assembly/cut_logs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacet {
namespace {

constexpr FileId kLogFile{1}, kOutputFile{2};

// Streams of each rank: a flight record and an NCCL log with so many calls.
class TwoKinds {
 public:
  TwoKinds& Rank0(size_t recorded, size_t logged) { return Add(0, recorded, logged); }
  TwoKinds& Add(int32_t rank, size_t recorded, size_t logged) {
    AddStream(rank, CallSource::flight_recorder, recorded);
    AddStream(rank, CallSource::nccl_log, logged);
    std::sort(incident.streams.begin(), incident.streams.end(),
              [](const auto& a, const auto& b) { return std::pair(a.source, a.rank) < std::pair(b.source, b.rank); });
    return *this;
  }
  TwoKinds& Finish(int32_t rank, FileId file) {
    Event event;
    event.kind = EventKind::process_finished;
    event.rank = Rank{rank};
    event.source.file = file;
    incident.events.push_back(event);
    return *this;
  }
  bool LogIsCut(int32_t rank) {
    MarkCutLogs(incident);
    return incident.StreamOf(Rank{rank}, CallSource::nccl_log)->cut;
  }
  Incident incident;

 private:
  void AddStream(int32_t rank, CallSource source, size_t calls) {
    CallStream stream;
    stream.rank = Rank{rank};
    stream.source = source;
    stream.file = source == CallSource::nccl_log ? kLogFile : FileId{0};
    stream.calls.resize(calls);
    incident.streams.push_back(std::move(stream));
  }
};

TEST(CutLogs, ARecordThatGoesOnTellsThatTheLogWasCut) {
  EXPECT_TRUE(TwoKinds().Rank0(20, 12).LogIsCut(0));
  EXPECT_FALSE(TwoKinds().Rank0(20, 20).LogIsCut(0));
  EXPECT_FALSE(TwoKinds().Rank0(20, 31).LogIsCut(0));  // one all_to_all is many sends
}

TEST(CutLogs, TheLastCallBeforeAnAbortMayNotReachNccl) { EXPECT_FALSE(TwoKinds().Rank0(20, 19).LogIsCut(0)); }

TEST(CutLogs, TheEntriesThatCloseBatchesGiveNoLines) {
  TwoKinds job;
  job.Rank0(20, 10);
  for (size_t i = 0; i < 10; ++i) job.incident.streams.front().calls[2 * i + 1].flags = kCoalescedEnd;
  EXPECT_FALSE(job.LogIsCut(0));
}

TEST(CutLogs, ALogThatLostItsBeginningIsNotCompared) {
  TwoKinds job;
  job.Rank0(20, 12);
  job.incident.streams.back().from_start = false;
  EXPECT_FALSE(job.LogIsCut(0));
}

TEST(CutLogs, ARankWhoseOutputTellsItsEndHasDestroyedItsCommunicatorsAsItsPeersHave) {
  EXPECT_TRUE(TwoKinds().Add(0, 9, 9).Add(1, 9, 9).Finish(0, kLogFile).Finish(1, kOutputFile).LogIsCut(1));
  // No log tells of it: this job destroys none.
  EXPECT_FALSE(TwoKinds().Add(0, 9, 9).Add(1, 9, 9).Finish(0, kOutputFile).Finish(1, kOutputFile).LogIsCut(1));
  // It says nothing of its end: it may still be there.
  EXPECT_FALSE(TwoKinds().Add(0, 9, 9).Add(1, 9, 9).Finish(0, kLogFile).LogIsCut(1));
}

}  // namespace
}  // namespace tacet
