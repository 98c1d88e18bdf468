// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/side_stacks.h"

#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

constexpr char kJob[] = "/srv/train/job.py";
constexpr char kDistributed[] = "/venv/site-packages/torch/distributed/distributed_c10d.py";
constexpr char kThreading[] = "/usr/lib/python3.12/threading.py";

std::vector<SketchedFrame> InStep(std::string_view function, uint32_t line) {
  return {{"all_reduce", kDistributed, 3068}, {function, kJob, line}, {"<module>", kJob, 90}};
}

// Rank 3 waits with another size at #5 than ranks 0-2, whose call was made in `caller`.
JobSketch TwoSizes(int64_t odd, int64_t usual, std::string_view caller = "") {
  JobSketch job(4, {});
  for (int32_t r = 0; r < 4; ++r) {
    Event& event = job.Say(r, EventKind::watchdog_timeout);
    event.op = OpKind::all_reduce;
    event.seq = 5;
    event.group_rank = GroupRank{r};
    auto& timeout = event.Make<WatchdogTimeout>();
    timeout.timeout_ms = 12'000;
    timeout.elements = r == 3 ? odd : usual;
    if (r != 3 && !caller.empty()) timeout.place = CodePlace{std::string(caller), kJob, 314};
  }
  return job;
}

// A thread of this rank beside its main one.
void AddThread(Incident& incident, int32_t rank, const std::vector<SketchedFrame>& frames) {
  ThreadStack thread;
  for (const ThreadStack& one : incident.threads)
    if (one.rank == Rank{rank}) thread = one;
  thread.is_main = false;
  std::vector<Frame> out;
  out.reserve(frames.size());
  for (const SketchedFrame& frame : frames)
    out.push_back({incident.strings.Intern(frame.function), incident.strings.Intern(frame.file), frame.line});
  thread.stack = incident.stacks.Intern(std::move(out));
  incident.threads.push_back(std::move(thread));
}

std::vector<SketchedFrame> ThreadIn(std::string_view function, bool communicates) {
  std::vector<SketchedFrame> frames;
  if (communicates) frames.push_back({"all_reduce", kDistributed, 3068});
  frames.push_back({function, kJob, 313});
  frames.push_back({"_bootstrap_inner", kThreading, 1073});
  frames.push_back({"_bootstrap", kThreading, 1030});
  return frames;
}

std::string FirstStep(Incident incident) {
  return JudgedCase(std::move(incident)).Only("collective-mismatch-size").fix.at(0);
}

TEST(SideStacks, StacksThatAreThereAreComparedAndNotAskedFor) {
  JobSketch job = TwoSizes(2048, 512);
  for (const int32_t r : {0, 1, 2}) job.Stack(r, InStep("train_step", 94));
  job.Stack(3, InStep("save_all", 340));
  const std::string step = FirstStep(job.Finish());
  EXPECT_NE(step.find("rank 3 is in save_all (job.py:340)"), std::string::npos) << step;
  EXPECT_NE(step.find("ranks 0-2 are in train_step (job.py:94)"), std::string::npos) << step;
  EXPECT_EQ(step.find("py-spy"), std::string::npos) << step;
}

TEST(SideStacks, AreAskedForWhereOneSideHasNone) {
  JobSketch job = TwoSizes(2048, 512);
  for (const int32_t r : {0, 1, 2}) job.Stack(r, InStep("train_step", 94));
  EXPECT_NE(FirstStep(job.Finish()).find("py-spy dump"), std::string::npos);
}

TEST(SecondThread, WhoseCallTimedOutIsNamedFirst) {
  JobSketch job = TwoSizes(81420, 512, "run");
  for (int32_t r = 0; r < 4; ++r) job.Stack(r, InStep("train_step", 94));
  Incident incident = job.Finish();
  for (int32_t r = 0; r < 4; ++r) AddThread(incident, r, ThreadIn("run", false));
  const Finding finding = JudgedCase(std::move(incident)).Only("communicator-shared-by-threads");
  EXPECT_TRUE(finding.ranks.empty()) << "the threads of every rank race";
  EXPECT_EQ(finding.affected_ranks.size(), 4u);
  EXPECT_NE(finding.fix.at(0).find("next to the main thread: run (job.py:314)"), std::string::npos) << finding.fix[0];
  EXPECT_EQ(finding.fix.at(0).find("If both"), std::string::npos) << finding.fix[0];
  for (const std::string& step : finding.fix) EXPECT_EQ(step.find("drop_last"), std::string::npos) << step;
}

TEST(SecondThread, ThatCommunicatesMayUseAGroupOfItsOwn) {
  JobSketch job = TwoSizes(1024, 512);
  for (int32_t r = 0; r < 4; ++r) job.Stack(r, InStep("train_step", 94));
  Incident incident = job.Finish();
  for (int32_t r = 0; r < 4; ++r) AddThread(incident, r, ThreadIn("run", true));
  EXPECT_NE(FirstStep(std::move(incident)).find("If both use the same group"), std::string::npos);
}

TEST(SecondThread, ThatOnlyWritesAFileIsNoMatter) {
  JobSketch job = TwoSizes(1024, 512, "train_step");
  for (int32_t r = 0; r < 4; ++r) job.Stack(r, InStep("train_step", 94));
  Incident incident = job.Finish();
  for (int32_t r = 0; r < 4; ++r) AddThread(incident, r, ThreadIn("write_log", false));
  const std::string step = FirstStep(std::move(incident));
  EXPECT_EQ(step.find("thread"), std::string::npos) << step;
  EXPECT_NE(step.find("drop_last"), std::string::npos) << step;
}

TEST(SideStacks, SizesOfABatchHaveAFactorInCommon) {
  EXPECT_TRUE(LooksLikeAnotherCall(81420, 512));
  EXPECT_TRUE(LooksLikeAnotherCall(513, 85002));
  EXPECT_FALSE(LooksLikeAnotherCall(32 * 768, 768)) << "the last batch has one sample";
  EXPECT_FALSE(LooksLikeAnotherCall(64 * 1000, 3 * 1000));
  EXPECT_FALSE(LooksLikeAnotherCall(1013, 977)) << "samples of different lengths";
  EXPECT_FALSE(LooksLikeAnotherCall(4096, 1));
  EXPECT_TRUE(LooksLikeAnotherCall(1, 87'572)) << "a loss beside a bucket of gradients";
  EXPECT_TRUE(LooksLikeAnotherCall(1, 25'559'081)) << "a metric beside a bucket of gradients";
  EXPECT_FALSE(LooksLikeAnotherCall(-1, 512));
}

TEST(DetailReport, TheOperationOfEachSideIsTold) {
  JobSketch job(4, {});
  for (const int32_t r : {1, 2, 3}) {
    Event& event = job.Say(r, EventKind::mismatch_report);
    event.ranks = Ranks({r, 0});
    event.op = OpKind::all_reduce;
    event.seq = 13;
    auto& report = event.Make<MismatchReport>();
    report.aspect = "op";
    report.tensor = "ALLREDUCE";
    report.other_tensor = "REDUCE";
  }
  const Finding finding = JudgedCase(job).Only("collective-mismatch-operation");
  EXPECT_EQ(finding.ranks, Ranks({0}));
  EXPECT_TRUE(finding.headline.starts_with("rank 0 called reduce at #13, where ranks 1-3 called all_reduce"))
      << finding.headline;
}

}  // namespace
}  // namespace tacet
