// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/overdue.h"

#include <gtest/gtest.h>

#include "analysis/process/standstill.h"
#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

// Boxes of four ranks; `rounds` collectives end, then rank 1 stays away from the next for `wait_ns`.
Incident LongWait(int rounds, int64_t wait_ns, int64_t pause_ns = 0) {
  JobSketch job(4, {CallSource::black_box});
  for (int i = 0; i < rounds; ++i) {
    const bool slow = i == rounds / 2;
    const int64_t began = job.now_ns;
    job.IssueAll();
    job.Wait(slow ? pause_ns : 0);
    for (int32_t rank = 0; rank < 4; ++rank) {
      Call& call = job.LastCall(rank, CallSource::black_box);
      call.enter_wall_ns = call.start_wall_ns = began;
      call.finish_wall_ns = job.now_ns;
    }
  }
  job.IssueOn({0, 2, 3}, {.state = CallState::started});
  job.Wait(wait_ns);
  const int64_t end = job.now_ns;
  job.Wait(60 * kSecondNs);
  Incident incident = job.Finish();
  for (CallStream& stream : incident.streams) stream.captured_wall_ns = end;
  return incident;
}

std::vector<std::pair<int32_t, StandstillKind>> NamedIn(const Incident& incident) {
  std::vector<std::pair<int32_t, StandstillKind>> named;
  const Analyses analyses = Analyse(incident);
  for (const Standstill& still : FindStandstills(incident, analyses).ranks)
    named.emplace_back(still.rank.value, still.kind);
  return named;
}

using Names = std::vector<std::pair<int32_t, StandstillKind>>;

TEST(Overdue, AWaitFarLongerThanAnyBeforeIsOverdue) {
  const Incident incident = LongWait(40, 5 * kSecondNs);
  EXPECT_TRUE(IsOverdue(incident));
  EXPECT_FALSE(Analyse(incident).outcome.hangs());
  EXPECT_EQ(NamedIn(incident), (Names{{1, StandstillKind::host}}));
}

TEST(Overdue, AShortWaitIsNot) { EXPECT_FALSE(IsOverdue(LongWait(40, 2 * kSecondNs))); }

TEST(Overdue, AWaitLikeOneBeforeIsNot) {
  EXPECT_FALSE(IsOverdue(LongWait(40, 5 * kSecondNs, 2 * kSecondNs)));
  EXPECT_TRUE(IsOverdue(LongWait(40, 5 * kSecondNs, kSecondNs / 2)));
}

TEST(Overdue, AFewOperationsDoNotTellWhatIsNormal) { EXPECT_FALSE(IsOverdue(LongWait(10, 5 * kSecondNs))); }

TEST(Overdue, WithNothingOpenNothingIs) {
  Incident incident = LongWait(40, 5 * kSecondNs);
  for (CallStream& stream : incident.streams)
    std::erase_if(stream.calls, [](const Call& call) { return call.state != CallState::completed; });
  EXPECT_FALSE(IsOverdue(incident));
}

TEST(Overdue, TheFirstOperationOfAllHasMoreTime) {
  EXPECT_FALSE(Analyse(LongWait(0, 30 * kSecondNs)).outcome.hangs());
  EXPECT_TRUE(Analyse(LongWait(0, 90 * kSecondNs)).outcome.hangs());
  EXPECT_TRUE(Analyse(LongWait(1, 30 * kSecondNs)).outcome.hangs());
}

TEST(Overdue, AShapeIsKnownOnceOneOfItEnded) {
  const Incident incident = LongWait(2, 30 * kSecondNs);
  const CallStream& stream = *incident.StreamOf({0}, CallSource::black_box);
  Call call = stream.calls.back();
  EXPECT_FALSE(IsFirstOfItsShape(stream, call));
  call.in_elements *= 2;
  EXPECT_TRUE(IsFirstOfItsShape(stream, call));
  EXPECT_TRUE(IsFirstOfItsShape(*LongWait(0, 30 * kSecondNs).StreamOf({0}, CallSource::black_box), call));
}

// Ranks 1 and 2 are inside ncclGroupEnd, the others' GPUs have begun.
Incident Inside(int rounds) {
  JobSketch job(4, {CallSource::black_box});
  job.Rounds(rounds);
  job.IssueOn({0, 3}, {.state = CallState::started});
  job.IssueOn({1, 2}, {.state = CallState::enqueued});
  job.Wait(90 * kSecondNs);
  Incident incident = job.Finish();
  for (const int32_t rank : {1, 2}) {
    InFlight flight;
    flight.rank = {rank};
    const CallStream* stream = incident.StreamOf({rank}, CallSource::black_box);
    flight.stream = static_cast<uint32_t>(stream - incident.streams.data());
    flight.call = static_cast<uint32_t>(stream->calls.size() - 1);
    flight.group = stream->calls.back().group;
    flight.seq = stream->calls.back().seq;
    flight.kind = OpKind::all_reduce;
    flight.host = HostStage::in_group_end;
    incident.in_flight.push_back(flight);
  }
  return incident;
}

TEST(Overdue, WhoMayStillMakeConnectionsIsNotNamed) {
  const Incident incident = Inside(0);
  const Analyses analyses = Analyse(incident);
  const StandstillView view = FindStandstills(incident, analyses);
  EXPECT_TRUE(view.ranks.empty());
  EXPECT_EQ(view.connecting, Ranks({1, 2}));
}

TEST(Overdue, WhoStaysInsideAnOperationThatRanBeforeIsStuckThere) {
  EXPECT_EQ(NamedIn(Inside(3)), (Names{{1, StandstillKind::host}, {2, StandstillKind::host}}));
}

// Two groups of four train side by side. Rank 6 stays away from the next operation of its group for five seconds; the
// other group's newest operation, which ranks 0 and 1 have not issued yet, is `age_ns` old.
Incident TwoGroups(int64_t age_ns) {
  JobSketch job(8, {CallSource::black_box});
  const GroupIndex first = job.AddGroup("first", {0, 1, 2, 3}), second = job.AddGroup("second", {4, 5, 6, 7});
  for (int i = 0; i < 40; ++i) {
    job.IssueAll({.group = first});
    job.IssueAll({.group = second});
  }
  job.IssueOn({4, 5, 7}, {.group = second, .state = CallState::started});
  job.Wait(5 * kSecondNs - age_ns);
  job.IssueOn({2, 3}, {.group = first, .state = CallState::started});
  job.Wait(age_ns);
  const int64_t end = job.now_ns;
  Incident incident = job.Finish();
  for (CallStream& stream : incident.streams) stream.captured_wall_ns = end;
  return incident;
}

TEST(Overdue, AGroupThatStillMovesHasNoPartInTheHangOfAnother) {
  const Incident incident = TwoGroups(20 * kMillisecondNs);
  EXPECT_EQ(NamedIn(incident), (Names{{6, StandstillKind::host}}));
  const Analyses analyses = Analyse(incident);
  EXPECT_EQ(FindStandstills(incident, analyses).waiters, Ranks({4, 5, 7}));
}

TEST(Overdue, TwoGroupsThatStandForAsLongAreBothTold) {
  const Incident incident = TwoGroups(4 * kSecondNs);
  EXPECT_EQ(NamedIn(incident),
            (Names{{0, StandstillKind::host}, {1, StandstillKind::host}, {6, StandstillKind::host}}));
}

}  // namespace
}  // namespace tacet
