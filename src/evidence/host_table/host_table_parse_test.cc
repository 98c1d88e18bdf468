// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_parse.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "evidence/host_table/host_table_processes.h"

namespace tacet {
namespace {

TEST(HostTable, ReadsTheNodesOfSinfoOneByOne) {
  const HostTable table = ParseHostTable(
      "NODELIST    NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\n"
      "maple-04        1      gpu*     drained   64   2:32:1 515000        0      1   (null) Low RealMemory\n"
      "maple-05        1      gpu*        idle   64   2:32:1 515000        0      1   (null) none\n");
  ASSERT_EQ(table.nodes.size(), 2u);
  EXPECT_EQ(table.nodes[0].state.condition, NodeCondition::draining);
  EXPECT_EQ(table.nodes[0].state.word, "drained: Low RealMemory");
  EXPECT_EQ(table.nodes[0].state.partition, "gpu");
  EXPECT_EQ(table.nodes[1].state.condition, NodeCondition::takes_jobs);
}

TEST(HostTable, TheLoadOfAGpuStandsInTheRowBelowItsNumber) {
  const HostTable table = ParseHostTable(
      "kim@hx03:~$ nvidia-smi\n"
      "|   0  Tesla T4            Off  | 00000000:21:01.0 Off |                    0 |\n"
      "| N/A   57C    P0    41W /  70W |   2566MiB / 15109MiB |    100%      Default |\n"
      "|   1  Tesla T4            Off  | 00000000:21:02.0 Off |                    0 |\n"
      "| N/A   53C    P8     9W /  70W |      0MiB / 15109MiB |      0%      Default |\n"
      "|   2  Tesla T4            Off  | 00000000:21:03.0 Off |                    0 |\n");
  ASSERT_EQ(table.gpus.size(), 2u);
  EXPECT_EQ(table.gpus[0].load.host, "hx03");
  EXPECT_EQ(table.gpus[0].load.index, 0);
  EXPECT_EQ(table.gpus[0].load.percent, 100);
  EXPECT_EQ(table.gpus[0].load.watts, 41);
  EXPECT_EQ(table.gpus[0].load.most_watts, 70);
  EXPECT_EQ(table.gpus[0].load.memory_mib, 2566);
  EXPECT_EQ(table.gpus[1].load.index, 1);
  EXPECT_EQ(table.gpus[1].load.percent, 0);
  EXPECT_EQ(table.gpus[1].line, 5u);
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(HostTable, RowsOfGpustat) {
  const HostTable table = ParseHostTable(
      "[0] NVIDIA A100-SXM4-80GB | 41'C, 100 %,  88 / 400 W | 31000 / 81920 MB | anna(30990M)\n"
      "[1] Tesla V100 | 36'C,   0 % |     0 / 32510 MB |\n");
  ASSERT_EQ(table.gpus.size(), 2u);
  EXPECT_EQ(table.gpus[0].load.watts, 88);
  EXPECT_EQ(table.gpus[0].load.most_watts, 400);
  EXPECT_EQ(table.gpus[0].load.memory_mib, 31000);
  EXPECT_EQ(table.gpus[1].load.percent, 0);
  EXPECT_EQ(table.gpus[1].load.watts, -1);
}

TEST(HostTable, OfSeveralRowsOfAFileSystemTheLastCountsAndTheFirstIsKept) {
  const HostTable table = ParseHostTable(
      "Filesystem  Size  Used Avail Use% Mounted on\n"
      "tmpfs        24G   40M   24G   1% /dev/shm\n"
      "tmpfs        24G   23G  1.1G  96% /dev/shm\n"
      "/dev/loop3   64M   64M     0 100% /snap/core/9\n"
      "/dev/sda1 ext4 9.8G 9.8G 0 100% /\n");
  ASSERT_EQ(table.spaces.size(), 2u);
  EXPECT_EQ(table.spaces[0].use.mount, "/dev/shm");
  EXPECT_EQ(table.spaces[0].use.percent, 96);
  EXPECT_EQ(table.spaces[0].use.first_percent, 1);
  EXPECT_EQ(table.spaces[0].use.rows, 2);
  EXPECT_EQ(table.spaces[1].use.mount, "/");
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(HostTable, TheMarkBehindAStateOfSinfo) {
  const HostTable table = ParseHostTable(
      "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
      "cpu          up 7-00:00:00     55  drng@ a[001-030],b[001-006]\n"
      "cpu          up 7-00:00:00      1  fail* b007\n"
      "gpu*         up   infinite      7    mix g[006-008]\n"
      "old        down   infinite      2   idle o[1-2]\n");
  ASSERT_EQ(table.nodes.size(), 4u);
  EXPECT_EQ(table.nodes[0].state.condition, NodeCondition::draining);
  EXPECT_EQ(table.nodes[0].state.count, 55);
  EXPECT_EQ(table.nodes[1].state.condition, NodeCondition::silent);
  EXPECT_EQ(table.nodes[1].state.nodes, "b007");
  EXPECT_EQ(table.nodes[2].state.condition, NodeCondition::takes_jobs);
  EXPECT_EQ(table.nodes[2].state.partition, "gpu");
  EXPECT_EQ(table.nodes[3].state.condition, NodeCondition::maintained);
}

TEST(HostTable, PrologsAndReasons) {
  const HostTable table = ParseHostTable(
      "salloc: Prolog failure on node m003-006\n"
      "srun: error: Task launch for StepId=12.0 failed on node ry044: Job prolog failed\n"
      "REASON               USER        TIMESTAMP           NODELIST\n"
      "Not responding       slurm       2025-03-12T11:02:12 hx[01-02]\n");
  ASSERT_EQ(table.nodes.size(), 3u);
  EXPECT_EQ(table.nodes[0].state.nodes, "m003-006");
  EXPECT_EQ(table.nodes[0].state.condition, NodeCondition::prolog_failed);
  EXPECT_EQ(table.nodes[1].state.nodes, "ry044");
  EXPECT_EQ(table.nodes[2].state.condition, NodeCondition::silent);
  EXPECT_EQ(table.nodes[2].state.word, "Not responding");
}

TEST(HostTable, OtherLinesAreNone) {
  for (const char* line : {"| step | loss | 100% |", "epoch 3 12G 4G 8G 50% /data", "[0] loss | 3.1 | 100 % done",
                           "train up 3 4 idle now then", "The prolog failed on node 7, I think",
                           "gpu up 10:00 x idle g1", "| 0 | NVIDIA | 3 |"}) {
    EXPECT_FALSE(IsHostLine(line)) << line;
  }
}

TEST(HostTable, ReadsTheStatesOfProcessesByTheNamesOfTheColumns) {
  const HostTable ps = ParseHostTable(
      "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
      "mia        61022  101  4.2 912112 281120 ?       Rl   09:12  61:20 python3 main.py --rank=0\n"
      "mia        61023 97.0  4.1 911910 279014 ?       Tl   09:12  58:02 python3 main.py --rank=1\n"
      "mia        61040  0.0  0.0  14208  3112 pts/2    R+   10:20   0:00 ps aux\n\n"
      "step 12 loss 3.1 T 4 5 6\n");
  ASSERT_EQ(ps.processes.size(), 3u);
  EXPECT_EQ(ps.processes[0].state, 'R');
  EXPECT_EQ(ps.processes[1].pid, 61023);
  EXPECT_EQ(ps.processes[1].state, 'T');
  EXPECT_EQ(ps.processes[1].rank, 1);
  EXPECT_EQ(ps.processes[2].rank, -1);
  const HostTable twice =
      ParseHostTable("    PID S CMD\n  77 D python3 t.py # rank 2\n    PID S CMD\n  77 Z [python3] <defunct>\n");
  ASSERT_EQ(twice.processes.size(), 1u) << "the last list counts";
  EXPECT_EQ(twice.processes[0].state, 'Z');
  EXPECT_TRUE(ParseHostTable("  PID TTY          TIME CMD\n  77 ?     00:00:01 python3\n").processes.empty())
      << "without states";
  EXPECT_FALSE(IsHostLine("|  GPU   GI   CI        PID   Type   Process name   |"));
}

TEST(HostTable, TheRankOfACommandIsTheOneThatItNames) {
  EXPECT_EQ(RankOfCommand("python3 t.py --rank=12 --local_rank=4"), 12);
  EXPECT_EQ(RankOfCommand("python3 t.py --local-rank 3"), 3);
  EXPECT_EQ(RankOfCommand("python3 t.py --node_rank=1 --local_rank=3"), -1);
  EXPECT_EQ(RankOfCommand("python3 t.py --world_rank_file r.txt"), -1);
  EXPECT_EQ(RankOfCommand("python3 envs.py # rank 2"), 2);
}

TEST(HostTable, ReadsTheCsvOfNvidiaSmiByTheNamesOfItsColumns) {
  const HostTable table = ParseHostTable(
      "index, name, temperature.gpu, clocks.sm [MHz], power.draw [W], clocks_event_reasons.hw_thermal_slowdown\n"
      "0, NVIDIA H100 80GB HBM3, 61, 1755 MHz, 655.10 W, Not Active\n"
      "1, NVIDIA H100 80GB HBM3, 88, 855 MHz, 301.15 W, Active\n");
  ASSERT_EQ(table.gpus.size(), 2U);
  EXPECT_EQ(table.gpus[1].load.index, 1);
  EXPECT_NEAR(table.gpus[1].load.watts, 301.15, 0.01);
  EXPECT_EQ(table.gpus[1].text,
            "index=1, temperature.gpu=88, clocks.sm=855 MHz, power.draw=301.15 W, "
            "clocks_event_reasons.hw_thermal_slowdown=Active");
  EXPECT_EQ(table.not_understood, 0U);
  EXPECT_TRUE(ParseHostTable("epoch, loss, power\n0, 1.5, 88\n").gpus.empty());
}

constexpr std::string_view kHeadOfDiag =
    "| Diagnostic                | Result                     |\n"
    "+===========================+============================+\n"
    "|-----  Deployment  --------+----------------------------|\n";

TEST(HostTable, ReadsWhichTestOfDcgmFailedOnWhichGpu) {
  const HostTable table = ParseHostTable(std::string(kHeadOfDiag) +
                                         "| Persistence Mode          | Fail                       |\n"
                                         "| Page Retirement/Row Remap | Fail                       |\n"
                                         "| Error                     | GPU 6 had errors and row   |\n"
                                         "|                           | remapping failed.          |\n"
                                         "|-----  Hardware  ----------+----------------------------|\n"
                                         "| GPU Memory                | Fail - GPU: 6              |\n"
                                         "| PCIe                      | Pass - All                 |\n"
                                         "| Pulse Test                | Skip - All                 |\n"
                                         "+---------------------------+----------------------------+\n");
  std::vector<std::string> tests;
  for (const CheckRow& row : table.checks)
    if (!row.check.remark)
      tests.push_back(row.check.test + (row.check.failed ? " failed on " + row.check.gpus : " passed") +
                      (row.check.of_setup ? ", setup" : ""));
  EXPECT_EQ(tests,
            (std::vector<std::string>{"Persistence Mode failed on , setup", "Page Retirement/Row Remap failed on 6",
                                      "GPU Memory failed on 6", "PCIe passed"}));
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(HostTable, AStatusOfTheFabricOtherThanSuccessIsKept) {
  const auto read = [](const std::string& state, const std::string& status) {
    return ParseHostTable("    Fabric\n        State                : " + state +
                          "\n        Status               : " + status + "\n        CliqueId             : 0\n")
        .fabrics;
  };
  ASSERT_EQ(read("Completed", "Insufficient Resources").size(), 1u);
  EXPECT_EQ(read("Completed", "Insufficient Resources")[0].status, "Insufficient Resources");
  EXPECT_TRUE(read("Completed", "Success").empty());
  EXPECT_TRUE(read("In Progress", "N/A").empty()) << "it may still become ready";
}

TEST(HostTable, ReadsTheRowsOfSingleGpusBelowATestOfDcgm) {
  const HostTable table = ParseHostTable(std::string(kHeadOfDiag) +
                                         "|-----  Hardware  ----------+----------------------------|\n"
                                         "| memory                    | Fail                       |\n"
                                         "|                           | GPU0: Pass GPU1: Fail      |\n"
                                         "| diagnostic                | Pass                       |\n"
                                         "|                           | GPU0: Pass GPU1: Pass      |\n");
  ASSERT_FALSE(table.checks.empty());
  EXPECT_EQ(table.checks[0].check.test, "memory");
  EXPECT_EQ(table.checks[0].check.gpus, "1");
  EXPECT_FALSE(table.checks.back().check.failed);
}

TEST(HostTable, TheExporterTellsTheLastXidOfAGpu) {
  const HostTable table = ParseHostTable(
      "# TYPE DCGM_FI_DEV_XID_ERRORS gauge\n"
      "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",pci_bus_id=\"00000000:1B:00.0\",Hostname=\"gx14\"} 0\n"
      "DCGM_FI_DEV_XID_ERRORS{gpu=\"1\",pci_bus_id=\"00000000:43:00.0\",Hostname=\"gx14\"} 79\n"
      "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",pci_bus_id=\"00000000:43:00.0\",Hostname=\"gx14\"} 61\n");
  ASSERT_EQ(table.xids.size(), 1u);
  EXPECT_EQ(table.xids[0].number, 79);
  EXPECT_EQ(table.xids[0].pci, "0000:43:00");
  EXPECT_EQ(table.not_understood, 0u);
}

TEST(HostTable, ReasonsOfTheClockInAPartOfTheReport) {
  const HostTable table = ParseHostTable(
      "    Clocks Event Reasons\n        Idle                              : Not Active\n"
      "        SW Power Cap                      : Active\n        HW Slowdown                       : Not Active\n"
      "            HW Thermal Slowdown           : Active\n");
  ASSERT_EQ(table.gpus.size(), 1u);
  EXPECT_EQ(table.gpus[0].text,
            "clocks_event_reasons.idle=Not Active, clocks_event_reasons.sw_power_cap=Active, "
            "clocks_event_reasons.hw_slowdown=Not Active, clocks_event_reasons.hw_thermal_slowdown=Active");
  EXPECT_TRUE(IsHostLine("   HW Slowdown                       : Not Active"));
  EXPECT_FALSE(IsHostLine("   Slowdown of the link : Active"));
}

}  // namespace
}  // namespace tacet
