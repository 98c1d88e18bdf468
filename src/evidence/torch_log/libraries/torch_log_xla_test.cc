// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_xla.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

constexpr std::string_view kWaits =
    "2026-03-20 11:02:15.600122: E external/xla/xla/service/rendezvous.cc:97] This thread has been waiting for "
    "`initialize clique for rank 1; clique=devices=[0,1,2,3]; stream=0; run_id=5512` for 10 seconds and may be stuck. "
    "Expected 2 threads to join the rendezvous, but not all of them arrived on time.\n";
constexpr std::string_view kUnstuck =
    "2026-03-20 11:02:21.843190: E external/xla/xla/service/rendezvous.cc:105] Thread is unstuck! Warning above was a "
    "false-positive. Perhaps the timeout is too short.\n";

TEST(TorchLogXla, AWarningTellsWhatIsWaitedForAndHowManyAreExpected) {
  const Event event = OneEvent(ReadText(kWaits, "host0.log"), EventKind::xla_wait);
  const auto& wait = event.As<XlaWait>();
  EXPECT_EQ(wait.name, "initialize clique");
  EXPECT_EQ(wait.seconds, 10);
  EXPECT_EQ(wait.expected, 2);
  EXPECT_EQ(wait.arrived, -1);
  EXPECT_EQ(wait.devices, 4);
  EXPECT_FALSE(wait.passed);
  EXPECT_FALSE(wait.gave_up);
  EXPECT_TRUE(event.text.starts_with("This thread has been waiting")) << event.text;
}

TEST(TorchLogXla, AWaitIsTakenBackWhenAllOfItsThreadsGoOn) {
  const std::string both = std::string(kWaits) + std::string(kWaits);
  EXPECT_FALSE(OneEvent(ReadText(both + std::string(kUnstuck), "a.log"), EventKind::xla_wait).As<XlaWait>().passed);
  EXPECT_TRUE(OneEvent(ReadText(both + std::string(kUnstuck) + std::string(kUnstuck), "a.log"), EventKind::xla_wait)
                  .As<XlaWait>()
                  .passed);
}

TEST(TorchLogXla, AWaitAfterOneThatEndedIsAnother) {
  const std::string later =
      "E0912 21:03:58.771204   40398 rendezvous.cc:98] This thread has been waiting for `rendezvous of "
      "collective-permute; run_id=31; op id:4` for 20 seconds and may be stuck. Expected 4 threads to join the "
      "rendezvous, but only 3 of them arrived on time.\n";
  const Event event =
      OneEvent(ReadText(std::string(kWaits) + std::string(kUnstuck) + later, "a.log"), EventKind::xla_wait);
  const auto& wait = event.As<XlaWait>();
  EXPECT_EQ(wait.name, "rendezvous of collective-permute");
  EXPECT_EQ(wait.arrived, 3);
  EXPECT_EQ(wait.seconds, 20);
  EXPECT_FALSE(wait.passed);
  EXPECT_EQ(event.source.line, 3u);
}

TEST(TorchLogXla, GivingUpIsMoreThanAWarning) {
  const std::string end =
      "2026-03-18 09:40:42.119004: F external/xla/xla/service/rendezvous.cc:127] Termination timeout for `initialize "
      "clique for rank 1; run_id=9` of 40 seconds exceeded. Exiting to ensure a consistent program state. Expected 2 "
      "threads to join the rendezvous, but not all of them arrived on time.\n";
  const auto wait = OneEvent(ReadText(std::string(kWaits) + end, "a.log"), EventKind::xla_wait).As<XlaWait>();
  EXPECT_TRUE(wait.gave_up);
  EXPECT_EQ(wait.seconds, 40);
  EXPECT_FALSE(wait.passed);
}

TEST(TorchLogXla, OldWordsTellTheTimeInMilliseconds) {
  const auto wait =
      OneEvent(ReadText("2021-11-02 16:20:05.220417: E x/xla/service/collective_ops_utils.h:306] This thread has been "
                        "waiting for 5000ms for and may be stuck: participant AllReduceParticipantData{rendezvous_key="
                        "RendezvousKey{run_id=RunId: 18, global_devices=[0, 1], num_local_participants=2, "
                        "collective_op_kind=cross_module, op_id=2}}\n",
                        "a.log"),
               EventKind::xla_wait)
          .As<XlaWait>();
  EXPECT_EQ(wait.seconds, 5);
  EXPECT_EQ(wait.expected, 2);
  EXPECT_EQ(wait.devices, 2);
}

TEST(TorchLogXla, ASlowCompilationWaitsForNobody) {
  const auto wait = OneEvent(ReadText("2026-03-21 08:18:02.771100: E external/xla/xla/service/slow_operation_alarm.cc:"
                                      "133] The operation took 4m22.260108s\n\n"
                                      "[Compiling module jit_train_step] Very slow compile? If you want to file a bug, "
                                      "run with envvar XLA_FLAGS=--xla_dump_to=/tmp/foo and attach the results.\n",
                                      "a.log"),
                             EventKind::xla_wait)
                        .As<XlaWait>();
  EXPECT_TRUE(wait.compiling);
  EXPECT_TRUE(wait.passed);
  EXPECT_EQ(wait.seconds, 262);
  EXPECT_EQ(wait.name, "jit_train_step");
}

}  // namespace
}  // namespace tacet
