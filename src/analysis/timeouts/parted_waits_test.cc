// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/parted_waits.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

struct WaitOfOne {
  int32_t rank = -1;  // -1: a traceback without a name
  OpKind op = OpKind::unknown;
  bool lost = false, backward = false;
};

// How many ranks wait in each operation; 0: nobody knows whose tracebacks these are.
std::vector<size_t> Sizes(const std::vector<WaitOfOne>& waits, int32_t ranks = 3) {
  JobSketch job(ranks, {});
  for (const WaitOfOne& wait : waits) {
    Event& raised = wait.rank < 0 ? job.Tell(EventKind::exception) : job.Say(wait.rank, EventKind::exception);
    raised.Make<Raised>().type = "RuntimeError";
    if (wait.backward) raised.Make<Raised>().during = Activity::backward;
    raised.op = wait.op;
    raised.Set(Meaning::consequence);
    raised.Set(wait.lost ? Meaning::gloo_loss : Meaning::gloo_timeout);
  }
  const Incident incident = job.Finish();
  std::vector<size_t> sizes;
  for (const PartedWait& one : FindPartedWaits(ReadSignsOfLife(incident), ReadNamelessWaits(incident)))
    sizes.push_back(one.ranks.size());
  return sizes;
}

constexpr OpKind kPartedBarrier = OpKind::barrier, kReduce = OpKind::all_reduce;

TEST(PartedWaits, RanksWaitInTwoOperations) {
  EXPECT_EQ(Sizes({{0, kPartedBarrier}, {1, {}, false, true}, {2, {}, false, true}}), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(Sizes({{0, kPartedBarrier}, {1, kReduce, true}, {2, kReduce}}), (std::vector<size_t>{2, 1}))
      << "the first to give up leaves, and the others lose it where they wait";
  EXPECT_EQ(Sizes({{0, OpKind::send}, {1, kReduce}, {2, kReduce}}), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(Sizes({{0, OpKind::send}, {1, OpKind::send}}, 2), std::vector<size_t>{2}) << "each sends first";
  EXPECT_EQ(Sizes({{-1, kPartedBarrier}, {-1, kReduce}}), (std::vector<size_t>{0, 0}));
}

TEST(PartedWaits, WaitsThatTellNoDifference) {
  EXPECT_TRUE(Sizes({{0, kReduce}, {1, kReduce}, {2, kReduce}}).empty()) << "all in one";
  EXPECT_TRUE(Sizes({{0, kPartedBarrier}, {1, kReduce}}).empty()) << "where the third one is nobody knows";
  EXPECT_TRUE(Sizes({{0, kPartedBarrier}, {1, {}}, {2, {}}}).empty()) << "the tracebacks do not show the operation";
  EXPECT_TRUE(Sizes({{0, kPartedBarrier, true}, {1, kReduce, true}, {2, kReduce, true}}).empty())
      << "nobody waited long";
}

// Gloo's check ended rank 2 of four.
struct PartedCheck {
  int64_t expected = 4, received = 1844;
  bool backward = true;        // the peers were in the backward pass, or else in an all_reduce
  int32_t raised_before = -1;  // this rank had raised an error of its own, and had continued
  int32_t peers = 3;
  OpKind of_last = OpKind::unknown;  // where the last peer was, if elsewhere
  bool thread = false;               // the error before was one of a thread
};

CheckedStranger FindStranger(const PartedCheck& checked, Incident& incident) {
  JobSketch job(4, {});
  if (checked.raised_before >= 0) {
    Event& raised = job.Say(checked.raised_before, EventKind::exception);
    raised.Make<Raised>().type = "KeyError";
    raised.Make<Raised>().in_thread = checked.thread;
    job.Wait(kSecondNs);
  }
  Event& report = job.Say(2, EventKind::mismatch_report);
  report.Make<MismatchReport>() = {
      .aspect = "shape", .elements = checked.expected, .expected = checked.received, .by_gloo = true};
  const std::vector<int32_t> ranks = {0, 1, 3};
  for (int32_t i = 0; i < checked.peers; ++i) {
    Event& lost = job.Say(ranks[static_cast<size_t>(i)], EventKind::exception);
    lost.Make<Raised>().type = "RuntimeError";
    lost.Make<Raised>().place = {"step", "train.py", 40};
    const bool elsewhere = i + 1 == checked.peers && checked.of_last != OpKind::unknown;
    if (checked.backward && !elsewhere) lost.Make<Raised>().during = Activity::backward;
    if (elsewhere || !checked.backward) lost.op = elsewhere ? checked.of_last : kReduce;
    lost.Set(Meaning::consequence);
    lost.Set(Meaning::gloo_loss);
  }
  incident = job.Finish();
  const SignsOfLife life = ReadSignsOfLife(incident);
  return FindCheckedStranger(incident, life, ReadNamelessWaits(incident));
}

Rank Stranger(const PartedCheck& checked) {
  Incident incident;
  return FindStranger(checked, incident).odd;
}

TEST(CheckedStranger, PeersInTheBackwardPassTellWhoWasElsewhere) {
  EXPECT_EQ(Stranger({}), Rank{2});
  EXPECT_EQ(Stranger({.expected = 2048, .received = 4096}), Rank{2}) << "sizes of a model are those of all";
  EXPECT_EQ(Stranger({.peers = 2}), Rank{2}) << "one traceback was lost among others";
  EXPECT_FALSE(Stranger({.peers = 1}).known());
  EXPECT_FALSE(Stranger({.of_last = kPartedBarrier}).known()) << "one of the peers may be the odd one";
}

TEST(CheckedStranger, PeersInOneCallTellItWhereNextToNothingWasExpected) {
  EXPECT_EQ(Stranger({.backward = false}), Rank{2});
  EXPECT_FALSE(Stranger({.expected = 2048, .received = 4096, .backward = false}).known()) << "its peer may be wrong";
  EXPECT_FALSE(Stranger({.expected = 4, .received = 8, .backward = false}).known());
  EXPECT_FALSE(Stranger({.backward = false, .of_last = kPartedBarrier}).known());
}

TEST(CheckedStranger, WhoContinuedAfterAnErrorOfItsOwnWasElsewhere) {
  Incident incident;
  const CheckedStranger found = FindStranger({.raised_before = 1, .of_last = kReduce}, incident);
  EXPECT_EQ(found.odd, Rank{1});
  EXPECT_EQ(found.stopped, Rank{2});
  ASSERT_TRUE(found.raised);
  EXPECT_EQ(found.raised->As<Raised>().type, "KeyError");
  EXPECT_EQ(Stranger({.raised_before = 2}), Rank{2}) << "the one that the check ended";
  EXPECT_FALSE(Stranger({.raised_before = 3, .peers = 2}).known()) << "nothing shows that it continued";
  EXPECT_FALSE(Stranger({.raised_before = 1, .thread = true}).known());
}

}  // namespace
}  // namespace tacet
