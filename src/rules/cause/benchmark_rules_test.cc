// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"
#include "rules/unexplained/benchmark_verdict.h"

namespace tacet {
namespace {

BenchmarkRun Clean() {
  BenchmarkRun run;
  run.tool = "nccl-tests";
  run.operation = "all_gather";
  run.ranks = 8;
  run.concluded = true;
  run.failed_checks = 0;
  for (int64_t bytes = 1 << 20; bytes <= 8 << 20; bytes *= 2) {
    BenchmarkLine& line = run.lines.emplace_back();
    line.bytes = bytes;
    line.out_of_place = {100, 10, 9, 0, {}};
    line.in_place = {100, 10, 9, 0, {}};
  }
  return run;
}

JudgedCase Judged(BenchmarkRun run) {
  Incident incident;
  incident.files.push_back({"all_gather.txt", "nccl_tests", {}, {}, kNoTime, false});
  incident.benchmark_runs.push_back(std::move(run));
  return JudgedCase(std::move(incident));
}

TEST(WrongResults, NamesTheSmallestSizeThatIsWrong) {
  BenchmarkRun run = Clean();
  run.lines[2].in_place.wrong = 3;
  run.lines[3].out_of_place.wrong = 5;
  const JudgedCase judged = Judged(std::move(run));
  const Finding finding = judged.Only("wrong-results");
  EXPECT_NE(finding.headline.find("in 2 of 4 lines, from 4 MiB on"), std::string::npos) << finding.headline;
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(judged.Verdict().status, Status::corrupt);
}

TEST(WrongResults, TakesTheSummarysWordWhereLinesDoNotTell) {
  BenchmarkRun run = Clean();
  for (BenchmarkLine& line : run.lines) line.out_of_place.wrong = line.in_place.wrong = -1;
  run.failed_checks = 2;
  EXPECT_EQ(Judged(std::move(run)).Verdict().cause, "wrong-results");
}

TEST(WrongResults, IsSilentOfACleanRun) {
  const JudgedCase judged = Judged(Clean());
  EXPECT_FALSE(judged.Fires("wrong-results"));
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.status, Status::healthy);
  EXPECT_EQ(verdict.confidence, Confidence::certain);
  EXPECT_TRUE(verdict.findings.empty());
}

TEST(BenchmarkVerdict, UncheckedResultsAreAnOpenQuestion) {
  BenchmarkRun run = Clean();
  for (BenchmarkLine& line : run.lines) line.out_of_place.wrong = line.in_place.wrong = -1;
  const Diagnosis verdict = Judged(std::move(run)).Verdict();
  EXPECT_EQ(verdict.status, Status::healthy);
  EXPECT_EQ(verdict.confidence, Confidence::likely);
  EXPECT_EQ(verdict.open.size(), 3u);  // right? as fast as before? as fast as it should be?
  EXPECT_NE(verdict.headline.find("completed; its results were not checked"), std::string::npos) << verdict.headline;
}

TEST(BenchmarkVerdict, SomeCheckedResultsAreNotNone) {
  BenchmarkRun run = Clean();
  ASSERT_GT(run.lines.size(), 1u);
  run.lines.back().out_of_place.wrong = run.lines.back().in_place.wrong = -1;
  const std::string headline = Judged(std::move(run)).Verdict().headline;
  EXPECT_NE(headline.find("completed; not all results were checked"), std::string::npos) << headline;
}

TEST(BenchmarkVerdict, ARunWithoutItsEndIsNotHealthy) {
  BenchmarkRun run = Clean();
  run.concluded = false;
  run.largest_bytes = 16 << 20;
  const Diagnosis verdict = Judged(std::move(run)).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_NE(verdict.headline.find("did not finish"), std::string::npos);
  EXPECT_NE(verdict.headline.find("the last size is 8 MiB of 16 MiB"), std::string::npos) << verdict.headline;
}

TEST(BenchmarkVerdict, AnErrorIsACrash) {
  BenchmarkRun run = Clean();
  run.concluded = false;
  run.failure = "unhandled system error";
  const Diagnosis verdict = Judged(std::move(run)).Verdict();
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_NE(verdict.headline.find("unhandled system error"), std::string::npos);
}

TEST(BenchmarkVerdict, ACleanBenchmarkProvesNothingAboutAJobBesideIt) {
  JobSketch job(4);
  job.Rounds(3);
  Incident incident = job.Finish();
  incident.benchmark_runs.push_back(Clean());
  EXPECT_EQ(JudgedCase(std::move(incident)).Verdict().status, Status::undetermined);
}

TEST(BenchmarkVerdict, ATableThatReachedItsLargestSizeIsComplete) {
  BenchmarkRun run = Clean();
  run.concluded = false;
  run.reached_largest = true;
  const Diagnosis verdict = Judged(std::move(run)).Verdict();
  EXPECT_EQ(verdict.status, Status::healthy);
  EXPECT_EQ(verdict.confidence, Confidence::likely);
  EXPECT_NE(verdict.headline.find("levels off at 9.00 GB/s from 1 MiB on"), std::string::npos) << verdict.headline;
}

TEST(BenchmarkVerdict, SaysThatABandwidthStillRises) {
  BenchmarkRun run = Clean();
  for (size_t i = 0; i < run.lines.size(); ++i) run.lines[i].out_of_place.bus_gbs = 9 + 4.0 * static_cast<double>(i);
  const Diagnosis verdict = Judged(std::move(run)).Verdict();
  EXPECT_NE(verdict.headline.find("21.0 GB/s at 8 MiB, the largest size shown, and still rising"), std::string::npos)
      << verdict.headline;
}

TEST(BenchmarkVerdict, OneRankHasNoBusBandwidth) {
  BenchmarkRun run = Clean();
  run.ranks = 1;
  for (BenchmarkLine& line : run.lines) line.out_of_place.bus_gbs = line.in_place.bus_gbs = 0;
  EXPECT_NE(Judged(std::move(run)).Verdict().headline.find("0 by definition"), std::string::npos);
}

TEST(BenchmarkVerdict, ProcessesThatRanAloneMeasuredNothing) {
  BenchmarkRun run = Clean();
  run.ranks = 1;
  run.separate_runs = 2;
  run.concluded = false;
  run.devices = {{Rank{0}, "hx-1", "V100", 71, 0, {}}, {Rank{0}, "hx-2", "V100", 93, 0, {}}};
  const Diagnosis verdict = Judged(std::move(run)).Verdict();
  EXPECT_EQ(verdict.status, Status::degraded);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].evidence.size(), 2u);
  EXPECT_NE(verdict.headline.find("2 runs of 1 rank"), std::string::npos) << verdict.headline;
}

// Four GPUs, of which the last row is cut off.
BenchmarkMatrix Pairs(const char* title, double gbs) {
  BenchmarkMatrix matrix;
  matrix.title = title;
  matrix.row_kind = matrix.column_kind = "GPU";
  matrix.columns = {"0", "1", "2", "3"};
  matrix.rows = {"0", "1", "2"};
  for (size_t row = 0; row < 3; ++row) {
    matrix.cells.emplace_back(4, gbs);
    matrix.cells.back()[row] = 900;
  }
  return matrix;
}

TEST(SlowPeerAccess, IsToldFromTheRowsThatAreThere) {
  for (const auto& [direct, is_slow] : {std::pair{10.1, true}, std::pair{21.0, false}, std::pair{52.0, false}}) {
    BenchmarkRun run;
    run.tool = "p2pBandwidthLatencyTest";
    run.operation = "peer_to_peer";
    run.checks_results = false;
    run.matrices = {Pairs("Unidirectional P2P=Disabled Bandwidth", 22.2),
                    Pairs("Unidirectional P2P=Enabled Bandwidth (P2P Writes)", direct)};
    const JudgedCase judged = Judged(std::move(run));
    const Diagnosis diagnosis = judged.Verdict();
    EXPECT_EQ(diagnosis.status == Status::degraded, is_slow) << direct << ": " << diagnosis.headline;
  }
}

TEST(Benchmarks, ASummaryWithoutRowsCountsNoWrongValue) {
  BenchmarkRun run = Clean();
  run.lines.clear();
  run.average_bus_gbs = 33.3;
  const JudgedCase judged = Judged(std::move(run));
  const Diagnosis diagnosis = judged.Verdict();
  EXPECT_EQ(diagnosis.status, Status::healthy);
  EXPECT_NE(diagnosis.headline.find("average bus bandwidth 33.3 GB/s"), std::string::npos) << diagnosis.headline;
}

}  // namespace
}  // namespace tacet
