// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/testing/cluster_sketch.h"
#include "predict/nccl_job_model.h"
#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

constexpr ClusterPlan kPlan = {4, 8};

BenchmarkRun EmptyRun(int32_t ranks, int32_t per_node) {
  BenchmarkRun run;
  run.tool = "nccl-tests";
  run.operation = "all_reduce";
  run.ranks = ranks;
  run.concluded = true;
  run.failed_checks = 0;
  for (int32_t r = 0; r < ranks; ++r)
    run.devices.push_back({Rank{r}, "node" + std::to_string(r / per_node), "NVIDIA H100", 100 + r, r % per_node});
  return run;
}

void AddLine(BenchmarkRun& run, int64_t bytes, double us) {
  BenchmarkLine& line = run.lines.emplace_back();
  line.bytes = bytes;
  line.type = DataType::float32;
  const double gbs = static_cast<double>(bytes) / us / 1000;
  line.out_of_place = line.in_place = {us, gbs, gbs * 2 * (run.ranks - 1) / run.ranks, 0, {}};
}

// A sweep that takes `slower` times as long as NCCL's own model says for this cluster.
BenchmarkRun SweepOf(const Incident& incident, double slower) {
  BenchmarkRun run = EmptyRun(kPlan.nodes * kPlan.gpus, kPlan.gpus);
  const std::vector<NcclGroupModel> models = ModelCommunicators(incident, {});
  for (int64_t bytes = 1 << 10; bytes <= int64_t{4} << 30; bytes *= 2) {
    const NcclDecision decision = DecideNccl(models.at(0).communicator, models.at(0).costs,
                                             {OpKind::all_reduce, bytes, DataType::float32, ReduceOp::sum, 1});
    AddLine(run, bytes, slower * decision.best()->time_us);
  }
  return run;
}

JudgedCase Judged(double slower) {
  Incident incident = SketchCluster(kPlan);
  incident.benchmark_runs.push_back(SweepOf(incident, slower));
  return JudgedCase(std::move(incident));
}

bool Asks(const RuleAnswer& answer, std::string_view word) {
  for (const CannotTell& one : answer.open)
    if (one.missing.find(word) != std::string::npos) return true;
  return false;
}

TEST(BandwidthBelowModel, FiresAtHalfOfWhatTheGraphGives) {
  const JudgedCase judged = Judged(2);
  const Finding finding = judged.Only("bandwidth-below-model");
  EXPECT_NE(finding.headline.find("all_reduce (32 ranks on 4 nodes"), std::string::npos) << finding.headline;
  EXPECT_NE(finding.headline.find("50 %"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "bandwidth-below-model");
  EXPECT_EQ(judged.Verdict().status, Status::slow);
}

TEST(BandwidthBelowModel, IsSilentOfAMachineThatReachesItsModel) {
  for (const double slower : {0.9, 1.0, 1.2}) {
    const JudgedCase judged = Judged(slower);
    EXPECT_FALSE(judged.Fires("bandwidth-below-model")) << slower;
    EXPECT_EQ(judged.Verdict().status, Status::healthy) << slower;
  }
}

TEST(BandwidthBelowModel, SaysWhatIsMissingWithoutALog) {
  Incident with = SketchCluster(kPlan), without;
  without.files.push_back({"all_reduce.txt", "nccl_tests", {}, {}, kNoTime, false});
  without.benchmark_runs.push_back(SweepOf(with, 3));
  const JudgedCase judged(std::move(without));
  EXPECT_FALSE(judged.Fires("bandwidth-below-model"));
  EXPECT_TRUE(Asks(judged.Ask("bandwidth-below-model"), "NCCL_DEBUG=INFO"));
}

TEST(BandwidthBelowModel, LogsOfAnotherNumberOfRanksAreNoModel) {
  Incident incident = SketchCluster({2, 8});
  incident.benchmark_runs.push_back(SweepOf(SketchCluster(kPlan), 3));
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("bandwidth-below-model"));
}

TEST(BandwidthWaterfall, StepsSumToTheDifference) {
  const JudgedCase judged = Judged(2);
  ASSERT_EQ(judged.analyses().bandwidth.checks.size(), 1u);
  const Waterfall& fall = judged.analyses().bandwidth.checks[0].waterfall;
  EXPECT_DOUBLE_EQ(fall.line_gbs, 8 * 50);
  double lost = 0;
  for (const WaterfallLoss& loss : fall.losses) lost += loss.Lost();
  EXPECT_NEAR(lost, fall.line_gbs - fall.measured_gbs, 1e-9);
  ASSERT_EQ(fall.losses.size(), 8u);
  EXPECT_EQ(fall.losses.back().step, WaterfallStep::measured);
  EXPECT_NEAR(fall.losses.back().Lost(), fall.measured_gbs, 0.02 * fall.measured_gbs);  // half of the model
  EXPECT_NEAR(fall.losses[1].Lost(), 8 * 2, 1e-9);                                      // 50 GB/s in slots of 48
  EXPECT_NE(fall.losses[1].who.find("slot of"), std::string::npos);
}

TEST(BandwidthWaterfall, TheNodeWithAMissingNicTakesItsShare) {
  Incident incident = SketchCluster(kPlan);
  for (Hardware& hardware : incident.hardware) {
    if (incident.processes[hardware.speaker].host != "node2") continue;
    for (HardwareDevice& device : hardware.devices)
      if (device.kind == DeviceKind::net && device.number == 3) device.speed_gbs = 25;
  }
  incident.benchmark_runs.push_back(SweepOf(incident, 1));
  const JudgedCase judged(std::move(incident));
  const Waterfall& fall = judged.analyses().bandwidth.checks.at(0).waterfall;
  EXPECT_EQ(fall.losses[0].step, WaterfallStep::nics);
  EXPECT_NEAR(fall.losses[0].Lost(), 25, 1e-9);
  EXPECT_NE(fall.losses[0].who.find("node2"), std::string::npos) << fall.losses[0].who;
}

TEST(AlgorithmMisfit, FiresWhereAForcedWayIsFasterAndNamesBoth) {
  Incident incident = SketchCluster(kPlan);
  BenchmarkRun plain = SweepOf(incident, 1), forced = plain;
  forced.algorithm = "Tree", forced.protocol = "LL128";
  forced.lines.clear();
  for (const BenchmarkLine& line : plain.lines)
    // Where NCCL chooses the same way the two runs must agree, or the difference counts as noise.
    AddLine(forced, line.bytes, line.out_of_place.time_us * (line.bytes == 64 << 20 ? 0.6 : 1.0));
  incident.benchmark_runs = {plain, forced};
  const JudgedCase judged(std::move(incident));
  const Finding finding = judged.Only("algorithm-misfit");
  EXPECT_NE(finding.headline.find("Tree LL128 takes"), std::string::npos) << finding.headline;
  EXPECT_NE(finding.headline.find("at 64 MiB"), std::string::npos) << finding.headline;
  EXPECT_NE(finding.headline.find("which NCCL chooses"), std::string::npos) << finding.headline;
  EXPECT_NE(finding.headline.find("at 1 size"), std::string::npos) << finding.headline;
}

TEST(AlgorithmMisfit, IsSilentWithinTheNoiseAndOfOtherRanks) {
  Incident incident = SketchCluster(kPlan);
  BenchmarkRun plain = SweepOf(incident, 1), forced = plain, other = plain;
  forced.algorithm = other.algorithm = "Ring";
  for (BenchmarkLine& line : forced.lines) line.out_of_place.time_us *= 0.97, line.in_place.time_us *= 0.97;
  for (BenchmarkLine& line : other.lines) line.out_of_place.time_us *= 0.5, line.in_place.time_us *= 0.5;
  other.ranks = 16;
  other.devices.resize(16);
  incident.benchmark_runs = {plain, forced, other};
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("algorithm-misfit"));
}

TEST(AlgorithmMisfit, AsksForTheRunInWhichNcclChose) {
  Incident incident = SketchCluster(kPlan);
  BenchmarkRun forced = SweepOf(incident, 1);
  forced.algorithm = "Ring";
  incident.benchmark_runs = {forced};
  EXPECT_TRUE(Asks(JudgedCase(std::move(incident)).Ask("algorithm-misfit"), "without NCCL_ALGO"));
}

BenchmarkRun PairsOf(size_t gpus, double gbs) {
  BenchmarkRun run;
  run.tool = "nvbandwidth";
  run.operation = "device_to_device_memcpy_read_ce";
  run.checks_results = false;
  run.concluded = true;
  BenchmarkMatrix& matrix = run.matrices.emplace_back();
  matrix.row_kind = matrix.column_kind = "GPU";
  for (size_t i = 0; i < gpus; ++i) matrix.rows.push_back(std::to_string(i));
  matrix.columns = matrix.rows;
  matrix.cells.assign(gpus, std::vector<double>(gpus, gbs));
  for (size_t i = 0; i < gpus; ++i) matrix.cells[i][i] = NAN;
  return run;
}

JudgedCase JudgedPairs(BenchmarkRun run) {
  Incident incident;
  incident.files.push_back({"nvbandwidth.txt", "nvbandwidth", {}, {}, kNoTime, false});
  incident.benchmark_runs.push_back(std::move(run));
  return JudgedCase(std::move(incident));
}

TEST(SlowLink, NamesTheGpuThatIsSlowInBothDirections) {
  BenchmarkRun run = PairsOf(8, 368);
  for (size_t i = 0; i < 8; ++i)
    if (i != 5) run.matrices[0].cells[5][i] = run.matrices[0].cells[i][5] = 180;
  const JudgedCase judged = JudgedPairs(std::move(run));
  const Finding finding = judged.Only("slow-link");
  EXPECT_EQ(finding.headline.rfind("GPU 5 reaches 49 %", 0), 0u) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "slow-link");
  EXPECT_EQ(judged.Verdict().status, Status::slow);
}

TEST(SlowLink, IsSilentOfEvenPairsAndOfLinksThatDifferByDesign) {
  EXPECT_FALSE(JudgedPairs(PairsOf(8, 368)).Fires("slow-link"));
  BenchmarkRun pairs = PairsOf(4, 25);
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{2, 3}}) {
    pairs.matrices[0].cells[static_cast<size_t>(a)][static_cast<size_t>(b)] = 270;
    pairs.matrices[0].cells[static_cast<size_t>(b)][static_cast<size_t>(a)] = 270;
  }
  const JudgedCase judged = JudgedPairs(std::move(pairs));
  EXPECT_FALSE(judged.Fires("slow-link"));
  EXPECT_EQ(judged.Verdict().status, Status::healthy);
}

TEST(SlowLink, AsksForPairsWhereACollectiveIsSlow) { EXPECT_TRUE(Asks(Judged(2).Ask("slow-link"), "--pairs")); }

}  // namespace
}  // namespace tacet
