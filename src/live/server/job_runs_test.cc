// SPDX-License-Identifier: Apache-2.0
#include "live/server/job_runs.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

BoxState Box(int32_t rank, std::vector<uint64_t> comms, bool lives = true) {
  BoxState box;
  box.rank = rank;
  box.sight = lives ? ProcessSight::running : ProcessSight::gone;
  for (const uint64_t id : comms) box.comms.push_back({.id = id});
  return box;
}

std::vector<size_t> RunAmong(const std::vector<BoxState>& boxes, uint64_t comm = 0) {
  std::vector<const BoxState*> all;
  for (const BoxState& box : boxes) all.push_back(&box);
  return FindRun(all, comm);
}

using Indices = std::vector<size_t>;

TEST(JobRuns, AnEarlierAttemptIsLeftOut) {
  EXPECT_EQ(RunAmong({Box(0, {7}, false), Box(1, {7}, false), Box(0, {8}), Box(1, {8})}), (Indices{2, 3}));
}

TEST(JobRuns, OfTwoAtTheSameTimeTheOneThatIsMeant) {
  const std::vector<BoxState> boxes = {Box(0, {7}), Box(0, {8}), Box(1, {7}), Box(1, {8}), Box(2, {7})};
  EXPECT_EQ(RunAmong(boxes, 8), (Indices{1, 3}));
  EXPECT_EQ(RunAmong(boxes, 7), (Indices{0, 2, 4}));
  EXPECT_EQ(RunAmong(boxes), (Indices{0, 2, 4})) << "the larger one";
}

TEST(JobRuns, GroupsThatNeverMeetAreStillOneJob) {
  EXPECT_EQ(RunAmong({Box(0, {7}), Box(1, {7}), Box(2, {8}), Box(3, {8})}, 8), (Indices{0, 1, 2, 3}));
}

TEST(JobRuns, RanksAreTiedThroughOthers) {
  // 0-1 and 2-3 are tensor groups, 0-2 and 1-3 data groups; a dead member belongs to its run.
  EXPECT_EQ(RunAmong({Box(0, {1, 3}), Box(1, {1, 4}), Box(2, {2, 3}, false), Box(3, {2, 4}), Box(3, {9})}, 1),
            (Indices{0, 1, 2, 3}));
}

TEST(JobRuns, UnknownIdsAndRanksTieNobody) {
  EXPECT_EQ(RunAmong({Box(0, {0}), Box(1, {0}), Box(-1, {}), Box(-1, {})}), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(RunAmong({}), Indices{});
}

}  // namespace
}  // namespace tacet
