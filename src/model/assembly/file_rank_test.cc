// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/file_rank.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

int RankOf(std::string_view path) {
  const auto rank = RankFromPath(path);
  return rank ? rank->value : -1;
}

TEST(RankFromPath, TakesTheNumberAfterTheWordRank) {
  EXPECT_EQ(RankOf("nccl_trace_rank_3"), 3);
  EXPECT_EQ(RankOf("stdout_rank3.log"), 3);
  EXPECT_EQ(RankOf("trace_rank0.json.gz"), 0);
  EXPECT_EQ(RankOf("rank-03.txt"), 3);
  EXPECT_EQ(RankOf("Rank=12.log"), 12);
  EXPECT_EQ(RankOf("GLOBAL_RANK3.log"), 3);
  EXPECT_EQ(RankOf("globalrank3.log"), 3);
  EXPECT_EQ(RankOf("job-4711-rank-3-attempt-1.log"), 3);
  EXPECT_EQ(RankOf("rank_3_of_8.log"), 3);
  EXPECT_EQ(RankOf("llama70b_rank16383.err"), 16383);
}

TEST(RankFromPath, LooksIntoTheNearestFolders) {
  EXPECT_EQ(RankOf("rank-3/stderr.log"), 3);
  EXPECT_EQ(RankOf("out/1/rank.3/stdout"), 3) << "mpirun --output-filename";
  EXPECT_EQ(RankOf("run1/rank_3/logs/a.txt"), 3);
  EXPECT_EQ(RankOf("rank_3/x/y/z/a.txt"), -1) << "too far away to be meant";
  EXPECT_EQ(RankOf("rank5/nccl_rank3.log"), 3) << "the name comes first";
}

TEST(RankFromPath, KnowsTorchrunsLogTree) {
  EXPECT_EQ(RankOf("none_x8f2/attempt_0/3/stdout.log"), 3);
  EXPECT_EQ(RankOf("attempt_1/0/error.json"), 0);
  EXPECT_EQ(RankOf("3/stderr.log"), 3);
}

TEST(RankFromPath, TakesTheOnlyNumberOfAName) {
  EXPECT_EQ(RankOf("_dump_12.json"), 12);
  EXPECT_EQ(RankOf("nccl_trace.7.pickle"), 7);
  EXPECT_EQ(RankOf("worker3.out"), 3);
  EXPECT_EQ(RankOf("worker_3.out.gz"), 3);
  EXPECT_EQ(RankOf("3.log"), 3);
  EXPECT_EQ(RankOf("log3.txt"), 3);
  EXPECT_EQ(RankOf("trainer-3.log"), 3);
  EXPECT_EQ(RankOf("0"), 0);
  EXPECT_EQ(RankOf("gpt2-worker-5.log"), 5) << "a worker's number is its own, whatever else is numbered";
}

TEST(RankFromPath, ANumberInTheMiddleOfATitleIsNone) {
  EXPECT_EQ(RankOf("cuda_802_not_ready.txt"), -1);
  EXPECT_EQ(RankOf("issue-1405.txt"), -1);
  EXPECT_EQ(RankOf("train_3_stdout.log"), 3);
}

TEST(RankFromPath, IsNotMisledByOtherNumbers) {
  for (const char* path : {"vm-pid551.log",            // a process
                           "core.4711",                // the same
                           "pyspy_4711.txt",           // the same
                           "py-spy.4711.txt",          // the same
                           "slurm-123456.out",         // a job
                           "slurm-123456_3.out",       // an array job
                           "nccl.node01.12345.log",    // NCCL_DEBUG_FILE=nccl.%h.%p
                           "nccl_log.ip-10-0-0-7.99",  // the same on EC2
                           "node3.log",                // a host
                           "node_3.log",               //
                           "h100.log",                 // a GPU
                           "gpt2.log",                 // a model
                           "llama70b.log",             //
                           "log_v2.txt",               // a version
                           "step_1000.json",           // progress
                           "ckpt-7.log",               //
                           "train.log.1",              // an older turn of a log
                           "messages.2",
                           "dmesg.1",          //
                           "trace.json.bz2",   // a compression
                           "20240115.log",     // a day
                           "2024/train.log",   // a year
                           "48213/job.log",    // a job's folder
                           "local_rank3.log",  // the rank on its node
                           "localrank3.log",
                           "node_rank_3.log",
                           "local-rank-3/x.log",
                           "frank3.log",  // a person
                           "ranking5.txt",
                           "rank.log",
                           "stdout.log",
                           "",
                           "/",
                           "rank_99999999999.log",
                           "a_1_b_2.log"})
    EXPECT_EQ(RankOf(path), -1) << path;
}

TEST(RankFromPath, SkipsNodeRanksOnTheWayToTheRank) {
  EXPECT_EQ(RankOf("node_rank1_rank3.log"), 3);
  EXPECT_EQ(RankOf("rank3_node_rank1.log"), 3);
  EXPECT_EQ(RankOf("rank7_local_rank3.log"), 7);
}

}  // namespace
}  // namespace tacet
