// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "evidence/format.h"
#include "evidence/nccl_tests/nccl_tests_operation.h"

namespace tacet {

extern const Format kNcclTestsFormat;

namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/nccl_tests/samples/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Fragment Read(std::string_view bytes, std::string_view path = "output.txt") {
  Fragment fragment;
  kNcclTestsFormat.read({path, bytes, false}, fragment);
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, bytes.size());
  return fragment;
}

TEST(NcclTests, ReadsATableOfToday) {
  const Fragment fragment = Read(Sample("all_reduce_2.19.txt"));
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  const BenchmarkRun& run = fragment.benchmark_runs[0];
  EXPECT_EQ(run.operation, "all_reduce");
  EXPECT_FALSE(run.operation_assumed);
  EXPECT_EQ(run.version, "2.19.6");
  EXPECT_EQ(run.library, "2.28.3");
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.devices[3].host, "node3");
  EXPECT_EQ(run.devices[3].name, "NVIDIA H200");
  EXPECT_EQ(run.devices[3].pid, 4025);
  ASSERT_EQ(run.lines.size(), 8u);
  EXPECT_EQ(run.lines[7].bytes, 16777216);
  EXPECT_EQ(run.lines[7].type, DataType::float32);
  EXPECT_EQ(run.lines[7].reduction, ReduceOp::sum);
  EXPECT_DOUBLE_EQ(run.lines[7].in_place.time_us, 8955.69);
  EXPECT_DOUBLE_EQ(run.lines[7].in_place.bus_gbs, 2.81);
  EXPECT_EQ(run.lines[7].in_place.wrong, 0);
  EXPECT_EQ(run.lines[7].source.line, 21u);
  EXPECT_EQ(run.failed_checks, 0);
  EXPECT_DOUBLE_EQ(run.average_bus_gbs, 1.00478);
  EXPECT_TRUE(run.concluded);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
  EXPECT_TRUE(fragment.diagnostics.empty());
}

TEST(NcclTests, ReadsTheJsonOfTheSameRun) {
  const Fragment fragment = Read(Sample("all_reduce_2.19.json"));
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  const BenchmarkRun& run = fragment.benchmark_runs[0];
  EXPECT_EQ(run.operation, "all_reduce");
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.library, "2.28.3");
  ASSERT_EQ(run.lines.size(), 8u);
  EXPECT_DOUBLE_EQ(run.lines[7].out_of_place.time_us, 9801.105175);
  EXPECT_EQ(run.lines[7].root, -1);
  EXPECT_TRUE(run.concluded);
  EXPECT_TRUE(run.failure.empty());
  EXPECT_EQ(run.failed_checks, 0);
}

TEST(NcclTests, ReadsEachIterationWhereTheJsonTellsThem) {
  const Fragment fragment = Read(Sample("per_iteration_2.19.json"));
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  for (const BenchmarkLine& line : fragment.benchmark_runs[0].lines) {
    EXPECT_EQ(line.out_of_place.iterations_us.size(), 10u);
    EXPECT_EQ(line.in_place.iterations_us.size(), 10u);
  }
}

TEST(NcclTests, TellsALongTimeFromARoot) {
  const Fragment fragment = Read(Sample("broadcast_2.11_differences.txt"), "broadcast.txt");
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  const BenchmarkRun& run = fragment.benchmark_runs[0];
  EXPECT_EQ(run.operation, "broadcast");
  EXPECT_TRUE(run.operation_assumed);
  ASSERT_EQ(run.lines.size(), 3u);
  EXPECT_EQ(run.lines[2].root, 0);
  EXPECT_DOUBLE_EQ(run.lines[2].out_of_place.time_us, 123456);
  // The same without a root: the first figure is an integer.
  const Fragment bare = Read(
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "  2147483648     536870912   float     sum    16215  132.44  231.76    N/A    16203  132.53  231.93    N/A\n"
      "  2147483648     536870912   float              16215  132.44  231.76    N/A    16203  132.53  231.93    N/A\n");
  ASSERT_EQ(bare.benchmark_runs.size(), 1u);
  ASSERT_EQ(bare.benchmark_runs[0].lines.size(), 2u);
  for (const BenchmarkLine& line : bare.benchmark_runs[0].lines) {
    EXPECT_EQ(line.root, -1);
    EXPECT_DOUBLE_EQ(line.out_of_place.time_us, 16215);
    EXPECT_DOUBLE_EQ(line.in_place.bus_gbs, 231.93);
    EXPECT_EQ(line.in_place.wrong, -1) << "N/A";
  }
}

TEST(NcclTests, RoundingDifferencesAreNoWrongElements) {
  const std::string heading =
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "     1048576        262144     float     sum    82.14   12.77   12.77  1e-06    81.70   12.83   12.83  1e-06\n";
  const Fragment fine = Read(heading + "# Out of bounds values : 0 OK\n");
  EXPECT_EQ(fine.benchmark_runs[0].lines[0].out_of_place.wrong, 0);
  const Fragment bad = Read(heading + "# Out of bounds values : 2 FAILED\n");
  EXPECT_EQ(bad.benchmark_runs[0].lines[0].out_of_place.wrong, -1);
  EXPECT_EQ(bad.benchmark_runs[0].failed_checks, 2);
}

TEST(NcclTests, NoDifferenceAtAllIsAPassedCheck) {
  const Fragment cut = Read(
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "     8388608       2097152     float     sum    520.4   16.12   16.12  0e+00    549.1   15.28   15.28  1e-06\n");
  EXPECT_EQ(cut.benchmark_runs[0].lines[0].out_of_place.wrong, 0);
  EXPECT_EQ(cut.benchmark_runs[0].lines[0].in_place.wrong, -1) << "the summary is cut off";
}

TEST(NcclTests, TakesTablesApartAndPutsBrokenRowsTogether) {
  const Fragment fragment = Read(Sample("two_tables_srun_labels.txt"));
  ASSERT_EQ(fragment.benchmark_runs.size(), 2u);
  const BenchmarkRun& first = fragment.benchmark_runs[0];
  EXPECT_EQ(first.operation, "all_reduce");
  EXPECT_FALSE(first.operation_assumed) << "the echoed command line tells";
  ASSERT_EQ(first.lines.size(), 3u);
  EXPECT_EQ(first.lines[1].bytes, 2097152);
  EXPECT_EQ(first.lines[1].root, -1);
  EXPECT_DOUBLE_EQ(first.lines[1].in_place.bus_gbs, 15.67);
  const BenchmarkRun& second = fragment.benchmark_runs[1];
  EXPECT_EQ(second.operation, "sendrecv");
  ASSERT_EQ(second.lines.size(), 2u);
  EXPECT_EQ(second.lines[0].reduction, ReduceOp::unknown);
  EXPECT_EQ(second.lines[0].in_place.wrong, -1);
  EXPECT_EQ(second.devices[0].pid, 31101);
}

TEST(NcclTests, KeepsInterleavedTablesOfTasksApart) {
  const std::string table = Sample("all_reduce_2.19.txt");
  std::string mixed;
  size_t at = 0;
  while (at < table.size()) {
    const size_t end = std::min(table.find('\n', at), table.size());
    for (const char* label : {"0: ", "1: "}) mixed += label + table.substr(at, end - at) + "\n";
    at = end + 1;
  }
  const Fragment fragment = Read(mixed);
  ASSERT_EQ(fragment.benchmark_runs.size(), 2u);
  for (const BenchmarkRun& run : fragment.benchmark_runs) {
    EXPECT_EQ(run.lines.size(), 8u);
    EXPECT_EQ(run.ranks, 4);
  }
}

TEST(NcclTests, ReadsPerIterationColumnsAndTimestamps) {
  const Fragment fragment = Read(
      "#       size         count      type   redop    root     time   algbw   busbw #wrong    i_min    i_max    i_p99 "
      "   "
      "i_cv%     time   algbw   busbw #wrong    i_min    i_max    i_p99    i_cv%           timestamp\n"
      "     1048576        262144     float     sum      -1    82.14   12.77   12.77      0    80.01    99.00    98.00 "
      "    "
      "2.10    81.70   12.83   12.83      3    80.01    99.00    98.00     2.10  2026-11-15 00:30:05\n");
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  ASSERT_EQ(fragment.benchmark_runs[0].lines.size(), 1u);
  EXPECT_DOUBLE_EQ(fragment.benchmark_runs[0].lines[0].in_place.time_us, 81.70);
  EXPECT_EQ(fragment.benchmark_runs[0].lines[0].in_place.wrong, 3);
}

TEST(NcclTests, CountsWrongElementsAndItsSummary) {
  const Fragment fragment = Read(Sample("wrong_2.16.txt"));
  const BenchmarkRun& run = fragment.benchmark_runs.at(0);
  EXPECT_EQ(run.lines[1].in_place.wrong, 512);
  EXPECT_EQ(run.lines[1].out_of_place.wrong, 0);
  EXPECT_EQ(run.lines[2].out_of_place.wrong, 1e6);
  EXPECT_EQ(run.failed_checks, 3);
}

TEST(NcclTests, KeepsWhyItStopped) {
  const BenchmarkRun run = Read(Sample("failed_2.18.txt")).benchmark_runs.at(0);
  EXPECT_TRUE(run.failure.starts_with("remote process exited or there was a network error")) << run.failure;
  EXPECT_EQ(run.failed_at.line, 8u);
  EXPECT_FALSE(run.concluded);
}

TEST(NcclTests, AWarningOfARunThatEndedIsNoFailure) {
  const Fragment fragment = Read(Sample("all_reduce_2.19.txt") + "# error: NET/Plugin: no plugin found\n");
  EXPECT_TRUE(fragment.benchmark_runs.at(0).failure.empty());
}

TEST(NcclTests, SaysThatTheEndIsMissing) {
  for (const char* name : {"all_reduce_2.19.txt", "all_reduce_2.19.json"}) {
    const std::string text = Sample(name);
    const Fragment fragment = Read(std::string_view(text).substr(0, text.size() * 8 / 10));
    ASSERT_EQ(fragment.benchmark_runs.size(), 1u) << name;
    EXPECT_FALSE(fragment.benchmark_runs[0].concluded);
    EXPECT_GT(fragment.benchmark_runs[0].lines.size(), 2u);
    EXPECT_LT(fragment.benchmark_runs[0].lines.size(), 8u);
    ASSERT_EQ(fragment.diagnostics.size(), 1u);
    EXPECT_EQ(fragment.diagnostics[0].code, "truncated");
  }
}

TEST(NcclTests, NamesAnOperationOnlyWhereTheFiguresAllowIt) {
  EXPECT_EQ(OperationOfPath("runs/nccl_reducescatter.log"), "reduce_scatter");
  EXPECT_EQ(OperationOfPath("all_reduce/output.txt"), "") << "folders are not asked";
  EXPECT_EQ(OperationOfFactor(8, 1.75), "all_reduce");
  EXPECT_EQ(OperationOfFactor(2, 1.0), "") << "two ranks: everything has the same factor";
  EXPECT_FALSE(FitsFactor("all_gather", 8, 1.75));
  EXPECT_TRUE(FitsFactor("all_gather", 8, 0.875));
  EXPECT_EQ(OperationOfProgram("alltoallv_perf"), "all_to_all_v");
}

TEST(NcclTests, IsRecognisedByItsOwnLinesOnly) {
  EXPECT_EQ(kNcclTestsFormat.recognise("# Avg bus bandwidth    : 1.0\n", "x"), Recognition::yes);
  for (const char* text : {"", "# size of the table\n", "{\"version\":3,\"name\":\"x\"}", "12 3 float sum\n",
                           "# nThread safe code\n", "time algbw busbw\n"})
    EXPECT_EQ(kNcclTestsFormat.recognise(text, "all_reduce_perf.txt"), Recognition::no) << text;
}

TEST(NcclTests, ARunIsToldHowItWasMadeToGo) {
  EXPECT_EQ(SettingIn("+ NCCL_ALGO=Ring NCCL_PROTO=LL128 ./all_reduce_perf -b 8", "NCCL_PROTO"), "LL128");
  EXPECT_EQ(SettingIn("mpirun -x NCCL_ALGO=Ring,Tree -np 8 all_reduce_perf", "NCCL_ALGO"), "Ring,Tree");
  EXPECT_EQ(SettingIn("srun --export=ALL,NCCL_ALGO=Ring,NCCL_PROTO=LL all_reduce_perf", "NCCL_ALGO"), "Ring");
  EXPECT_EQ(SettingIn("h:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree", "NCCL_ALGO"), "Tree");
  EXPECT_EQ(SettingIn("MY_NCCL_ALGO=x NCCL_ALGOS=y", "NCCL_ALGO"), "");
  EXPECT_EQ(SettingIn("export NCCL_ALGO='Ring'", "NCCL_ALGO"), "Ring");
}

TEST(NcclTests, SettingsOfAScriptHoldForTheRunsThatFollow) {
  const std::string head = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  const std::string row = " 1024 256 float sum -1 86.70 0.01 0.02 0 68.48 0.01 0.02 0\n# Avg bus bandwidth    : 1.0\n";
  const std::string text = "+ export NCCL_ALGO=Ring\n+ ./all_reduce_perf -b 1K\n# nThread 1 nGpus 1 minBytes 1024\n" +
                           head + row +
                           "+ NCCL_ALGO=Tree ./all_reduce_perf -b 1K\n# nThread 1 nGpus 1 minBytes 1024\n" + head + row;
  const NcclTestsOutput out = ParseNcclTestsText(text);
  ASSERT_EQ(out.tables.size(), 2u);
  EXPECT_EQ(out.tables[0].algorithm, "Ring");
  EXPECT_EQ(out.tables[1].algorithm, "Tree");
}

TEST(NcclTests, ATableMayHaveOneSideOnly) {
  const NcclTestsOutput out = ParseNcclTestsText(
      "#                                                        in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
      "        1024           256     float     sum      -1    68.48    0.01    0.02       0\n");
  ASSERT_EQ(out.tables.size(), 1u);
  ASSERT_EQ(out.tables[0].rows.size(), 1u);
  EXPECT_DOUBLE_EQ(out.tables[0].rows[0].in_place.time_us, 68.48);
  EXPECT_LT(out.tables[0].rows[0].out_of_place.time_us, 0);
}

constexpr std::string_view kBareTable =
    " nThread 1 nGpus 2 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
    " Using devices\n"
    "  Rank  0 Group  0 Pid    310 on      bk-4 device  0 [0x10] NVIDIA A40\n"
    "  Rank  1 Group  0 Pid    310 on      bk-4 device  1 [0x20] NVIDIA A40\n"
    "       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "     1048576        262144     float     sum      -1    100.0   10.49   10.49      0    100.0   10.49   10.49  0\n"
    "     2097152        524288     float     sum      -1    150.0   13.98   13.98      0    150.0   13.98   13.98  0\n"
    "     4194304       1048576     float     sum      -1    250.0   16.78   16.78      0    250.0   16.78   16.78  "
    "0\n";

TEST(NcclTests, ReadsATableThatLostItsMarks) {
  const std::string text = std::string(kBareTable) + " Out of bounds values : 0 OK\n Avg bus bandwidth    : 13.75\n";
  EXPECT_EQ(kNcclTestsFormat.recognise(text, "a.txt"), Recognition::yes);
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  EXPECT_EQ(fragment.benchmark_runs[0].ranks, 2);
  EXPECT_EQ(fragment.benchmark_runs[0].lines.size(), 3u);
  EXPECT_TRUE(fragment.benchmark_runs[0].concluded);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(NcclTests, ATableThatReachesItsLargestSizeLacksOnlyItsEnd) {
  const Fragment whole = Read(kBareTable);
  EXPECT_FALSE(whole.benchmark_runs.at(0).concluded);
  EXPECT_TRUE(whole.benchmark_runs.at(0).reached_largest);
  std::string longer(kBareTable);
  longer.replace(longer.find("maxBytes 4194304"), 16, "maxBytes 8388608");
  EXPECT_FALSE(Read(longer).benchmark_runs.at(0).reached_largest);
  EXPECT_EQ(Read(longer).benchmark_runs.at(0).largest_bytes, 8388608);
}

TEST(NcclTests, KnowsRowsWithoutAnyHeadByTheirFigures) {
  const std::string rows =
      "     1048576        262144     float     sum      -1     27.8   37.72   66.01       0    27.6   37.99   66.49  "
      "0\n"
      "     2097152        524288     float     sum      -1     40.7   51.53   90.17       0    40.4   51.91   90.84  "
      "0\n"
      "     4194304       1048576     float     sum      -1     53.4   78.55  137.45       0    53.0   79.14  138.49  "
      "0\n";
  EXPECT_EQ(kNcclTestsFormat.recognise(rows, "a.txt"), Recognition::yes);
  const Fragment fragment = Read(rows);
  EXPECT_EQ(fragment.benchmark_runs.at(0).ranks, 8);
  EXPECT_TRUE(fragment.benchmark_runs.at(0).ranks_assumed);
  EXPECT_EQ(fragment.benchmark_runs.at(0).operation, "all_reduce");
  // Two rows, or figures that do not agree with each other, may be anything.
  EXPECT_EQ(kNcclTestsFormat.recognise(rows.substr(0, rows.size() * 2 / 3), "a.txt"), Recognition::no);
  std::string other = rows;
  other.replace(other.find("51.53"), 5, "99.53");
  EXPECT_EQ(kNcclTestsFormat.recognise(other, "a.txt"), Recognition::no);
}

TEST(NcclTests, TwoFirstRanksAreTwoRuns) {
  const std::string head =
      "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20\n"
      "# Using devices\n";
  const std::string text = head + head +
                           "#   Rank  0 Pid    71 on hx-1 device  0 [0x00] Tesla V100\n"
                           "#   Rank  0 Pid    93 on hx-2 device  0 [0x00] Tesla V100\n";
  EXPECT_EQ(Read(text).benchmark_runs.at(0).separate_runs, 2);
  EXPECT_EQ(Read(text).benchmark_runs.at(0).ranks, 1);
  EXPECT_EQ(Read(Sample("all_reduce_2.19.txt")).benchmark_runs.at(0).separate_runs, 0);
}

TEST(NcclTests, ACutListOfDevicesDoesNotTellHowManyRanksThereAre) {
  const std::string head =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
  const std::string rows =
      "  2147483648     536870912     float     sum      -1   5106.7  420.52  814.76      0   5101.2  420.97  815.63   "
      "   0\n"
      "# Out of bounds values : 0 OK\n";
  const std::string last = "#  Rank 31 Group  0 Pid   8812 on   tray-8 device  3 [0x19] NVIDIA GB200\n";
  const BenchmarkRun run = Read(last + head + rows).benchmark_runs.at(0);
  EXPECT_EQ(run.ranks, 32) << "by the ratio of its bandwidths";
  EXPECT_TRUE(run.ranks_assumed);
  const std::string whole = "#  Rank  0 Group  0 Pid   8812 on   tray-8 device  3 [0x19] NVIDIA GB200\n";
  EXPECT_EQ(Read(whole + head + rows).benchmark_runs.at(0).ranks, 1);
}

TEST(NcclTests, ReadsWhatACommandAsksFor) {
  NcclTestsSettings settings;
  EXPECT_EQ(
      NcclTestsProgramOfCommand("$ mpirun -np 4 -x A=b ./build/all_gather_perf -b 8 -e 8G -f 4 -g 2 -n 10", &settings),
      "all_gather_perf");
  EXPECT_EQ(settings.max_bytes, int64_t{8} << 30);
  EXPECT_EQ(settings.ranks(), 8);
  EXPECT_TRUE(IsLastSize(settings, int64_t{8} << 30));
  EXPECT_TRUE(IsLastSize(settings, int64_t{4} << 30));  // the next one would be 16 GiB
  EXPECT_FALSE(IsLastSize(settings, int64_t{1} << 30));
  NcclTestsProgramOfCommand("srun --mpi=pmix -N 2 ./all_reduce_perf -e 64M", &settings);
  EXPECT_EQ(settings.ranks(), -1);
}

TEST(NcclTests, SizesThatStandThereTwiceAreTwoRuns) {
  const std::string row1 =
      "   67108864      16777216     float     sum      -1    13841    4.85    4.85      0    13830    4.85    4.85    "
      "  0\n";
  const std::string row2 =
      "  134217728      33554432     float     sum      -1    27691    4.85    4.85      0    27634    4.86    4.86    "
      "  0\n";
  const std::string end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 4.8\n#\n";
  const NcclTestsOutput twice = ParseNcclTestsText(row1 + row1 + row2 + end + row2 + end);
  ASSERT_EQ(twice.tables.size(), 1u);
  EXPECT_EQ(twice.tables[0].separate_runs, 2);
  const NcclTestsOutput once = ParseNcclTestsText(row1 + row2 + end);
  ASSERT_EQ(once.tables.size(), 1u);
  EXPECT_EQ(once.tables[0].separate_runs, 0);
  // Cycles repeat the whole sweep.
  const NcclTestsOutput cycles = ParseNcclTestsText(row1 + row2 + row1 + row2 + end);
  ASSERT_EQ(cycles.tables.size(), 1u);
  EXPECT_EQ(cycles.tables[0].separate_runs, 0);
}

TEST(NcclTests, TheSummaryIsKnownAloneAndInAQuote) {
  EXPECT_TRUE(IsNcclTestsLine("# Out of bounds values : 0 OK"));
  EXPECT_TRUE(IsNcclTestsLine("and then it shows \"Out of bounds values : 31 FAILED\", why?"));
  EXPECT_FALSE(IsNcclTestsLine("the index is out of bounds for 8 values : OK"));
  const NcclTestsOutput quoted = ParseNcclTestsText("and then it shows \"Out of bounds values : 31 FAILED\", why?\n");
  ASSERT_EQ(quoted.tables.size(), 1u);
  EXPECT_EQ(quoted.tables[0].out_of_bounds, 31);
}

TEST(NcclTests, AFailureWithoutItsHost) {
  const NcclTestsOutput out =
      ParseNcclTestsText("` Test CUDA failure common.cu:1045 'no CUDA-capable device is detected'`\n");
  ASSERT_EQ(out.tables.size(), 1u);
  EXPECT_EQ(out.tables[0].failure, "no CUDA-capable device is detected");
}

}  // namespace
}  // namespace tacet
