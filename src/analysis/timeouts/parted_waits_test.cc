// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/parted_waits.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

struct Wait {
  int32_t rank = -1;  // -1: a traceback without a name
  OpKind op = OpKind::unknown;
  bool lost = false, backward = false;
};

// How many ranks wait in each operation; 0: nobody knows whose tracebacks these are.
std::vector<size_t> Sizes(const std::vector<Wait>& waits, int32_t ranks = 3) {
  JobSketch job(ranks, {});
  for (const Wait& wait : waits) {
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

constexpr OpKind kBarrier = OpKind::barrier, kReduce = OpKind::all_reduce;

TEST(PartedWaits, RanksWaitInTwoOperations) {
  EXPECT_EQ(Sizes({{0, kBarrier}, {1, {}, false, true}, {2, {}, false, true}}), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(Sizes({{0, kBarrier}, {1, kReduce, true}, {2, kReduce}}), (std::vector<size_t>{2, 1}))
      << "the first to give up leaves, and the others lose it where they wait";
  EXPECT_EQ(Sizes({{0, OpKind::send}, {1, kReduce}, {2, kReduce}}), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(Sizes({{0, OpKind::send}, {1, OpKind::send}}, 2), std::vector<size_t>{2}) << "each sends first";
  EXPECT_EQ(Sizes({{-1, kBarrier}, {-1, kReduce}}), (std::vector<size_t>{0, 0}));
}

TEST(PartedWaits, WaitsThatTellNoDifference) {
  EXPECT_TRUE(Sizes({{0, kReduce}, {1, kReduce}, {2, kReduce}}).empty()) << "all in one";
  EXPECT_TRUE(Sizes({{0, kBarrier}, {1, kReduce}}).empty()) << "where the third one is nobody knows";
  EXPECT_TRUE(Sizes({{0, kBarrier}, {1, {}}, {2, {}}}).empty()) << "the tracebacks do not show the operation";
  EXPECT_TRUE(Sizes({{0, kBarrier, true}, {1, kReduce, true}, {2, kReduce, true}}).empty()) << "nobody waited long";
}

}  // namespace
}  // namespace tacet
