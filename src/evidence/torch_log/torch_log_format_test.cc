// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

Recognition Recognise(std::string_view bytes, std::string_view name) {
  return kTorchLogFormat.recognise(bytes.substr(0, kPrefixBytes), name);
}

TEST(TorchLogFormat, RecognisesEverySample) {
  const std::filesystem::path folder = TACET_SOURCE_DIR "/src/evidence/torch_log/samples";
  int samples = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = std::filesystem::relative(entry.path(), folder).string();
    EXPECT_NE(Recognise(SampleText(name), name), Recognition::no) << name;
    ++samples;
  }
  EXPECT_GT(samples, 20);
}

TEST(TorchLogFormat, IsSureOfWhatOnlyPyTorchAndItsLaunchersWrite) {
  EXPECT_EQ(Recognise(SampleText("torch_1_13_timeout_mixed.log"), "a.txt"), Recognition::yes);
  EXPECT_EQ(Recognise(SampleText("torch_2_11_timeout_rank3.log"), "a.txt"), Recognition::yes);
  EXPECT_EQ(Recognise(SampleText("torch_glog_build_rank1.log"), "a.txt"), Recognition::yes);
  EXPECT_EQ(Recognise(SampleText("torchrun_summary.log"), "a.txt"), Recognition::yes);
  EXPECT_EQ(Recognise(SampleText("attempt_0/5/error.json"), "error.json"), Recognition::yes);
  EXPECT_EQ(Recognise("Traceback (most recent call last):\n", "a.txt"), Recognition::yes);
  EXPECT_EQ(Recognise("srun: error: node7: task 3: Killed\n", "a.txt"), Recognition::yes);
}

TEST(TorchLogFormat, IsNotSureOfALogThatOnlyCountsSteps) {
  EXPECT_EQ(Recognise("step 1 loss 3.0\nstep 2 loss 2.9\n", "a.txt"), Recognition::maybe);
  std::string mostly_other;
  for (int i = 0; i < 100; ++i) mostly_other += "some text about nothing\n";
  EXPECT_EQ(Recognise(mostly_other + "step 1\n", "a.txt"), Recognition::no);
}

TEST(TorchLogFormat, TakesAnAlmostEmptyOutputFileByItsName) {
  EXPECT_EQ(Recognise("", "stdout_rank3.log"), Recognition::maybe);
  EXPECT_EQ(Recognise("", "attempt_0/3/stderr.log"), Recognition::maybe);
  EXPECT_EQ(Recognise("", "notes.txt"), Recognition::no);
  EXPECT_EQ(Recognise("hello from the job\n", "job/rank3.out"), Recognition::maybe);
  EXPECT_EQ(Recognise("hello from the job\n", "notes.txt"), Recognition::no);
  EXPECT_EQ(Recognise("[2026-11-15T00:17:46.563177] rank=3 pid 2788 job -\n", "stdout_rank3.log"), Recognition::maybe);
}

TEST(TorchLogFormat, LeavesNcclsLogToItsReader) {
  const std::string nccl =
      "vm:551:551 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.5<0>\n\n"
      "vm:551:601 [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer\n";
  EXPECT_EQ(Recognise(nccl, "stdout_rank0.log"), Recognition::no);
  EXPECT_EQ(Recognise(nccl + "[rank0]: step 3\n", "stdout_rank0.log"), Recognition::maybe);
  EXPECT_EQ(Recognise(SampleText("nccl_and_torch_rank0.log"), "stdout_rank0.log"), Recognition::maybe);
}

TEST(TorchLogFormat, LeavesOtherFormatsAlone) {
  EXPECT_EQ(Recognise("[  146.183364] Memory cgroup out of memory: Killed process 1533 (python3)\n", "rank3.log"),
            Recognition::no);
  EXPECT_EQ(Recognise("[Sat Nov 15 00:17:46 2026] NVRM: Xid (PCI:0000:3b:00): 79\n", "node.log"), Recognition::no);
  EXPECT_EQ(Recognise("Nov 15 00:17:46 node7 kernel: oom-kill:constraint=CONSTRAINT_MEMCG\n", "node.log"),
            Recognition::no);
  EXPECT_EQ(
      Recognise(
          "Timeout (0:05:00)!\nThread 0x00007f1c (most recent call first):\n  File \"/a/train.py\", line 88 in step\n",
          "stack_rank0.txt"),
      Recognition::no);
  EXPECT_EQ(Recognise("Thread 12345 (active+gil): \"MainThread\"\n    step (train.py:88)\n", "rank0.log"),
            Recognition::no);
  EXPECT_EQ(Recognise("{\"header\":{\"id\":\"0x1\"}}\n", "job-pid551.log"), Recognition::no);
  EXPECT_EQ(Recognise("# nThread 1 nGpus 8 minBytes 8 warmup iters: 5 iters: 20\n     1048576    262144   float   sum  "
                      "-1  41.13  25.49  47.80\n",
                      "job.log"),
            Recognition::no);
  EXPECT_EQ(Recognise(std::string_view("\x80\x02}q\0step 1 loss 2", 16), "train.log"), Recognition::no);
  EXPECT_EQ(Recognise("<system version=\"1\">\n", "node.log"), Recognition::no);
}

TEST(TorchLogFormat, SharesLinesWithOtherLogs) { EXPECT_TRUE(kTorchLogFormat.shares_lines); }

}  // namespace
}  // namespace tacet
