// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_remedy.h"

#include <gtest/gtest.h>

#include "evidence/told/told_words.h"

namespace tacet {
namespace {

TEST(ToldRemedy, ASettingThatHelpsPointsToWhatItLeavesOut) {
  struct Told {
    const char* line;
    const char* setting;
    RemedyOf of;
  };
  for (const Told& one : {
           Told{"With NCCL_P2P_DISABLE=1 it works, only slower.", "NCCL_P2P_DISABLE=1", RemedyOf::peer_access},
           Told{"The test hangs without NCCL_P2P_DISABLE=1 on this box", "NCCL_P2P_DISABLE=1", RemedyOf::peer_access},
           Told{"Setting `NCCL_P2P_DISABLE` to `1` did workaround but it is slow", "NCCL_P2P_DISABLE=1",
                RemedyOf::peer_access},
           Told{"If I set NCCL_IB_DISABLE=1 the job runs fine.", "NCCL_IB_DISABLE=1", RemedyOf::infiniband},
           Told{"the hang goes away with NCCL_NET_GDR_LEVEL=LOC", "NCCL_NET_GDR_LEVEL=LOC", RemedyOf::gpu_direct},
           Told{"NCCL_SHM_DISABLE=1 solved it for us", "NCCL_SHM_DISABLE=1", RemedyOf::shared_memory},
           Told{"After setting NCCL_SOCKET_IFNAME=ens5 on both hosts it worked.", "NCCL_SOCKET_IFNAME=ens5",
                RemedyOf::interface},
           Told{"NCCL_IB_DISABLE=1 fixes the hang on both nodes", "NCCL_IB_DISABLE=1", RemedyOf::infiniband},
           Told{"It does not hang with NCCL_P2P_DISABLE=1.", "NCCL_P2P_DISABLE=1", RemedyOf::peer_access},
           Told{"With `export NCCL_P2P_DISABLE=1` it does load, but it gets slower", "NCCL_P2P_DISABLE=1",
                RemedyOf::peer_access},
           Told{"The server comes up only with NCCL_IB_DISABLE=1, and is too slow then", "NCCL_IB_DISABLE=1",
                RemedyOf::infiniband},
       }) {
    const auto remedy = ReadRemedy(one.line);
    ASSERT_TRUE(remedy) << one.line;
    EXPECT_EQ(remedy->setting, one.setting) << one.line;
    EXPECT_EQ(remedy->of, one.of) << one.line;
  }
}

TEST(ToldRemedy, WhatIsAskedAdvisedOrInVainIsNone) {
  for (const char* line :
       {"Would NCCL_P2P_DISABLE=1 help?", "Please try NCCL_P2P_DISABLE=1, it often helps",
        "NCCL_P2P_DISABLE=1 did not help", "It still hangs with NCCL_P2P_DISABLE=1",
        "even with NCCL_IB_DISABLE=1 it gets stuck", "You can set NCCL_P2P_DISABLE=1, which works around it",
        "if you set NCCL_IB_DISABLE=1 it works", "export NCCL_P2P_DISABLE=1",
        "NCCL INFO NCCL_P2P_DISABLE set by environment to 1.", "NCCL_P2P_DISABLE=0 works for us",
        "With NCCL_P2P_DISABLE=1 it works but later it hangs again", "It works on the other machine",
        "Only with NCCL_P2P_DISABLE=1 it hangs, else it works", "without NCCL_P2P_DISABLE=1 it works fine",
        "setting NCCL_IB_DISABLE=1 makes no difference, it works as before or not at all"})
    EXPECT_FALSE(ReadRemedy(line)) << line;
}

TEST(ToldRemedy, ASettingThatCostsTimeIsNone) {
  for (const char* line :
       {"with NCCL_IB_DISABLE=1 a step takes twice as long", "NCCL_IB_DISABLE=1 is set, and run times go up a lot",
        "It is 3 times faster without NCCL_IB_DISABLE=1.",
        "NCCL_IB_DISABLE=1 is in the script; the step time goes up with NCCL_IB_DISABLE=1 on our hosts"}) {
    EXPECT_FALSE(ReadRemedy(line)) << line;
    EXPECT_EQ(ReadSlowSetting(line), "NCCL_IB_DISABLE=1") << line;
  }
  for (const char* line :
       {"With NCCL_P2P_DISABLE=1 it works, only slower.", "NCCL_IB_DISABLE=1 may make it slower",
        "with NCCL_IB_DISABLE=1 it is not slower", "it is slower without NCCL_IB_DISABLE=1", "the job is slower"})
    EXPECT_EQ(ReadSlowSetting(line), "") << line;
}

TEST(ToldRemedy, IsAnEventOfTheText) {
  Fragment fragment;
  AddToldWords("It hangs at the first step.\nWith NCCL_IB_DISABLE=1 it works.\n```\nstep 1\n```\n", fragment);
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::told_hang);
  EXPECT_EQ(fragment.events[1].kind, EventKind::told_remedy);
  Fragment inside;
  AddToldWords("```\nWith NCCL_IB_DISABLE=1 it works.\n```\n", inside);
  EXPECT_TRUE(inside.events.empty());
}

}  // namespace
}  // namespace tacet
