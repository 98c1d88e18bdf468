// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/process_state.h"

#include <gtest/gtest.h>

#include "analysis/process/standstill.h"

namespace tacet {
namespace {

using enum Strength;

TEST(ProcessState, TheStrongestClaimHolds) {
  std::vector<Claim> claims;
  Say(claims, HostPlace::in_kernel, strong, "the kernel");
  Say(claims, HostPlace::own_code, proof, "its stack");
  const ProcessState state = JoinClaims(claims);
  EXPECT_EQ(state.host.value, HostPlace::own_code);
  EXPECT_EQ(state.host.by, 1u);
  EXPECT_EQ(state.process.value, Liveness::unknown);
  EXPECT_EQ(state.gpu.value, GpuPlace::unknown);
}

TEST(ProcessState, OfPlacesAsStrongTheFirstHolds) {
  std::vector<Claim> claims;
  Say(claims, HostPlace::own_code, strong, "its stack");
  Say(claims, HostPlace::in_kernel, strong, "the kernel");
  EXPECT_EQ(JoinClaims(claims).host.value, HostPlace::own_code);
}

TEST(ProcessState, WhoRanMayBeGoneSince) {
  for (const bool gone_first : {false, true}) {
    std::vector<Claim> claims;
    if (gone_first) Say(claims, Liveness::gone, strong, "a connection closed");
    Say(claims, Liveness::running, strong, "its stack was captured");
    if (!gone_first) Say(claims, Liveness::gone, strong, "a connection closed");
    EXPECT_EQ(JoinClaims(claims).process.value, Liveness::gone) << gone_first;
  }
  std::vector<Claim> claims;
  Say(claims, Liveness::gone, weak, "no file mentions it");
  Say(claims, Liveness::running, strong, "its stack was captured");
  EXPECT_EQ(JoinClaims(claims).process.value, Liveness::running);
}

TEST(ProcessState, AClaimThatIsDeniedAsStronglyIsDisputed) {
  std::vector<Claim> claims;
  Say(claims, Liveness::running, strong, "its stack was captured");
  Say(claims, Liveness::running, strong, "its heartbeat stopped").holds = false;
  const ProcessState denied = JoinClaims(claims);
  EXPECT_EQ(denied.process.value, Liveness::unknown);
  EXPECT_TRUE(denied.process.disputed);
  Say(claims, Liveness::running, proof, "it printed");
  const ProcessState proven = JoinClaims(claims);
  EXPECT_EQ(proven.process.value, Liveness::running);
  EXPECT_FALSE(proven.process.disputed);
}

TEST(ProcessState, WhoCannotSayDecidesNothing) {
  std::vector<Claim> claims;
  Say(claims, Liveness::unknown, weak, "it exited cleanly");
  EXPECT_FALSE(claims[0].knows());
  EXPECT_EQ(JoinClaims(claims).process.by, SIZE_MAX);
}

// A host that issued the operation is not what the others wait for; one that did not is, whatever its GPU does.
TEST(ProcessState, WhatTheOthersWaitForDecidesWhichPartExplains) {
  WaitRoot issued, missing;
  issued.kind = RootKind::gpu_not_started;
  missing.kind = RootKind::not_entered;
  for (const auto& [root, kind] :
       {std::pair{&issued, StandstillKind::gpu}, std::pair{&missing, StandstillKind::host}}) {
    Standstill still{.rank = Rank{3}, .root = root};
    Say(still.claims, HostPlace::own_code, proof, "its stack");
    Say(still.claims, GpuPlace::before, strong, "its GPU has not started it");
    Settle(still);
    EXPECT_EQ(still.kind, kind);
    Say(still.claims, Liveness::gone, strong, "a connection closed");
    Settle(still);
    EXPECT_EQ(still.kind, StandstillKind::dead) << "neither matters in a process that is gone";
  }
}

}  // namespace
}  // namespace tacet
