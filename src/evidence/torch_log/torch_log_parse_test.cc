// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_parse.h"

#include "evidence/torch_log/errors/torch_log_mismatch.h"
#include "evidence/torch_log/figures/torch_log_progress.h"
#include "evidence/torch_log/torch_log_prefix.h"
#include "evidence/torch_log/torch_log_test_file.h"
#include "evidence/torch_log/torch_log_time.h"
#include "evidence/torch_log/waits/torch_log_watchdog.h"

namespace tacet {
namespace {

TEST(TorchLogPrefix, ReadsEveryVersionOfTheLogPrefix) {
  const LinePrefix old = SplitPrefix("[E ProcessGroupNCCL.cpp:474] text", {});
  EXPECT_EQ(old.severity, 'E');
  EXPECT_EQ(old.code_file, "ProcessGroupNCCL.cpp");
  EXPECT_EQ(old.text, "text");
  EXPECT_FALSE(old.time.known());

  const LinePrefix ranked = SplitPrefix("[rank3]:[W ProcessGroupNCCL.cpp:565] text", {});
  EXPECT_EQ(ranked.rank, 3);
  EXPECT_EQ(ranked.severity, 'W');

  const LinePrefix timed = SplitPrefix("[rank12]:[E626 16:48:25.440243908 ProcessGroupNCCL.cpp:670] text", {});
  EXPECT_EQ(timed.rank, 12);
  EXPECT_EQ(timed.time.month_day, 626);
  EXPECT_EQ(timed.time.second_of_day, 16 * 3600 + 48 * 60 + 25);
  EXPECT_EQ(timed.text, "text");

  const LinePrefix glog = SplitPrefix("E0927 12:07:22.643702 1012209 ProcessGroupNCCL.cpp:670] text", {});
  EXPECT_EQ(glog.severity, 'E');
  EXPECT_EQ(glog.time.month_day, 927);
  EXPECT_EQ(glog.text, "text");

  const LinePrefix python =
      SplitPrefix("W0325 20:57:27.118000 2606 site-packages/torch/distributed/run.py:792] text", {});
  EXPECT_EQ(python.code_file, "run.py");
  EXPECT_EQ(python.text, "text");
}

TEST(TorchLogPrefix, TakesLineOfCodeForNoLogPrefix) {
  EXPECT_EQ(SplitPrefix("[E equals mc squared]", {}).severity, 0);
  EXPECT_EQ(SplitPrefix("Error: 5", {}).severity, 0);
  EXPECT_EQ(SplitPrefix("[E1399 00:00:00.0 a.cpp:1] text", {}).severity, 0);  // no such month
}

TEST(TorchLogPrefix, KeepsTheIndentOfCodeBehindARank) {
  EXPECT_EQ(SplitPrefix("[rank0]:   File \"a.py\", line 1, in f", {}).text, "  File \"a.py\", line 1, in f");
  EXPECT_EQ(SplitPrefix("3:   File \"a.py\", line 1, in f", {.tasks = true}).text, "  File \"a.py\", line 1, in f");
}

TEST(TorchLogPrefix, TakesAStepNumberForNoLabel) {
  std::string steps, labels;
  for (int i = 0; i < 20; ++i) {
    steps += std::to_string(i * 10) + ": loss 0.5\n";
    labels += std::to_string(i % 4) + ": loss 0.5\n";
  }
  EXPECT_FALSE(FindLabelStyle(steps).tasks);
  EXPECT_TRUE(FindLabelStyle(labels).tasks);
  EXPECT_EQ(SplitPrefix("[step10]: loss 0.3", {}).launcher.kind, LauncherPrefix::Kind::none);
  EXPECT_EQ(SplitPrefix("[default3]: loss 0.3", {}).launcher.number, 3);
}

TEST(TorchLogPrefix, ReadsEveryVersionOfTheGroupPrefix) {
  const GroupPrefix newest = FindGroupPrefix("[PG ID 1 PG GUID 1187ab66(mesh_dp) Rank 1]  failure");
  EXPECT_EQ(newest.name, "1187ab66");
  EXPECT_EQ(newest.description, "mesh_dp");
  EXPECT_EQ(newest.group_rank, 1);
  EXPECT_FALSE(newest.is_default);
  EXPECT_TRUE(FindGroupPrefix("[PG ID 0 PG GUID 0 Rank 3] text").is_default);
  EXPECT_EQ(FindGroupPrefix("[PG 0 (default_pg) Rank 2] text").description, "default_pg");
  EXPECT_TRUE(FindGroupPrefix("[PG 0 Rank 2] text").is_default);
  EXPECT_FALSE(FindGroupPrefix("[PG 7 Rank 2] text").is_default);
  EXPECT_FALSE(FindGroupPrefix("[PG broken").known());
}

TEST(TorchLogPrefix, KnowsNcclLinesOfEveryKind) {
  EXPECT_TRUE(IsNcclLine("vm:551:551 [0] NCCL INFO Bootstrap: Using eth0"));
  EXPECT_TRUE(IsNcclLine("[2026-11-15 00:18:20] vm:2983:2983 [0] bootstrap.cc:114 NCCL WARN Bootstrap : no socket"));
  EXPECT_TRUE(IsNcclLine("vm:551:551 NCCL CALL ncclAllReduce()"));
  EXPECT_FALSE(IsNcclLine("set NCCL INFO to see more"));
  EXPECT_FALSE(
      IsNcclLine("[rank0]: torch.distributed.DistBackendError: NCCL error in: a.cpp:1, x, NCCL version 2.28.9"));
}

TEST(TorchLogTime, ReadsDatedTimesWithAndWithoutZone) {
  LogMoment moment;
  std::string_view text = "2026-11-15T00:39:15.621349] rest";
  ASSERT_TRUE(TakeDatedTime(text, &moment));
  EXPECT_EQ(moment.wall_ns, 1794703155621349000);
  EXPECT_EQ(text, "] rest");
  text = "2026-11-15 02:39:15,621+02:00";
  ASSERT_TRUE(TakeDatedTime(text, &moment));
  EXPECT_EQ(moment.wall_ns, 1794703155621000000);
  text = "2026-13-15 02:39:15";
  EXPECT_FALSE(TakeDatedTime(text, &moment));
}

TEST(TorchLogTime, PutsALineOfJanuaryBehindDecember) {
  LogMoment december;
  std::string_view text = "2026-12-31T23:59:50";
  ASSERT_TRUE(TakeDatedTime(text, &december));
  LogMoment january{LogMoment::kNone, 101, 5};
  EXPECT_EQ(ResolveMoment(january, december.wall_ns), december.wall_ns + int64_t{15} * 1'000'000'000);
  EXPECT_EQ(ResolveMoment(january, LogMoment::kNone), LogMoment::kNone);
}

TEST(TorchLogWork, ReadsOldAndNewWorks) {
  LoggedWork work;
  ASSERT_TRUE(
      FindWork("WorkNCCL(SeqNum=5, OpType=ALLREDUCE, TensorShape=[10, 20], Timeout(ms)=1800000) ran for 3", &work));
  EXPECT_EQ(work.seq, 5);
  EXPECT_EQ(work.elements, 200);
  EXPECT_EQ(work.rest, " ran for 3");
  LoggedWork later;
  ASSERT_TRUE(
      FindWork("WorkNCCL(SeqNum=6, OpType=_ALLGATHER_BASE, NumelIn=7, NumelOut=14, Timeout(ms)=600000)", &later));
  EXPECT_EQ(later.op, "_ALLGATHER_BASE");
  EXPECT_EQ(later.elements, 7);
  EXPECT_EQ(later.timeout_ms, 600000);
  LoggedWork huge;
  ASSERT_TRUE(FindWork("WorkNCCL(SeqNum=6, OpType=X, TensorShape=[9999999999, 9999999999], Timeout(ms)=1)", &huge));
  EXPECT_EQ(huge.elements, -1);
  EXPECT_FALSE(FindWork("WorkNCCL(SeqNum=6, OpType=X", &huge));
}

TEST(TorchLogMismatch, ReadsFingerPrintsOfEveryVersion) {
  const FingerPrint full = ParseFingerPrint(
      "SequenceNumber=17, OpType=ALLREDUCE, TensorShape=[10, 20], TensorDtypes=Float, "
      "TensorDeviceTypes=TensorOptions(dtype=float "
      "(default), device=cuda))");
  EXPECT_EQ(full.seq, 17);
  EXPECT_EQ(full.op, "ALLREDUCE");
  EXPECT_EQ(full.Elements(), 200);
  EXPECT_EQ(full.dtype, "Float");
  const FingerPrint bare = ParseFingerPrint("SequenceNumber=3OpType=BARRIER)");
  EXPECT_EQ(bare.seq, 3);
  EXPECT_EQ(bare.op, "BARRIER");
  EXPECT_FALSE(bare.has_tensors);
  EXPECT_EQ(ParseFingerPrint("OpType=ALLREDUCE, TensorShape=[], TensorDtypes=Float").Elements(), 1);
  EXPECT_EQ(ParseFingerPrint("OpType=ALLREDUCE, TensorShape=[99999999999, 99999999999], TensorDtypes=Float").Elements(),
            -1);
}

TEST(TorchLogProgress, FindsTheStepOfManyTrainers) {
  EXPECT_EQ(FindProgress("step 10 loss 0.3"), 10);
  EXPECT_EQ(FindProgress("[step 10]"), 10);
  EXPECT_EQ(FindProgress("2026-04-02 10:00:01,120: Iteration took 31.2 s."), -1);
  EXPECT_EQ(FindProgress("the step took a while"), std::nullopt);
  EXPECT_EQ(FindProgress("Iter[0] Batch [20]\tSpeed: 119.8 samples/sec"), 20);
  EXPECT_EQ(FindProgress("global_step=512, loss=0.3"), 512);
  EXPECT_EQ(FindProgress(" iteration      100/     500 | consumed samples: 51200"), 100);
  EXPECT_EQ(FindProgress("Iter [100/500] lr 0.1"), 100);
  EXPECT_EQ(FindProgress("Epoch 3: 45%"), 3);
  EXPECT_EQ(FindProgress("mmengine - INFO - Epoch(train)  [3][ 100/1832]  lr: 2e-02  loss: nan"), 100);
  EXPECT_EQ(FindProgress("mmengine - INFO - Iter(train) [  250/40000]  lr: 2e-02"), 250);
  EXPECT_EQ(FindProgress("mmengine - INFO - Epoch(val) [3][50/50]  bbox_mAP: 0.31"), std::nullopt);
  EXPECT_EQ(FindProgress("train loss: nan, lr 1e-4"), -1);
  EXPECT_EQ(FindProgress("Loss is nan, stopping training"), std::nullopt);
  EXPECT_EQ(FindProgress("starting, best loss: inf"), std::nullopt);
  EXPECT_EQ(FindProgress("why is my loss 0 all of a sudden? fp16, 4x3090"), std::nullopt);
  EXPECT_EQ(FindProgress("Epoch: [0][ 10/5005]\tTime 0.4"), 10);
  EXPECT_EQ(FindProgress("Train Epoch: 1 [6400/60000 (11%)]\tLoss: 0.3"), 6400);
  EXPECT_EQ(FindProgress(" 45%|####      | 450/1000 [00:12<00:15, 36.1it/s]"), 450);
  EXPECT_EQ(FindProgress("{'loss': 2.51, 'epoch': 0.03}"), 0);
  EXPECT_EQ(FindProgress("train loss: 0.31"), -1);
  EXPECT_EQ(FindProgress("rank 2: batch 7 mse 0.02122"), 7);
  EXPECT_EQ(FindProgress("batch 12: took 0.31 s"), 12);
}

TEST(TorchLogProgress, AnErrorIsNoProgress) {
  EXPECT_FALSE(FindProgress("train ERROR: gradient norm 5.8e+08 at step 6 is above 1000, stopping"));
  EXPECT_FALSE(FindProgress("[CRITICAL] loss is inf at step 12"));
  EXPECT_EQ(FindProgress("epoch 3 step 12 ERROR: 0.21"), 12);
}

TEST(TorchLogProgress, TakesSettingsForNoProgress) {
  EXPECT_FALSE(FindProgress("max_steps: 1000"));
  EXPECT_FALSE(FindProgress("max_step: 1000"));
  EXPECT_FALSE(FindProgress("warmup_iter=10"));
  EXPECT_FALSE(FindProgress("num_epochs 3"));
  EXPECT_FALSE(FindProgress("batch 32"));
  EXPECT_FALSE(FindProgress("batch 32 lr 0.1"));
  EXPECT_FALSE(FindProgress("step_time_ms 31"));
  EXPECT_FALSE(FindProgress("Loading dataset from /data"));
  EXPECT_FALSE(FindProgress("listening on port 3"));
}

TEST(TorchLogProgress, TellsTheEndOfAJobFromTheEndOfALoad) {
  EXPECT_EQ(FindFinishSign("rank=0 finished"), FinishSign::weak);
  EXPECT_EQ(FindFinishSign("Done."), FinishSign::weak);
  for (const char* line :
       {"[rank0] finished", "all epochs done", "finished after 40 iterations", "rank 1 completed 20 rounds",
        "{\"t\": 1795059640.2, \"rank\": 1, \"event\": \"end\", \"status\": \"success\", \"steps\": 36}",
        "ts=2026-11-19T01:31:38Z level=info rank=1 msg=\"run complete\" steps=40"})
    EXPECT_EQ(FindFinishSign(line), FinishSign::weak) << line;
  for (const char* line : {"epoch 3 done", "saving finished", "rank 1 finished, 4 steps skipped by all ranks"})
    EXPECT_EQ(FindFinishSign(line), FinishSign::none) << line;
  EXPECT_EQ(FindFinishSign("Training completed in 12.5 seconds"), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("[after training is done] datetime: 2026-01-01 00:00:00"), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("`Trainer.fit` stopped: `max_epochs=3` reached."), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("Training time 0:17:30"), FinishSign::strong);
  // DeepSpeed's launcher of one process: others may still run, or wait for it.
  EXPECT_EQ(FindFinishSign("[INFO] [launch.py:351:main] Process 51877 exits successfully."), FinishSign::none);
  EXPECT_EQ(FindFinishSign("| INFO | fairseq_cli.train | done training in 21455.0 seconds"), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("(\"Final validation metrics: {'val/reward': 0.78}\")"), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("done, best val acc 0.7412"), FinishSign::weak);
  EXPECT_EQ(FindFinishSign("done, loading the next shard"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("estimated training time 3 days"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("Epoch 3 training time 0:03:10"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("epoch 5 done training in 312.4s"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("Status:       Succeeded"), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("Status: Succeeded in uploading shard 3"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("loading data finished"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("compiled kernels, done"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("training is not complete"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("`Trainer.fit` stopped: `max_steps=200` reached."), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("Training completed. Do not forget to share your model on huggingface.co/models =)"),
            FinishSign::strong);
  EXPECT_EQ(FindFinishSign("Finished Training"), FinishSign::strong);
  EXPECT_EQ(FindFinishSign("checkpoints are deleted when training is done"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("rank 3 has not finished training"), FinishSign::none);
  EXPECT_EQ(FindFinishSign("run complete"), FinishSign::weak);
  EXPECT_EQ(FindFinishSign("2026-11-16 18:52:31,011 loop.main INFO: run complete"), FinishSign::weak);
  EXPECT_EQ(FindFinishSign("2026-11-16 18:52:31,011 loop.main INFO: warm-up run complete"), FinishSign::none);
  EXPECT_TRUE(BeginsWork("INFO Starting phase 2"));
  EXPECT_TRUE(BeginsWork("***** Running Evaluation *****"));
  EXPECT_FALSE(BeginsWork("saved the model to /out/final.pt"));
}

TEST(TorchLogProgress, FindsTheJobsOwnPid) {
  EXPECT_EQ(FindOwnPid("rank=2 pid 1552 job -"), 1552);
  EXPECT_EQ(FindOwnPid("started (PID: 77)"), 77);
  EXPECT_EQ(FindOwnPid("rapid 12 steps"), -1);
  EXPECT_EQ(FindOwnPid("ppid=12"), -1);
  EXPECT_EQ(FindOwnPid("pid"), -1);
}

TEST(TorchLogParse, ReadsNothingFromAnEmptyFile) {
  const TorchLog log = ParseTorchLog("");
  EXPECT_TRUE(log.records.empty());
  EXPECT_EQ(log.voices.size(), 1u);
  EXPECT_EQ(log.understood + log.ignored + log.not_understood, 0u);
}

TEST(TorchLogParse, KeepsTheLastLineWithoutNewline) {
  const TorchLog log = ParseTorchLog("step 1\nstep 2");
  ASSERT_EQ(log.records.size(), 2u);
  EXPECT_EQ(log.records[1].value, 2);
  EXPECT_EQ(log.records[1].source.line, 2u);
  EXPECT_EQ(log.records[1].source.offset, 7u);
  EXPECT_EQ(log.understood, 13u);
}

TEST(TorchLogParse, KeepsTheFirstAndTheLastOfMillionsOfSteps) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "step " + std::to_string(i) + " loss 0.5\n";
  const TorchLog log = ParseTorchLog(text);
  ASSERT_EQ(log.records.size(), 2u);
  EXPECT_EQ(log.records[0].value, 0);
  EXPECT_EQ(log.records[1].value, 4999);
  EXPECT_EQ(log.records[1].count, 5000);
}

TEST(TorchLogParse, BoundsWhatAHostileFileCanMake) {
  std::string text;
  for (int i = 0; i < 120'000; ++i)
    text +=
        "[rank0]:[E1115 00:00:00.1 ProcessGroupNCCL.cpp:1] [PG 1 Rank 0] Timeout at NCCL work: " + std::to_string(i) +
        ", x\n";
  const TorchLog log = ParseTorchLog(text);
  EXPECT_EQ(log.records.size(), 100'000u);
  EXPECT_EQ(log.dropped_records, 20'000u);
  std::string voices;
  for (int i = 0; i < 60'000; ++i) voices += "[rank" + std::to_string(i) + "]: hello\n";
  EXPECT_LE(ParseTorchLog(voices).voices.size(), 40'000u);
}

TEST(TorchLogParse, ReadsAProgressBarOfAnyLength) {
  std::string bar;
  for (int i = 0; i <= 20'000; ++i) bar += " 45%|####      | " + std::to_string(i) + "/20000 [00:12<00:15, 36.1it/s]\r";
  ASSERT_GT(bar.size(), 256u * 1024);
  const TorchLog log = ParseTorchLog(bar + "\n");
  ASSERT_EQ(log.records.size(), 2u);
  EXPECT_EQ(log.records[1].value, 20'000);
  EXPECT_EQ(log.understood, bar.size() + 1);
}

TEST(TorchLogParse, SurvivesEveryPrefixOfEverySample) {
  for (const char* name :
       {"torchrun_summary.log", "torch_2_11_mismatch_rank1.log", "torch_desync_report.log", "attempt_0/5/error.json",
        "torch_2_11_abort_rank0.log", "chained_rank4.log", "slurm-88123.out", "progress_bar.out"}) {
    const std::string text = SampleText(name);
    for (size_t size = 0; size < text.size(); size += 7) ReadText(std::string_view(text).substr(0, size), name);
  }
}

}  // namespace
}  // namespace tacet
