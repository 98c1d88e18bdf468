// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_words.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/meaning/unread_error.h"
#include "evidence/told/told_chinese.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"
#include "evidence/told/told_subject.h"

namespace tacet {
namespace {

TEST(ToldWords, WhatGoesOnEachTimeIsSlowAndDoesNotHang) {
  for (const char* line :
       {"Training freezes every 16 iterations on all nodes.", "It hangs for a few seconds and continues."}) {
    EXPECT_FALSE(SaysItHangs(line)) << line;
    EXPECT_TRUE(SaysItIsSlow(line)) << line;
  }
  EXPECT_TRUE(SaysItHangs("It hangs every time after 100 steps."));
  EXPECT_FALSE(SaysItIsSlow("It hangs every time after 100 steps."));
}

TEST(ToldWords, AHangWithoutAnyMessageIsAHang) {
  EXPECT_TRUE(SaysItHangs("The training starts and then hangs somewhere without any error message"));
  EXPECT_FALSE(SaysItHangs("With the other driver it trains through the night without any hang"));
  EXPECT_FALSE(SaysItHangs("It runs without any issues and never hangs on this machine"));
}

TEST(ToldWords, AQueueAndAToolDoNotHangTheJob) {
  EXPECT_FALSE(SaysItHangs("Since the upgrade my jobs stay pending forever and no node takes them."));
  EXPECT_FALSE(SaysItHangs("In most cases `nvidia-bug-report.sh` freezes while it runs on that node."));
  EXPECT_FALSE(SaysItHangs("On that host py-spy hangs as well and prints no stack."));
  EXPECT_TRUE(SaysItHangs("The job is stuck with four pending operations in the second step."));
  EXPECT_TRUE(SaysItHangs("The job hangs forever at the second step of the epoch."));
  EXPECT_TRUE(SaysItHangs("In most cases `python train.py` freezes in the first step."));
  EXPECT_TRUE(SaysItHangs("py-spy shows that the training hangs in the barrier."));
}

TEST(ToldWords, IdleGpusTellWhatASlowJobWaitsFor) {
  EXPECT_TRUE(SaysItIsSlow("I see a lot of GPU idle time between the iterations on this machine"));
  EXPECT_FALSE(SaysItIsSlow("There is no GPU idle time between iterations if the data is cached"));
  EXPECT_TRUE(StatesThatSomeAreIdle("then 6 gpus go to 100% while the remaining 2 gpus stay at 0% utilization"));
  EXPECT_FALSE(StatesThatSomeAreIdle("all gpus are at 100%, and the cpu is at 0% load"));
  EXPECT_FALSE(StatesThatSomeAreIdle("the gpus go from 90% to 100%"));
}

TEST(ToldWords, WhatNeverComesBackHangs) {
  for (const char* line :
       {"It stops at the pynccl step and never begins to load the model.", "The save never returns on four ranks",
        "The script never gets past the first barrier", "it does not get past the setup of the groups"})
    EXPECT_TRUE(SaysItHangs(line)) << line;
  for (const char* line :
       {"The call never returns an error on four ranks", "The bandwidth never reaches 100 GB/s here",
        "My hook never returns None in this program", "The rate never gets past 40 GB/s on two nodes"})
    EXPECT_FALSE(SaysItHangs(line)) << line;
}

TEST(ToldWords, SlowerThanItShouldBeIsSlow) {
  EXPECT_TRUE(SaysItIsSlow("AllReduce between nodes is 4 to 5 times slower than it should be."));
  EXPECT_FALSE(SaysItIsSlow("AllReduce between nodes should be slower than within one node."));
}

TEST(ToldWords, ThatTheOthersWaitIsTold) {
  EXPECT_TRUE(StatesThatOthersWait("rank0 sits in the loader, the 31 others wait for it in all_reduce()"));
  EXPECT_TRUE(StatesThatOthersWait("all other ranks are stuck in the barrier"));
  EXPECT_FALSE(StatesThatOthersWait("the others do not wait in the barrier"));
  EXPECT_FALSE(StatesThatOthersWait("the others wait for an answer here"));
}

TEST(ToldWords, SilenceAndAnIdleGpuAreHangs) {
  for (const char* line :
       {"There has been no log output for 23h now.", "The job has not printed anything since yesterday evening.",
        "Two GPUs are used, no new steps are logged.", "We see a dead lock in DDP with two groups.",
        "GPU 3 stays at 0 % while all the others are at 100 %."})
    EXPECT_TRUE(SaysItHangs(line)) << line;
  for (const char* line :
       {"The logs are kept for 30 days and not longer on this host.", "Since the update there is no deadlock any more.",
        "The hang in the second epoch is gone.", "We only use GPU 0, so GPU 0 is at 100 % and the others are at 0 %."})
    EXPECT_FALSE(SaysItHangs(line)) << line;
}

TEST(ToldWords, ATimeBeforeAnExceptionIsALimitAndNotSlow) {
  EXPECT_FALSE(SaysItIsSlow("Preprocessing takes longer than 30 minutes, then an exception is thrown."));
  EXPECT_TRUE(SaysItIsSlow("Each step takes longer than the one before it."));
}

TEST(ToldWords, AStrokeBetweenWordsIsNoPathAndNoNameOfNccl) {
  EXPECT_TRUE(IsSentence("The curve of train/loss goes flat and then the run sits there"));
  EXPECT_FALSE(IsSentence("gpu-a:8281:8281 [0] NCCL INFO NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'"));
  EXPECT_FALSE(IsSentence("see /data/runs/train/loss for the curve of it"));
}

TEST(ToldWords, AllButOneOfTheRanksWait) {
  EXPECT_TRUE(SaysItHangs("All the ranks are waiting for cudaDeviceSynchronize() except the last one of node two."));
  EXPECT_TRUE(SaysItHangs("All ranks wait in the barrier, except rank 5 which is in a queue."));
  EXPECT_FALSE(SaysItHangs("All ranks are waiting for rank 0, which downloads the dataset first."));
  EXPECT_FALSE(SaysItHangs("All ranks read the same shard except the last one of each node."));
}

TEST(ToldWords, AHugeDelayIsSlow) {
  EXPECT_TRUE(SaysItIsSlow("With several GPUs I see an excessive time delay between the epochs.") ||
              SaysItIsSlow("With several GPUs I see an excessive delay between the epochs."));
  EXPECT_FALSE(SaysItIsSlow("The delay between the epochs is used to write a checkpoint."));
}

TEST(ToldWords, ACheckThatComparesRanksReportsAnError) {
  EXPECT_TRUE(ReportsError("Rank 3 has different values for step: 512.0. Other ranks: 498.0"));
  EXPECT_TRUE(ReportsError("checksum mismatch between rank 0 and rank 3: 8a1f 77c0"));
  EXPECT_FALSE(ReportsError("Rank 3 has 512 samples, other ranks have 498"));
}

TEST(ToldWords, LongerThanOnOneHostIsSlow) {
  EXPECT_TRUE(SaysItIsSlow("With two nodes the training time is very longer than when I use a single one."));
  EXPECT_FALSE(SaysItIsSlow("The second run will take longer than when the cache is there, as expected."));
}

TEST(ToldWords, ALineOfAProgramReportsAnError) {
  for (const char* line :
       {"2024-05-01 10:00:00 ERROR scheduler: no free slot", "node3:rank1: Assertion failure at psm3/ptl.c:196: n == m",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "job-master-0   0/2   CrashLoopBackOff   8   2m41s",
        "Pod: team.job-worker-0 exited with code 1", "[c10d] read: socket timed out after 1800000ms",
        "E0101 agent.cc:12] Failed to open /dev/infiniband/uverbs0", "agent error: 10.0.0.3:29500 unreachable",
        "E1103 16:40:02.104410       1 controller.go:88] Failed to sync job ml/bert",
        "imexd.service: Main process exited, code=exited, status=1/FAILURE",
        "imexd.service: Main process exited, code=killed, status=9/KILL", "**read/write error**", "Input/output error",
        "prun: error: the step of task 3 could not be created on that host"})
    EXPECT_TRUE(ReportsError(line)) << line;
}

TEST(ToldWords, ALessOrASentenceIsNoError) {
  for (const char* line :
       {"NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.", "export TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
        "worker exited with code 0", "WARNING: 3 samples failed to decode and were skipped", "errors: 0, warnings: 0",
        "[W1210 11:04:01.455238000 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host a:1 - "
        "retrying",
        "I get an error: what does it mean and how can it be avoided", "step 10 loss 2.1",
        "Epoch: [0] lr: 0.0001 class_error: 98.71 loss: 61.0 (61.0)", "top1 error: 0.231",
        "I1103 16:40:02.104410       1 helper.go:49] Predicates failed for task <a> on node <b>: fit failed: no GPU",
        "W1103 16:40:02.104410       1 helper.go:49] Failed to list pods, will be tried again",
        "imexd.service: Main process exited, code=exited, status=0/SUCCESS", "mean squared error", "validation error",
        "slurmstepd: error: couldn't chdir to `/home/kim': No such file or directory: going to /tmp instead"})
    EXPECT_FALSE(ReportsError(line)) << line;
}

TEST(ToldWords, ASentenceSaysThatTheJobHangs) {
  for (const char* line : {"After two epochs it hangs and nothing is printed any more.",
                           "stays like this for ever, GPUs at 100 %", "The job gets stuck at the first barrier",
                           "4 nodes, 32 GPUs. Freezes after 1 to 3 epochs, always: rank0 sits in the loader"})
    EXPECT_TRUE(SaysItHangs(line)) << line;
}

TEST(ToldWords, AFirstStepThatCompilesIsNotSlow) {
  EXPECT_FALSE(SaysItIsSlow("The first step also compiles the graph, so it is much slower than those after it."));
  EXPECT_TRUE(SaysItIsSlow("From the first step on it is much slower than on one node."));
  EXPECT_TRUE(SaysItIsSlow("Across identical runs I randomly get varying performance."));
}

TEST(ToldWords, ChineseSentencesAreReadAsWell) {
  for (const char* line : {"两台机器都卡在了建立通信组之后，等了半个小时", "训练到第三个epoch就卡住，显存不变",
                           "多机训练时程序一直没有反应，GPU利用率为0", "保存checkpoint时进程hang住"})
    EXPECT_TRUE(SaysItHangs(line)) << line;
  for (const char* line :
       {"两张显卡在训练同一个模型，速度正常", "升级驱动之后不再卡住，训练正常", "如果卡住，请检查防火墙的设置",
        "这样设置会卡住吗", "[INFO] 数据加载卡住，正在重试", "训练正常结束，没有任何问题"})
    EXPECT_FALSE(SaysItHangs(line)) << line;
  EXPECT_TRUE(SaysItIsSlow("两机训练比单机慢很多，不知道原因"));
  EXPECT_TRUE(SaysItIsSlow("多卡训练速度非常慢，每步要二十秒"));
  EXPECT_FALSE(SaysItIsSlow("换了网卡以后速度恢复正常"));
  EXPECT_FALSE(SaysItIsSlow("这样配置会不会变慢，请指教一下"));
}

TEST(ToldWords, ChineseSentencesTellWhatTheSlownessDependsOn) {
  EXPECT_TRUE(ChineseSaysItIsSlow("双机训练比单机训练慢8倍左右"));
  EXPECT_EQ(ChineseSlowCondition("双机训练比单机训练慢8倍左右"), "the number of nodes");
  EXPECT_EQ(ChineseSlowCondition("多卡训练比单卡训练还要慢"), "the number of GPUs");
  EXPECT_EQ(ChineseSlowCondition("训练到一半速度变得很慢"), "");
  EXPECT_FALSE(ChineseSaysItIsSlow("如果网络不好双机训练会慢8倍"));
}

TEST(ToldWords, HeadingsOfAFormReportNothing) {
  for (const char* line :
       {"### Error messages and logs", "## What failed to run", "**Error log**", "**Error messages:**"})
    EXPECT_FALSE(ReportsError(line)) << line;
  EXPECT_TRUE(ReportsError("agent error: **no route** to 10.0.0.3"));
}

TEST(ToldWords, AProgramSaysWhyItEnds) {
  for (const char* line :
       {"F0825 11:10:33.595355   331 device.cc:592] Check failed: status == OK (7 vs. 0) no context on device 3",
        "F20260825 11:10:33.595355   331 gid_table.h:59] Check failed: index < size",
        "thread 'router' panicked at src/router/worker.rs:212:14:",
        "panic: runtime error: index out of range [8] with length 8",
        "[LightGBM] [Fatal] Socket recv error, Connection reset by peer (code: 104)"}) {
    EXPECT_TRUE(ReportsError(line)) << line;
    EXPECT_TRUE(EndsItsProgram(line)) << line;
  }
  for (const char* line : {"I0825 11:10:33.595355   331 device.cc:592] 8 devices", "F0825 is the revision of the board",
                           "The main thread panicked at the sight of so many lines, and then it went on",
                           "[LightGBM] [Info] 4 machines", "F1234 10:00 meeting about the device.cc:59] change"})
    EXPECT_FALSE(EndsItsProgram(line)) << line;
}

TEST(ToldWords, WhatDoesNotGoOnHangs) {
  for (const char* line :
       {"once in the second epoch, the training process won't move on and stuck for a long time",
        "After the first evaluation it does not proceed, all GPUs at 100 %", "The bar is not moving since an hour"})
    EXPECT_TRUE(SaysItHangs(line)) << line;
  for (const char* line :
       {"It does not proceed if the port is closed", "The files will not be moved to the other disk",
        "Why does it not progress with two nodes?", "the learning rate doesn't change after the warmup",
        "The loss does not move for ten thousand steps", "it does not move the weights to the second GPU"})
    EXPECT_FALSE(SaysItHangs(line)) << line;
}

TEST(ToldWords, SomebodyIsAnsweredOrMisspells) {
  EXPECT_TRUE(SaysItHangs("the second epoch stucked with the log below"));
  EXPECT_TRUE(SaysItHangs("@someone with your patch it still freezes after ten steps"));
  EXPECT_TRUE(SaysItIsSlow("@someone the job slows down after the first epoch on both nodes"));
  EXPECT_TRUE(SaysItIsSlow("With the second node the throughput drops to 12 samples a second"));
  EXPECT_FALSE(SaysItIsSlow("The loss drops to 0.3 after the first epoch on both nodes"));
}

TEST(ToldWords, AQuestionASuppositionOrALineOfALogDoesNot) {
  for (const char* line :
       {"Why does it hang with two nodes?", "It no longer hangs since the update of the driver",
        "This can potentially cause a hang if this rank to GPU mapping is incorrect",
        "[rank1]:[W522 11:40:10 ProcessGroupNCCL.cpp:4561] using GPU 1; the job hangs if that is wrong",
        "With that setting it does not get stuck any more", "hangs", "loss=2.1 | stuck=0 | hang=0 | step=10"})
    EXPECT_FALSE(SaysItHangs(line)) << line;
}

TEST(ToldWords, NothingMoreComesIsAHang) {
  for (const char* line :
       {"the three lines above, then nothing, CPU at 100 %", "After that there is no output for 5 hours",
        "It prints the version and then nothing happens", "then nothing for half an hour, both GPUs idle",
        "the cards go to 100% and it just sits there", "Stuck at 43 % since this morning, GPUs idle",
        "no further output after the second barrier, memory stays the same",
        "full output of the first node, nothing more for 12 minutes", "No step after 45 min on any of the nodes",
        "Training froze and I found this on the node"})
    EXPECT_TRUE(SaysItHangs(line)) << line;
  for (const char* line :
       {"we changed the port, then nothing failed any more", "there is no output file in that folder",
        "It is not stuck any more since the update", "fixed by the new driver, no longer stuck at 43 %",
        "Nothing more was needed after the update, it ran for 20 minutes", "nothing happens if the variable is set"})
    EXPECT_FALSE(SaysItHangs(line)) << line;
}

TEST(ToldWords, ASentenceSaysThatTheJobIsSlow) {
  for (const char* line :
       {"three times slower on two nodes than on one", "Training is slow since the update of the image",
        "four nodes take much longer than two for the same data",
        "each epoch takes twice as long as on the old cluster", "busbw is only 12, I would expect 180 here",
        "I get 22 GB/s but in theory it should be near 90 GB/s", "Slow training with more than one host",
        "slower than expected on these machines", "Two of these machines, busbw is terrible here"})
    EXPECT_TRUE(SaysItIsSlow(line)) << line;
}

TEST(ToldWords, AThingThatIsSlowAPastOrAnAdviceIsNoSlowJob) {
  for (const char* line :
       {"Using the slow tokenizer for this model since no fast one is there",
        "It was slow before the update and now all is well", "the job is no longer slow with the new driver",
        "Is it slower with two nodes because of the switch?", "This may be slow on machines with few cores",
        "Note that the first step is slower because kernels are compiled",
        "The batch size should be 32 per device here", "I would expect it to start 2 processes per node",
        "It will be slower without this library installed"})
    EXPECT_FALSE(SaysItIsSlow(line)) << line;
}

TEST(ToldWords, ASentenceSaysThatTheJobStops) {
  EXPECT_FALSE(SaysItStops("It still stops at the third save, is that normal?"));
  EXPECT_TRUE(SaysItStops("It still stops at the third save, only without the error from before"));
  EXPECT_FALSE(SaysItStops("Early stopping: training stops at epoch seven"));
  EXPECT_FALSE(SaysItStops("It no longer stops at the third save"));
}

TEST(ToldWords, SlownessIsToldAroundTheLogAndNotInIt) {
  const std::string log = "step 1 loss=2.1\nWriting to this disk is slow on two nodes\nstep 2 loss=2.0\n";
  Fragment fragment;
  AddToldWords(log, fragment);
  AddToldWords("# the old one was quick\n" + log, fragment);
  AddToldWords("```\n" + log + "```\n", fragment);
  EXPECT_TRUE(fragment.events.empty());
  AddToldWords("Hi all,\ntraining is slow on two nodes\n\n" + log, fragment);
  AddToldWords(log + "That is three times slower than on one node\n", fragment);
  AddToldWords("```\n" + log + "```\nthree times slower than on one node\n", fragment);
  ASSERT_EQ(fragment.events.size(), 3u);
  for (const Event& event : fragment.events) EXPECT_EQ(event.kind, EventKind::told_slow);
}

TEST(ToldWords, WhatReadersUnderstoodIsNotToldAgain) {
  const std::string text = "ERROR one\nERROR two\n";
  Fragment fragment;
  Event& read = fragment.events.emplace_back();
  read.kind = EventKind::exception;
  read.source.line = 1;
  AddToldWords(text, fragment);
  ASSERT_EQ(fragment.events.size(), 2u);
  EXPECT_EQ(fragment.events[1].kind, EventKind::unread_error);
  EXPECT_EQ(fragment.events[1].source.line, 2u);
  EXPECT_EQ(fragment.events[1].text, "ERROR two");
}

TEST(ToldWords, InsideAFenceAreNoSentencesOfTheReporter) {
  Fragment fragment;
  AddToldWords("```\nThe warning says that the job hangs in this case\n```\n", fragment);
  EXPECT_TRUE(fragment.events.empty());
  AddToldWords("It is what it is: the job hangs in this case\n```\nstep 1\n```\n", fragment);
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::told_hang);
}

TEST(ToldWords, TheLastActivityBeforeAHangIsOfTheLog) {
  Fragment log, prose;
  AddToldWords("It hangs at the start.\n\n```\nINFO 11-08 11:50:03 cache.py:202] rank 1 builds its cache\n```\n", log);
  ASSERT_EQ(log.outlines.size(), 1u);
  EXPECT_EQ(log.outlines[0].last_source.line, 4u);
  AddToldWords("It hangs at step 5.\n\nINFO: rank 1 never gets to step 6 on this host\n```\nimport torch\n```\n",
               prose);
  EXPECT_TRUE(prose.outlines.empty());
}

TEST(ToldWords, BinaryAndHugeTextsAreLeftAlone) {
  Fragment fragment;
  AddToldWords(std::string("ERROR\0x", 7), fragment);
  AddToldWords("ERROR one\n" + std::string(300 << 10, 'x'), fragment);
  EXPECT_TRUE(fragment.events.empty());
}

TEST(ToldWords, CodeSettingsAndListMarksAreNoProse) {
  for (const char* line :
       {"1) a pod hangs: `node3:88:120 [0] transport/net_ib.cc:881 NCCL WARN NET/IB : Got completion`",
        "- last line of both ranks: `Loading weights took 3.1 s` then nothing; CPU near 1 %",
        "It hangs without NCCL_P2P_DISABLE=1 and --disable-custom-all-reduce on this box",
        "At about step 197 it simply stops, no exception. Is the switch the reason?",
        "> Same freeze here on two small boxes with the newest image"})
    EXPECT_TRUE(SaysItHangs(line)) << line;
  for (const char* line :
       {"With `NCCL_P2P_DISABLE=1` it trains without hanging on this box", "It simply stops with: out of memory error",
        "Does it hang at the barrier, or is it the loader?", "- [rank 3] stalled=0 running=8",
        "* freeze_layers: 12 of the encoder"})
    EXPECT_FALSE(SaysItHangs(line)) << line;
}

TEST(ToldWords, NumbersThatAreNotFinite) {
  for (const char* line : {"Since the update the loss becomes NaN after 300 steps",
                           "My loss is nan from the first step", "With fp16 the gradients are inf in every step"})
    EXPECT_TRUE(SaysItIsNotFinite(line)) << line;
  for (const char* line : {"The loss is not NaN any more with bf16", "If the loss is NaN the step is skipped",
                           "Is the loss nan on your machine as well?", "The loss goes down to 2.1 in the first epoch"})
    EXPECT_FALSE(SaysItIsNotFinite(line)) << line;
}

TEST(ToldWords, WhatIsAskedIsAnotherSentence) {
  EXPECT_TRUE(SaysItHangs("The program stucks here and how to solve this problem?"));
  EXPECT_FALSE(SaysItHangs("How does it get stuck here and how to solve this problem?"));
}

// Of a text whose log holds a traceback that is cut off.
Event CutErrorOf(const char* before) {
  Fragment fragment;
  Event& cut = fragment.events.emplace_back();
  cut.kind = EventKind::exception;
  cut.Make<Raised>().type = "an exception whose name is cut off";
  cut.source.line = 99;
  AddToldWords(std::string(before) + "\n```\nstep 3\n```\n", fragment);
  return fragment.events.front();
}

TEST(ToldWords, ASentenceNamesTheErrorOfACutTraceback) {
  const Event quoted = CutErrorOf("On two nodes I get `CommError: Run initialization has timed out.` at the start");
  EXPECT_EQ(quoted.As<Raised>().type, "CommError");
  EXPECT_EQ(quoted.text, "Run initialization has timed out.");
  EXPECT_EQ(CutErrorOf("Loading fails with a `RuntimeError` about missing keys").As<Raised>().type, "RuntimeError");
  EXPECT_EQ(CutErrorOf("All of it worked on one node, and here it does not").As<Raised>().type,
            "an exception whose name is cut off");
}

}  // namespace
}  // namespace tacet
