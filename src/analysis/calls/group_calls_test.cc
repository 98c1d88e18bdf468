// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/group_calls.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

const GroupCalls& Of(const std::vector<GroupCalls>& all, GroupIndex group) {
  static const GroupCalls kNone;
  for (const GroupCalls& one : all)
    if (one.group == group) return one;
  return kNone;
}

std::vector<GroupCalls> Collect(const Incident& incident, CallSource source = CallSource::flight_recorder) {
  return CollectGroupCalls(incident, source);
}

TEST(GroupCalls, CountsWhatEachMemberIssuedStartedAndFinished) {
  JobSketch job(3);
  job.Rounds(5);
  job.Issue(0, kStarted);
  job.Issue(0, {.state = CallState::enqueued});
  job.Issue(1, {.state = CallState::enqueued});
  const Incident incident = job.Finish();
  const auto groups = Collect(incident);
  ASSERT_EQ(groups.size(), 1u);
  const auto& members = groups[0].members;
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0].last_enqueued, 7);
  EXPECT_EQ(members[0].last_started, 6);
  EXPECT_EQ(members[0].finished_through, 5);
  EXPECT_EQ(members[1].last_enqueued, 6);
  EXPECT_EQ(members[1].last_started, 5);
  EXPECT_EQ(members[2].last_enqueued, 5);
  EXPECT_EQ(groups[0].HighestEnqueued(), 7);
}

TEST(GroupCalls, FindsACallByItsNumber) {
  JobSketch job(2);
  job.Rounds(9);
  const Incident incident = job.Finish();
  const auto groups = Collect(incident);
  const MemberCalls& member = groups[0].members[1];
  for (uint32_t seq = 1; seq <= 9; ++seq) {
    ASSERT_NE(member.Find(seq), nullptr);
    EXPECT_EQ(member.Find(seq)->seq, seq);
  }
  EXPECT_EQ(member.Find(0), nullptr);
  EXPECT_EQ(member.Find(10), nullptr);
  EXPECT_EQ(MemberCalls{}.Find(1), nullptr);
}

TEST(GroupCalls, WhatTheRingOverwroteWasFinished) {
  JobSketch job(2);
  job.Rounds(40);
  job.Issue(0, kStarted);
  for (int r = 0; r < 2; ++r) {
    CallStream& stream = job.StreamOf(r);
    stream.from_start = false;
    stream.calls.erase(stream.calls.begin(), stream.calls.begin() + (r == 0 ? 40 : 20));
  }
  const Incident incident = job.Finish();
  const auto members = Collect(incident)[0].members;
  EXPECT_EQ(members[0].finished_through, 40);
  EXPECT_EQ(members[0].last_enqueued, 41);
  EXPECT_EQ(members[1].finished_through, 40);
}

TEST(GroupCalls, GapsInTheNumbersAreNoUnfinishedCalls) {
  // Captured graphs count operations without recording them.
  JobSketch job(2);
  job.Rounds(3);
  job.IssueAll({.seq = 20});
  job.IssueAll();
  const Incident incident = job.Finish();
  const auto members = Collect(incident)[0].members;
  EXPECT_EQ(members[0].finished_through, 21);
  EXPECT_EQ(members[0].Find(10), nullptr);
}

TEST(GroupCalls, TheEntryThatClosesACoalescedGroupCarriesItsState) {
  JobSketch job(2);
  job.Rounds(2);
  for (int i = 0; i < 3; ++i)
    job.IssueAll({.kind = OpKind::all_gather, .state = CallState::enqueued, .flags = kCoalescedMember});
  job.IssueAll({.kind = OpKind::coalesced, .flags = kCoalescedEnd});
  job.IssueAll();
  const Incident incident = job.Finish();
  const auto groups = Collect(incident);
  const MemberCalls& member = groups[0].members[0];
  ASSERT_EQ(member.calls.size(), 4u);
  EXPECT_EQ(member.Find(3)->kind, OpKind::coalesced);
  EXPECT_EQ(member.finished_through, 4);
}

TEST(GroupCalls, ACallThatOnlyTheAbortEndedIsNotFinished) {
  JobSketch job(2);
  job.Rounds(4);
  job.IssueAll({.flags = kEndedByAbort});
  const Incident incident = job.Finish();
  EXPECT_EQ(Collect(incident)[0].members[0].finished_through, 4);
  EXPECT_FALSE(IsFinished(incident.streams[0].calls.back()));
  EXPECT_TRUE(IsFinished(incident.streams[0].calls.front()));
}

TEST(GroupCalls, SendsAndReceivesAreNotCountedAmongCollectives) {
  JobSketch job(2);
  job.Rounds(2);
  for (int i = 0; i < 5; ++i) {
    job.Issue(0, {.kind = OpKind::send, .peer = 1});
    job.Issue(1, {.kind = OpKind::recv, .peer = 0});
  }
  const Incident incident = job.Finish();
  EXPECT_EQ(Collect(incident)[0].members[0].last_enqueued, 2);
}

void SayProgress(JobSketch& job, int32_t rank, int64_t enqueued, int64_t completed) {
  job.StreamOf(rank).progress.push_back({kWorld, enqueued, -1, completed});
}

TEST(GroupCalls, TheRecordersOwnCountersReachBeyondWhatTheRingKept) {
  JobSketch job(2);
  job.Rounds(6);
  SayProgress(job, 1, 9, 6);
  const Incident incident = job.Finish();
  EXPECT_EQ(Collect(incident)[0].members[1].last_enqueued, 9);
}

TEST(GroupCalls, TheRecordersCountersLieWhereAGroupDoesBoth) {
  // The counter alternates between collectives and point-to-point calls: 57 is the number of a send.
  JobSketch job(2);
  job.Rounds(6);
  job.Issue(0, {.kind = OpKind::send, .peer = 1, .seq = 57});
  job.Issue(1, {.kind = OpKind::recv, .peer = 0, .seq = 57});
  SayProgress(job, 0, 57, 57);
  SayProgress(job, 1, 57, 57);
  const Incident incident = job.Finish();
  EXPECT_EQ(Collect(incident)[0].members[0].last_enqueued, 6);
  EXPECT_EQ(Collect(incident)[0].members[1].finished_through, 6);
}

TEST(GroupCalls, InADumpOfActiveCallsTheMissingOnesAreFinished) {
  JobSketch job(2);
  job.Rounds(6);
  job.Issue(0, kStarted);
  for (int r = 0; r < 2; ++r) {
    CallStream& stream = job.StreamOf(r);
    stream.only_active = true;
    std::erase_if(stream.calls, [](const Call& call) { return call.state == CallState::completed; });
  }
  SayProgress(job, 0, 7, 6);
  SayProgress(job, 1, 6, 6);
  const Incident incident = job.Finish();
  const auto groups = Collect(incident);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].members[0].finished_through, 6);
  EXPECT_EQ(groups[0].members[0].last_enqueued, 7);
  EXPECT_EQ(groups[0].members[1].finished_through, 6);
  EXPECT_EQ(groups[0].members[1].last_enqueued, 6);
}

TEST(GroupCalls, ADumpOfActiveCallsMayHaveGaps) {
  JobSketch job(2);
  job.Rounds(1);
  job.Issue(0, {.state = CallState::started, .seq = 5});
  job.Issue(0, {.state = CallState::enqueued, .seq = 8});
  job.StreamOf(0).only_active = true;
  const Incident incident = job.Finish();
  EXPECT_EQ(Collect(incident)[0].members[0].finished_through, 4);
}

TEST(GroupCalls, AStubSaysNothing) {
  JobSketch job(3);
  job.Rounds(4);
  job.StreamOf(1).calls.clear();
  job.StreamOf(1).stub = true;
  const Incident incident = job.Finish();
  EXPECT_EQ(Collect(incident)[0].members[1].stream, nullptr);
}

TEST(GroupCalls, ARankThatRecordedOtherGroupsHasSimplyNotComeHere) {
  JobSketch job(4);
  const GroupIndex pair = job.AddGroup("tp", {0, 1});
  job.Rounds(2);
  job.Issue(0, {.group = pair, .state = CallState::started});
  const Incident incident = job.Finish();
  const auto all = Collect(incident);
  const GroupCalls& group = Of(all, pair);
  ASSERT_EQ(group.members.size(), 2u);
  EXPECT_NE(group.members[1].stream, nullptr);
  EXPECT_EQ(group.members[1].last_enqueued, -1);
}

TEST(GroupCalls, ALogThatLostItsBeginningHasNoNumbers) {
  JobSketch job(2, {CallSource::nccl_log});
  job.Rounds(4);
  job.StreamOf(1, CallSource::nccl_log).from_start = false;
  const Incident incident = job.Finish();
  const auto groups = Collect(incident, CallSource::nccl_log);
  EXPECT_NE(groups[0].members[0].stream, nullptr);
  EXPECT_EQ(groups[0].members[1].stream, nullptr);
  EXPECT_EQ(groups[0].members[0].finished_through, -1) << "a log records no end";
}

TEST(GroupCalls, ARankThatIsNotAmongTheKnownMembersIsAdded) {
  JobSketch job(4);
  job.Rounds(2);
  job.GroupAt(kWorld).members = Ranks({0, 1});
  const Incident incident = job.Finish();
  const auto groups = Collect(incident);
  ASSERT_EQ(groups[0].members.size(), 4u);
  for (const MemberCalls& member : groups[0].members) EXPECT_EQ(member.last_enqueued, 2);
}

TEST(GroupCalls, CallsOfSeveralThreadsAreSortedByNumber) {
  JobSketch job(1);
  for (const int seq : {1, 3, 2, 5, 4}) job.Issue(0, {.seq = seq});
  const Incident incident = job.Finish();
  const auto groups = Collect(incident);
  const MemberCalls& member = groups[0].members[0];
  ASSERT_EQ(member.calls.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(member.At(i).seq, i + 1);
  EXPECT_EQ(member.finished_through, 5);
}

}  // namespace
}  // namespace tacet
