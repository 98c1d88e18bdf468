// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/bare_message.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/told/told_tried.h"

namespace tacet {
namespace {

Fragment Bare(std::string_view bytes, std::string_view format = "unknown") {
  Fragment fragment;
  fragment.format = format;
  AddBareMessages(bytes, fragment);
  return fragment;
}

TEST(BareMessage, MeansWhatItMeansBehindAnExceptionsName) {
  const Fragment refused = Bare("No CUDA GPUs are available\n");
  ASSERT_EQ(refused.events.size(), 1u);
  EXPECT_EQ(refused.events[0].As<Raised>().refusal, "no-gpu");
  const Fragment device = Bare("an illegal memory access was encountered\n");
  ASSERT_EQ(device.events.size(), 1u);
  EXPECT_EQ(device.events[0].kind, EventKind::cuda_error);
  EXPECT_EQ(device.events[0].text.find("RuntimeError"), std::string::npos);
  EXPECT_TRUE(Bare("mmap failed: Cannot allocate memory\n").events.at(0).Means(Meaning::host_memory));
}

TEST(BareMessage, IsNoneWhereAPersonARecordOrAQuestionSaysIt) {
  for (const char* text : {"I get No CUDA GPUs are available, what is wrong?\n",
                           "all peers wait in `barrier` then - no error, no timeout. Nothing.\n",
                           "{\"level\": \"error\", \"error\": \"No CUDA GPUs are available\"}\n",
                           "The repository contains custom code which must be executed\nRun it? [y/N]\n",
                           "cache: Cannot allocate memory for 512 entries, using 256 instead\n"})
    EXPECT_TRUE(Bare(text).events.empty()) << text;
}

TEST(BareMessage, IsNotReadWhereAnotherLineTellsTheReason) {
  Fragment fragment;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::disk_full;
  AddBareMessages("No CUDA GPUs are available\n", fragment);
  EXPECT_EQ(fragment.events.size(), 1u);
}

TEST(BareMessage, TheFirstLineOfTroubleIsQuotedWhereNothingElseIsKnown) {
  const Fragment unknown =
      Bare("[hub] peers: a1 a2\n[hub] a2: lease expired, dropping peer\n[hub] a1: giving up on it\n");
  ASSERT_EQ(unknown.events.size(), 1u);
  EXPECT_EQ(unknown.events[0].kind, EventKind::unread_error);
  EXPECT_EQ(unknown.events[0].source.line, 2u);
  EXPECT_TRUE(Bare("[hub] 3 tasks, 0 errors, no failed tasks\n").events.empty());
  EXPECT_TRUE(Bare("[hub] a2: lease expired, dropping peer\n", "torch_log").events.empty());
}

TEST(ToldTried, ASettingThatDoesNotHelpIsKept) {
  Fragment fragment;
  AddToldTried("export NCCL_P2P_DISABLE=1 does not help, and --shm-size=64g makes no difference", {}, fragment);
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[0].As<EnvironmentSetting>().name, "NCCL_P2P_DISABLE");
  EXPECT_EQ(fragment.events[0].As<EnvironmentSetting>().value, "1");
  EXPECT_EQ(fragment.events[1].As<EnvironmentSetting>().name, "--shm-size");
  EXPECT_TRUE(fragment.events[1].Means(Meaning::in_prose));
  Fragment none;
  AddToldTried("You can try to set NCCL_P2P_DISABLE=1 if it still hangs", {}, none);
  AddToldTried("With NCCL_P2P_DISABLE=1 it works", {}, none);
  EXPECT_TRUE(none.events.empty());
}

TEST(ToldLimit, ATimeThatSomethingTakesBeforeAnErrorIsALimit) {
  Fragment fragment;
  AddToldLimit("Tokenizing takes longer than 30 minutes, then an exception is thrown", {}, fragment);
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].As<WatchdogTimeout>().timeout_ms, 1'800'000);
  Fragment none;
  AddToldLimit("An epoch takes longer than 30 minutes on this machine", {}, none);
  EXPECT_TRUE(none.events.empty());
}

}  // namespace
}  // namespace tacet
