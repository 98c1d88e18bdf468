// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/late_finish.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

constexpr int64_t kFinishSecond = 1'000'000'000;
constexpr int64_t kFinishBegin = 1'700'000'000 * kFinishSecond;

CallStream StreamWith(int64_t enter_s, bool ended_by_abort, OpKind kind = OpKind::all_reduce, int64_t elements = 4) {
  Call call;
  call.group = GroupIndex{0};
  call.seq = 7;
  call.kind = kind;
  call.state = CallState::completed;
  call.in_elements = elements;
  call.timeout_ms = 10'000;
  call.enter_wall_ns = kFinishBegin + enter_s * kFinishSecond;
  if (ended_by_abort) call.flags = kEndedByAbort;
  CallStream stream;
  stream.calls.push_back(call);
  return stream;
}

bool IsForgiven(std::vector<CallStream> streams) {
  ForgiveLateFinishes(streams);
  return !streams.front().calls.front().has(kEndedByAbort);
}

TEST(LateFinish, IsForgivenWhenALateMemberEndedItWell) {
  EXPECT_TRUE(IsForgiven({StreamWith(0, true), StreamWith(12, false)}));
}

TEST(LateFinish, StaysWhenNobodyEndedItOtherwise) {
  EXPECT_FALSE(IsForgiven({StreamWith(0, true), StreamWith(12, true)}));
  EXPECT_FALSE(IsForgiven({StreamWith(0, true)}));
}

TEST(LateFinish, StaysWhenTheOtherWasInTime) {
  // Its peer came in time and went on: then lateness does not explain the long stay.
  EXPECT_FALSE(IsForgiven({StreamWith(0, true), StreamWith(1, false)}));
}

TEST(LateFinish, StaysWhenTheMembersDisagreeAboutTheOperation) {
  EXPECT_FALSE(IsForgiven({StreamWith(0, true), StreamWith(12, false, OpKind::all_gather)}));
  EXPECT_FALSE(IsForgiven({StreamWith(0, true), StreamWith(12, false, OpKind::all_reduce, 8)}));
}

TEST(LateFinish, StaysForABroadcastWhoseRootMayRunAhead) {
  EXPECT_FALSE(IsForgiven({StreamWith(0, true, OpKind::broadcast), StreamWith(12, false, OpKind::broadcast)}));
}

}  // namespace
}  // namespace tacet
