// SPDX-License-Identifier: Apache-2.0
#include "launch/job_processes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string_view>
#include <thread>

namespace tacet {
namespace {

using namespace std::string_view_literals;

JobMemberProcess Process(int64_t pid, int64_t parent, const char* program, int rank) {
  JobMemberProcess process;
  process.pid = pid;
  process.parent = parent;
  process.program = program;
  process.rank = rank;
  return process;
}

std::vector<int64_t> Pids(const std::vector<JobMemberProcess>& processes) {
  std::vector<int64_t> pids;
  for (const JobMemberProcess& process : processes) pids.push_back(process.pid);
  return pids;
}

TEST(JobProcesses, ReadsANameWithBracketsAndBlanks) {
  JobMemberProcess process;
  ASSERT_TRUE(ParseStatLine("4711 (py (x) thon) T 4700 4711 4700 0 -1 4194304 9 0 3 0 200 100 7 3 20 0 9 0 8273645 1 2",
                            &process));
  EXPECT_EQ(process.program, "py (x) thon");
  EXPECT_EQ(process.parent, 4700);
  EXPECT_EQ(process.state, 'T');
  EXPECT_EQ(process.start_jiffies, 8273645u);
  EXPECT_GT(process.cpu_ns, 0);
  EXPECT_FALSE(ParseStatLine("4711 (cut", &process));
}

TEST(JobProcesses, PytorchsRankWinsOverTheSchedulers) {
  EXPECT_EQ(RankFromEnviron("SLURM_PROCID=0\0RANK=5\0"sv), 5);
  EXPECT_EQ(RankFromEnviron("PATH=x\0SLURM_PROCID=3"sv), 3);
  EXPECT_EQ(RankFromEnviron("LOCAL_RANK=1\0RANK=x\0"sv), -1);
  EXPECT_TRUE(EnvironHas("A=1\0TACET_RUN_DIR=/r\0"sv, "TACET_RUN_DIR", "/r"));
  EXPECT_FALSE(EnvironHas("TACET_RUN_DIR=/run2\0"sv, "TACET_RUN_DIR", "/run"));
}

TEST(JobProcesses, KnowsWhetherASignalIsHandled) {
  EXPECT_TRUE(CatchesSignal("SigIgn:\t0\nSigCgt:\t0000000000000002\n", 2));
  EXPECT_FALSE(CatchesSignal("SigCgt:\t0000000000000002\n", 61));
  EXPECT_TRUE(CatchesSignal("SigCgt:\t1000000000000000\n", 61));
}

TEST(JobProcesses, DataLoadersAndLaunchersAreNoRanks) {
  JobMemberProcess launcher = Process(10, 1, "python3", -1);
  const auto ranks = PickRanks({launcher, Process(11, 10, "python3", 0), Process(12, 10, "python3", 1),
                                Process(13, 11, "python3", 0), Process(14, 12, "pt_data_worker", 1)});
  EXPECT_EQ(Pids(ranks), (std::vector<int64_t>{11, 12}));
}

TEST(JobProcesses, AShellAroundARankIsNotTheRank) {
  JobMemberProcess shell = Process(10, 1, "bash", 3);
  shell.wrapper = true;
  EXPECT_EQ(Pids(PickRanks({shell, Process(11, 10, "python3", 3)})), (std::vector<int64_t>{11}));
}

TEST(JobProcesses, TorchrunBelowSrunHasANumberThatIsNotARank) {
  const auto ranks =
      PickRanks({Process(10, 1, "python3", 0), Process(11, 10, "python3", 0), Process(12, 10, "python3", 1)});
  EXPECT_EQ(Pids(ranks), (std::vector<int64_t>{11, 12}));
}

TEST(JobProcesses, WithoutNumbersTheLeavesCount) {
  EXPECT_EQ(Pids(PickRanks({Process(10, 1, "python3", -1), Process(11, 10, "solver", -1)})),
            (std::vector<int64_t>{11}));
}

// The plugin's own thread reads its siblings' states; that is no progress of the program.
TEST(JobProcesses, ServiceThreadsAreToldByTheirNames) {
  EXPECT_TRUE(IsServiceThread("NCCL Progress 0\n"));
  EXPECT_TRUE(IsServiceThread("tacet-keeper\n"));
  EXPECT_FALSE(IsServiceThread("python3\n"));
  std::atomic<bool> ready = false, done = false;
  std::thread service([&] {
    ::pthread_setname_np(::pthread_self(), "tacet-keeper");
    for (int i = 0; i < 200; ++i) std::ifstream("/proc/self/status").ignore(1 << 20);
    ready = true;
    while (!done) std::this_thread::yield();
  });
  while (!ready) std::this_thread::yield();
  EXPECT_GT(ReadServiceUse(::getpid()).io_bytes, 50'000);
  EXPECT_GT(FindThreadNamed(::getpid(), "tacet-keeper"), 0);
  EXPECT_EQ(FindThreadNamed(::getpid(), "tacet-nobody"), -1);
  done = true;
  service.join();
  EXPECT_EQ(ReadServiceUse(::getpid()).io_bytes, 0);
}

}  // namespace
}  // namespace tacet
