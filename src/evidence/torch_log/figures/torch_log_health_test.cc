// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "evidence/torch_log/torch_log_parse.h"

namespace tacet {
namespace {

const TorchLogRecord* FirstOf(const TorchLog& log, TorchLogKind kind) {
  const auto found = std::find_if(log.records.begin(), log.records.end(),
                                  [&](const TorchLogRecord& record) { return record.kind == kind; });
  return found == log.records.end() ? nullptr : &*found;
}

TEST(TorchLogHealth, AWarningOfTheDetectorNamesItsRanks) {
  const TorchLog log = ParseTorchLog(
      "      Rank=37 Node=n29 Score=0.58\n"
      "      Rank=36 Node=n29 Score=0.97\n"
      "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: {37}\n");
  const TorchLogRecord* report = FirstOf(log, TorchLogKind::straggler_report);
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->ranks, std::vector<int32_t>{37});
  EXPECT_EQ(report->host, "n29");
  EXPECT_EQ(report->subject, "0.58");
}

TEST(TorchLogHealth, ScoresWithoutAWarningAreNoReport) {
  EXPECT_EQ(FirstOf(ParseTorchLog("      Rank=36 Node=n29 Score=0.97\n"), TorchLogKind::straggler_report), nullptr);
}

TEST(TorchLogHealth, FullMemoryIsKeptWithTheKillThatFollows) {
  const auto ended = [](std::string_view share) {
    const TorchLog log = ParseTorchLog(
        "[INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 247.9 GB, percent = " + std::string(share) +
        "%\n[2025-02-18 22:11:35,008] [ERROR] [launch.py:325:sigkill_handler] ['python3', 'x.py'] exits with return "
        "code = -9\n");
    const TorchLogRecord* use = FirstOf(log, TorchLogKind::memory_use);
    return use ? use->subject : "";
  };
  EXPECT_EQ(ended("98.6"), "98.6 %");
  EXPECT_EQ(ended("41.0"), "");
}

TEST(TorchLogHealth, TheBarOfWorkThatGoesOnIsKeptWithTheTimeout) {
  constexpr std::string_view kTimeout =
      "[rank1]:[E311 08:30:03.560118203 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800043 "
      "milliseconds before timing out.\n";
  const auto bar = [&](std::string_view share) {
    const TorchLog log = ParseTorchLog("Map (num_proc=8):  " + std::string(share) +
                                       "%|##   | 100/400 [04:41<39:58, 1625.88 examples/s]\n" + std::string(kTimeout));
    const TorchLogRecord* timeout = FirstOf(log, TorchLogKind::watchdog_timeout);
    return timeout ? timeout->object : "no timeout";
  };
  EXPECT_EQ(bar("25"), "Map (num_proc=8): 25%");
  EXPECT_EQ(bar("100"), "");
}

TEST(TorchLogHealth, ABarBesideAWaitInTheStoreIsKept) {
  const auto bar = [](std::string_view drawn) {
    const TorchLog log = ParseTorchLog(std::string(drawn) + "\nRuntimeError: Socket Timeout\n");
    const TorchLogRecord* wait = FirstOf(log, TorchLogKind::store_wait_timeout);
    return wait ? wait->object : "no wait";
  };
  EXPECT_EQ(bar("Running tokenizer on dataset:  37%|###  | 31870/85249 [31:58<52:10, 17.05ba/s]"),
            "Running tokenizer on dataset: 37%");
  EXPECT_EQ(bar("Fetching files:  12%|#  | 31/256 [10:04<1:12:40, 19.4s/file]"), "Fetching files: 12%");
  EXPECT_EQ(bar("Running tokenizer on dataset: 100%|####| 85249/85249 [41:58<00:00, 17.05ba/s]"), "");
  EXPECT_EQ(bar("Training:  12%|#  | 31/256 [10:04<1:12:40, 19.4s/it]"), "") << "the training itself";
  EXPECT_EQ(FirstOf(ParseTorchLog("Socket Timeout when using DDP\n"), TorchLogKind::store_wait_timeout), nullptr);
}

std::string Bar(std::string_view done, std::string_view clocks) {
  return "Map:  25%|##   | " + std::string(done) + "/400 [" + std::string(clocks) + ", 16.88 examples/s]";
}

TEST(TorchLogHealth, TheMarkBeforeTheBarTellsWhoseItIs) {
  const std::string timeout =
      "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
      "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600888 milliseconds before timing out.\n";
  const auto owner = [&](const std::string& text) -> std::string {
    const TorchLog log = ParseTorchLog(text);
    const TorchLogRecord* told = FirstOf(log, TorchLogKind::watchdog_timeout);
    if (told == nullptr || told->object.empty() || log.bar_voices.size() != 1) return "no bar";
    const TorchLogVoice& voice = log.voices[log.bar_voices[0]];
    return log.labels[voice.label].text + "/" + std::to_string(voice.rank);
  };
  const std::string bar = Bar("100", "04:41<39:58");
  EXPECT_EQ(owner("[default0]:" + bar + "[default2]:" + timeout), "[default0]:/-1");
  EXPECT_EQ(owner("[default0]:" + bar + "\n[default2]:" + timeout), "[default0]:/-1");
  EXPECT_EQ(owner("[rank0]: " + bar + timeout), "/0");
  EXPECT_EQ(owner(bar + timeout), "/-1");
  EXPECT_EQ(owner(bar + "[rank2]:" + timeout), "/-1") << "the mark behind the bar is not the one who draws it";
  EXPECT_EQ(owner("Map: 100%|#####| 400/400 [05:41<00:00, 16.88 examples/s]" + timeout), "no bar");
}

TEST(TorchLogHealth, ABarThatHasNotBegunDoesNotHideTheOneThatRuns) {
  const std::string timeout =
      "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
      "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600888 milliseconds before timing out.\n";
  const TorchLog log =
      ParseTorchLog(Bar("100", "04:41<39:58") + timeout + "Map:   0%|     | 0/400 [00:00<?, ? examples/s]" + timeout);
  const TorchLogRecord* told = FirstOf(log, TorchLogKind::watchdog_timeout);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->object, "Map: 25%");
}

TEST(TorchLogHealth, ADescribedPodIsTheVictim) {
  const TorchLog log = ParseTorchLog(
      "Name:             train-worker-2\nNode:             pool-7/10.1.0.7\nContainers:\n  t:\n    State: Terminated\n"
      "      Reason:       OOMKilled\n      Exit Code:    137\n    Limits:\n      memory:  512Gi\n    Requests:\n"
      "      memory:  1Gi\n");
  const TorchLogRecord* kill = FirstOf(log, TorchLogKind::oom_kill);
  ASSERT_NE(kill, nullptr);
  EXPECT_EQ(kill->object, "train-worker-2");
  EXPECT_EQ(kill->host, "pool-7");
  EXPECT_EQ(kill->cure, "512Gi");
  EXPECT_EQ(FirstOf(log, TorchLogKind::process_exited), nullptr);
}

TEST(TorchLogHealth, RayNamesTheActorThatItKilled) {
  const TorchLog log = ParseTorchLog(
      "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
      "\tclass_name: make.<locals>.WorkerDict\n\tactor_id: 9e\n\tpid: 41203\n\tip: 10.7.0.13\n"
      "The actor is dead because its worker process has died. Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: "
      "Task was killed due to the node running low on memory.\n"
      "Memory on the node (IP: 10.7.0.13, ID: 5b) where the task was running was 957.80GB / 1007.51GB (0.95), which\n");
  const TorchLogRecord* kill = FirstOf(log, TorchLogKind::oom_kill);
  ASSERT_NE(kill, nullptr);
  EXPECT_EQ(kill->object, "WorkerDict");
  EXPECT_EQ(kill->pid, 41203);
  EXPECT_EQ(kill->host, "10.7.0.13");
  EXPECT_EQ(kill->cure, "957.80GB of 1007.51GB");
  EXPECT_EQ(FirstOf(log, TorchLogKind::process_exited), nullptr) << "Ray knows more than that a connection closed";
}

}  // namespace
}  // namespace tacet
