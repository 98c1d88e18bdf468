// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/program_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

using Kind = Divergence::Kind;
using Order = std::vector<SketchedCall>;

struct ComparedPrograms {
  explicit ComparedPrograms(JobSketch& job, CallSource source = CallSource::flight_recorder)
      : incident(job.Finish()), all(CompareProgramOrder(incident, source)) {}
  Incident incident;
  std::vector<Divergence> all;
};

void IssueOrder(JobSketch& job, int32_t rank, const Order& order) {
  for (const SketchedCall& call : order) job.Issue(rank, call);
}

// A step whose calls all look different, so that every shift shows at once.
Order Steps(int count, GroupIndex a, GroupIndex b) {
  Order order;
  for (int s = 0; s < count; ++s) {
    order.push_back({.kind = OpKind::all_gather, .group = a});
    order.push_back({.kind = OpKind::all_reduce, .group = b});
    order.push_back({.kind = OpKind::reduce_scatter, .group = a});
    order.push_back({.kind = OpKind::broadcast, .group = b, .peer = 0});
  }
  return order;
}

TEST(ProgramOrder, EqualOrdersDoNotDiverge) {
  JobSketch job(6);
  for (int32_t r = 0; r < 6; ++r) IssueOrder(job, r, Steps(20, kWorld, kWorld));
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

struct Deviation {
  const char* name;
  Kind kind;
};
class Deviations : public testing::TestWithParam<Deviation> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Deviations,
                         testing::Values(Deviation{"Skipped", Kind::skipped}, Deviation{"Extra", Kind::extra},
                                         Deviation{"Swapped", Kind::swapped}, Deviation{"Different", Kind::different}),
                         [](const auto& info) { return std::string(info.param.name); });

Order Deviate(Order order, Kind kind, size_t at) {
  switch (kind) {
    case Kind::skipped: order.erase(order.begin() + static_cast<ptrdiff_t>(at)); break;
    case Kind::extra: order.insert(order.begin() + static_cast<ptrdiff_t>(at), {.kind = OpKind::all_to_all}); break;
    case Kind::swapped: std::swap(order[at], order[at + 1]); break;
    case Kind::different: order[at].kind = OpKind::all_to_all; break;
  }
  return order;
}

TEST_P(Deviations, AreFoundAtRandomPlacesInRandomMixesOfRoles) {
  std::mt19937 random(99);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  for (int trial = 0; trial < 120; ++trial) {
    // Two to four roles of three to six ranks each. Roles are told apart by their first calls: another stage of a
    // pipeline has another neighbour and other groups.
    const int roles = 2 + pick(3), per_role = 3 + pick(4), world = roles * per_role;
    JobSketch job(world);
    std::vector<GroupIndex> groups;
    for (int role = 0; role < roles; ++role) {
      std::vector<int32_t> members;
      for (int i = 0; i < per_role; ++i) members.push_back(role * per_role + i);
      groups.push_back(job.AddGroup("stage " + std::to_string(role), members));
    }
    const int odd = pick(world), steps = 8 + pick(8);
    const auto at = static_cast<size_t>(10 + pick(4 * steps - 20));
    for (int32_t r = 0; r < world; ++r) {
      const GroupIndex group = groups[static_cast<size_t>(r / per_role)];
      const Order usual = Steps(steps, group, group);
      IssueOrder(job, r, r == odd ? Deviate(usual, GetParam().kind, at) : usual);
    }
    const ComparedPrograms compared(job);
    ASSERT_EQ(compared.all.size(), 1u) << "trial " << trial;
    const Divergence& found = compared.all[0];
    EXPECT_EQ(found.kind, GetParam().kind) << "trial " << trial << " at " << at;
    EXPECT_EQ(found.odd, Ranks({odd}));
    EXPECT_EQ(found.usual.size(), static_cast<size_t>(per_role - 1));
    EXPECT_EQ(found.shared_calls, at);
    EXPECT_EQ(found.odd_stream->rank, Rank{odd});
  }
}

TEST_P(Deviations, AreNotReportedBeforeAHistoryIsShared) {
  JobSketch job(4);
  const Order usual = Steps(10, kWorld, kWorld);
  for (int32_t r = 0; r < 4; ++r) IssueOrder(job, r, r == 2 ? Deviate(usual, GetParam().kind, 3) : usual);
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

TEST(ProgramOrder, RolesThatDifferFromTheBeginningAreNotBlamed) {
  JobSketch job(7);
  const Order a = Steps(12, kWorld, kWorld);
  Order b = a;
  std::reverse(b.begin(), b.end());
  for (int32_t r = 0; r < 6; ++r) IssueOrder(job, r, a);
  IssueOrder(job, 6, b);
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

TEST(ProgramOrder, ARoleThatNeverFindsBackIsARole) {
  // After a common beginning (loading the weights) the last stage does something else for good.
  JobSketch job(6);
  const GroupIndex side = job.AddGroup("side", {4, 5});
  const Order common = Steps(4, kWorld, kWorld);
  for (int32_t r = 0; r < 6; ++r) IssueOrder(job, r, common);
  for (int s = 0; s < 30; ++s) {
    for (int32_t r = 0; r < 4; ++r) IssueOrder(job, r, Steps(1, kWorld, kWorld));
    for (int32_t r = 4; r < 6; ++r) job.Issue(r, {.kind = OpKind::all_to_all, .group = side});
  }
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

TEST(ProgramOrder, HalfAgainstHalfIsNotAFault) {
  JobSketch job(6);
  const Order usual = Steps(12, kWorld, kWorld);
  for (int32_t r = 0; r < 6; ++r) IssueOrder(job, r, r < 3 ? usual : Deviate(usual, Kind::skipped, 20));
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

TEST(ProgramOrder, ARecordThatEndsEarlierDoesNotDiverge) {
  JobSketch job(5);
  for (int32_t r = 0; r < 5; ++r) IssueOrder(job, r, Steps(r == 1 ? 5 : 12, kWorld, kWorld));
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

TEST(ProgramOrder, RecordsThatLostTheirBeginningAreLinedUp) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    JobSketch job(5);
    const GroupIndex half = job.AddGroup("half", {0, 1, 2, 3, 4});
    const int odd = static_cast<int>(random() % 5);
    const auto at = 60 + random() % 20;
    const Order usual = Steps(30, kWorld, half);
    const bool fault = trial % 2 == 0;
    for (int32_t r = 0; r < 5; ++r) IssueOrder(job, r, fault && r == odd ? Deviate(usual, Kind::skipped, at) : usual);
    for (int32_t r = 0; r < 5; ++r) {
      CallStream& stream = job.StreamOf(r);
      stream.from_start = false;
      stream.calls.erase(stream.calls.begin(), stream.calls.begin() + static_cast<ptrdiff_t>(random() % 30));
    }
    const ComparedPrograms compared(job);
    if (!fault) {
      EXPECT_TRUE(compared.all.empty()) << "trial " << trial;
      continue;
    }
    ASSERT_EQ(compared.all.size(), 1u) << "trial " << trial;
    EXPECT_EQ(compared.all[0].odd, Ranks({odd})) << "trial " << trial;
    EXPECT_EQ(compared.all[0].kind, Kind::skipped);
  }
}

TEST(ProgramOrder, DumpsOfActiveCallsCannotBeComparedPrograms) {
  JobSketch job(5);
  const Order usual = Steps(12, kWorld, kWorld);
  for (int32_t r = 0; r < 5; ++r) {
    IssueOrder(job, r, r == 2 ? Deviate(usual, Kind::extra, 20) : usual);
    job.StreamOf(r).only_active = true;
  }
  EXPECT_TRUE(ComparedPrograms(job).all.empty());
}

TEST(ProgramOrder, NeighboursInAPipelineAreEqualInRole) {
  // Every middle stage receives from the left and sends to the right: the same role at another place. Rank 3 sends
  // twice.
  JobSketch job(8);
  for (int m = 0; m < 12; ++m) {
    for (int32_t r = 0; r < 8; ++r) {
      if (r > 0) job.Issue(r, {.kind = OpKind::recv, .peer = r - 1});
      if (r < 7) job.Issue(r, {.kind = OpKind::send, .peer = r + 1});
      if (r == 3 && m == 7) job.Issue(r, {.kind = OpKind::send, .peer = r + 1});
    }
  }
  const ComparedPrograms compared(job);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].odd, Ranks({3}));
  EXPECT_EQ(compared.all[0].kind, Kind::extra);
}

// What an all-to-all looks like in NCCL's log: everybody sends to and receives from everybody, each in an order of its
// own.
void Exchange(JobSketch& job, int32_t rank, int32_t world) {
  for (int32_t peer = 0; peer < world; ++peer) {
    job.Issue(rank, {.kind = OpKind::send, .peer = peer});
    job.Issue(rank, {.kind = OpKind::recv, .peer = peer});
  }
}

TEST(ProgramOrder, AnAllToAllIsOneStepWhereverTheRankStands) {
  for (const int32_t odd : {-1, 0, 2, 4}) {
    JobSketch job(5, {CallSource::nccl_log});
    for (int step = 0; step < 20; ++step) {
      for (int32_t r = 0; r < 5; ++r) {
        Exchange(job, r, 5);
        Exchange(job, r, 5);
        if (!(r == odd && step == 9)) job.Issue(r, {.kind = OpKind::all_reduce});
      }
    }
    const ComparedPrograms compared(job, CallSource::nccl_log);
    if (odd < 0) {
      EXPECT_TRUE(compared.all.empty());
      continue;
    }
    ASSERT_EQ(compared.all.size(), 1u) << odd;
    EXPECT_EQ(compared.all[0].odd, Ranks({odd}));
    EXPECT_EQ(compared.all[0].kind, Kind::skipped);
    EXPECT_EQ(compared.all[0].usual_call->kind, OpKind::all_reduce);
  }
}

TEST(ProgramOrder, AnExchangeWithBothNeighboursIsOneStepAroundTheRing) {
  JobSketch job(4, {CallSource::nccl_log});
  for (int step = 0; step < 12; ++step) {
    for (int32_t r = 0; r < 4; ++r) {
      for (int turn = 0; turn < 3; ++turn) {
        if (r == 2 && step == 8 && turn == 0) continue;
        job.Issue(r, {.kind = OpKind::send, .peer = (r + 1) % 4});
        job.Issue(r, {.kind = OpKind::recv, .peer = (r + 3) % 4});
      }
      job.Issue(r, {.kind = OpKind::all_reduce});
    }
  }
  const ComparedPrograms compared(job, CallSource::nccl_log);
  ASSERT_EQ(compared.all.size(), 1u);
  EXPECT_EQ(compared.all[0].odd, Ranks({2}));
  EXPECT_EQ(compared.all[0].kind, Kind::skipped);
}

// A box without room for an operation goes on behind it.
TEST(ProgramOrder, WhatComesBehindAHoleIsNotComparedPrograms) {
  JobSketch job(4, {CallSource::black_box});
  const GroupIndex pairs = job.AddGroup("pair", {0, 1, 2, 3});
  for (int i = 0; i < 40; ++i) {
    job.IssueAll();
    job.IssueAll({.group = pairs});
  }
  Incident incident = job.Finish();
  for (CallStream& stream : incident.streams)
    if (stream.rank == Rank{2}) stream.calls.erase(stream.calls.begin() + 31, stream.calls.begin() + 34);
  EXPECT_TRUE(CompareProgramOrder(incident, CallSource::black_box).empty());
  // The same with the numbers closed up is a rank that left calls out.
  for (CallStream& stream : incident.streams) {
    if (stream.rank != Rank{2}) continue;
    std::map<GroupIndex, uint32_t> next;
    for (Call& call : stream.calls) call.seq = ++next[call.group];
  }
  EXPECT_FALSE(CompareProgramOrder(incident, CallSource::black_box).empty());
}

TEST(ProgramOrder, ABatchWhoseClosingEntryIsLostIsNotComparedPrograms) {
  for (const bool cut : {true, false}) {
    JobSketch job(4);
    for (int i = 0; i < 20; ++i) job.IssueAll({.kind = OpKind::coalesced, .flags = kPointToPoint | kCoalescedEnd});
    job.Issue(1, {.kind = OpKind::send, .peer = 2});
    job.IssueOn({0, 2, 3}, {.kind = OpKind::coalesced, .flags = kPointToPoint | kCoalescedEnd});
    job.IssueOn({0, 2, 3}, {.kind = OpKind::coalesced, .flags = kPointToPoint | kCoalescedEnd});
    job.StreamOf(1).cut = cut;
    const Incident incident = job.Finish();
    EXPECT_EQ(CompareProgramOrder(incident, CallSource::flight_recorder).empty(), cut);
  }
}

// A batch of sends and receives, as PyTorch's pipelines write it: its members, then the entry that closes it.
void IssueBatch(JobSketch& job, int32_t rank, const std::vector<std::pair<OpKind, int32_t>>& halves) {
  for (const auto& [kind, peer] : halves)
    job.Issue(rank, {.kind = kind, .peer = peer, .flags = kPointToPoint | kCoalescedMember});
  job.Issue(rank, {.kind = OpKind::coalesced, .flags = kPointToPoint | kCoalescedEnd});
}

// One forward one backward: every stage warms up for as long as it is far from the end.
void RunSchedule(JobSketch& job, int32_t stages, int microbatches) {
  for (int32_t r = 0; r < stages; ++r) {
    const int warmup = std::min(microbatches, stages - r);
    const auto receive = [&](OpKind kind, int32_t peer) { return std::pair{kind, peer}; };
    for (int m = 0; m < warmup; ++m) {
      if (r > 0) IssueBatch(job, r, {receive(OpKind::recv, r - 1)});
      if (r + 1 < stages) IssueBatch(job, r, {receive(OpKind::send, r + 1)});
    }
    for (int m = warmup; m < microbatches; ++m) {
      if (r + 1 < stages) IssueBatch(job, r, {receive(OpKind::send, r + 1), receive(OpKind::recv, r + 1)});
      if (r > 0) IssueBatch(job, r, {receive(OpKind::send, r - 1), receive(OpKind::recv, r - 1)});
    }
    for (int m = 0; m < warmup; ++m) {
      if (r + 1 < stages) IssueBatch(job, r, {receive(OpKind::recv, r + 1)});
      if (r > 0) IssueBatch(job, r, {receive(OpKind::send, r - 1)});
    }
  }
}

TEST(ProgramOrder, StagesThatLeaveTheirWarmUpOneByOneAreNotOdd) {
  for (const int32_t stages : {3, 4, 8, 12}) {
    JobSketch job(stages);
    for (int step = 0; step < 6; ++step) {
      RunSchedule(job, stages, 2 * stages);
      job.IssueAll({.kind = OpKind::all_gather});
    }
    EXPECT_TRUE(ComparedPrograms(job).all.empty()) << stages;
  }
}

TEST(ProgramOrder, ABatchIsWhatIsInItInWhateverOrder) {
  // A ring: everyone sends to the next and receives from the one before; rank 2 puts the halves in the other way round.
  for (const bool skips : {false, true}) {
    JobSketch job(6);
    for (int turn = 0; turn < 20; ++turn) {
      for (int32_t r = 0; r < 6; ++r) {
        std::vector<std::pair<OpKind, int32_t>> halves{{OpKind::send, (r + 1) % 6}, {OpKind::recv, (r + 5) % 6}};
        if (r == 2) std::swap(halves[0], halves[1]);
        if (!(skips && r == 4 && turn == 12)) IssueBatch(job, r, halves);
        job.Issue(r, {.kind = turn % 4 == 3 ? OpKind::all_gather : OpKind::all_reduce});
      }
    }
    const ComparedPrograms compared(job);
    ASSERT_EQ(compared.all.size(), skips ? 1u : 0u);
    if (!skips) continue;
    EXPECT_EQ(compared.all[0].odd, Ranks({4}));
    EXPECT_EQ(compared.all[0].kind, Kind::skipped);
  }
}

TEST(ProgramOrder, ReplaysOfGraphsAreNoPartOfIt) {
  JobSketch job(4, {CallSource::black_box});
  const GroupIndex replays = job.AddGroup("graph replays of default_pg", {0, 1, 2, 3});
  job.GroupAt(replays).replays_of = 7;
  for (int step = 0; step < 20; ++step) {
    for (int32_t r = 0; r < 4; ++r) {
      if (r == 1) job.Issue(r, {.kind = OpKind::all_gather});  // its GPU is slower than its host
      job.Issue(r, {.group = replays});
      if (r != 1) job.Issue(r, {.kind = OpKind::all_gather});
    }
  }
  EXPECT_TRUE(ComparedPrograms(job, CallSource::black_box).all.empty());
}

}  // namespace
}  // namespace tacet
