// SPDX-License-Identifier: Apache-2.0
// The verdict over all rules, and the catalogue itself.
#include "rules/diagnosis.h"

#include <gtest/gtest.h>

#include <set>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

TEST(Catalogue, EveryRuleIsWholeAndFoundByItsId) {
  std::set<std::string_view> ids;
  for (const Rule* rule : AllRules()) {
    EXPECT_TRUE(ids.insert(rule->id).second) << rule->id;
    EXPECT_EQ(FindRule(rule->id), rule);
    for (const std::string_view text : {rule->title, rule->needs, rule->meaning, rule->look_alikes})
      EXPECT_FALSE(text.empty()) << rule->id;
    EXPECT_FALSE(rule->fix.empty()) << rule->id;
    EXPECT_FALSE(rule->prevent.empty()) << rule->id;
    EXPECT_NE(rule->judge, nullptr);
  }
  EXPECT_EQ(FindRule("no-such-cause"), nullptr);
  EXPECT_EQ(FindRule(""), nullptr);
}

TEST(Catalogue, EveryRuleIsInOneGroupThatHasAName) {
  size_t rules = 0;
  for (uint8_t group = 0; group <= static_cast<uint8_t>(kLastRuleGroup); ++group) {
    EXPECT_FALSE(Name(RuleGroup{group}).empty());
    EXPECT_FALSE(RulesIn(RuleGroup{group}).empty());
    rules += RulesIn(RuleGroup{group}).size();
  }
  EXPECT_EQ(rules, AllRules().size());
}

TEST(Catalogue, NoRuleFiresOnNothing) {
  const JudgedCase judged{Incident()};
  for (const Rule* rule : AllRules()) {
    const RuleAnswer answer = judged.Ask(rule->id);
    EXPECT_TRUE(answer.findings.empty()) << rule->id;
    EXPECT_TRUE(answer.open.empty()) << rule->id;
  }
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_FALSE(verdict.open.empty());
}

// A whole recording of a healthy job, in all sizes.
JobSketch Healthy(int32_t world) {
  JobSketch job(world, {CallSource::flight_recorder, CallSource::nccl_log});
  const GroupIndex half = job.AddGroup("half", [&] {
    std::vector<int32_t> members;
    for (int32_t r = 0; r < world / 2 + 1; ++r) members.push_back(r);
    return members;
  }());
  for (int s = 0; s < 12; ++s) {
    job.IssueAll({.kind = OpKind::all_gather, .elements = 8, .out_elements = 8 * world});
    job.IssueAll();
    job.IssueAll({.group = half, .elements = 5});
  }
  job.GiveOutputs();
  job.FinishAll();
  return job;
}

class HealthyWorld : public testing::TestWithParam<int32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, HealthyWorld, testing::Values(2, 3, 4, 8, 64, 1024));

TEST_P(HealthyWorld, NoRuleFiresOnAHealthyJobAndItIsCalledHealthy) {
  JobSketch job = Healthy(GetParam());
  const JudgedCase judged(job);
  for (const Rule* rule : AllRules()) {
    const RuleAnswer answer = judged.Ask(rule->id);
    EXPECT_TRUE(answer.findings.empty()) << rule->id;
    EXPECT_TRUE(answer.open.empty()) << rule->id;
  }
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.status, Status::healthy) << verdict.headline;
  EXPECT_EQ(verdict.confidence, Confidence::certain);
  EXPECT_TRUE(verdict.cause.empty());
}

TEST_P(HealthyWorld, ASnapshotInTheMiddleOfAStepBlamesNobody) {
  JobSketch job(GetParam());
  job.Rounds(12);
  // Half have come to the next one, the GPUs of some of them have begun it, and one has seen its end.
  for (int32_t r = 0; r < GetParam() / 2; ++r)
    job.Issue(r, {.state = r % 3 ? CallState::started : CallState::enqueued});
  job.Wait(20 * kMillisecondNs);
  job.GiveOutputs();
  const JudgedCase judged(job);
  for (const Rule* rule : AllRules()) EXPECT_FALSE(judged.Fires(rule->id)) << rule->id;
  const Diagnosis verdict = judged.Verdict();
  EXPECT_TRUE(verdict.ranks.empty()) << verdict.headline;
  EXPECT_TRUE(verdict.findings.empty());
}

TEST(Verdict, WithoutLogsAJobIsNotCalledHealthy) {
  JobSketch job(4);
  job.Rounds(12);
  job.GiveOutputs();
  job.FinishAll();
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  ASSERT_EQ(verdict.open.size(), 1u);
  EXPECT_NE(verdict.open[0].missing.find("NCCL_DEBUG"), std::string::npos);
}

TEST(Verdict, AJobWhoseFilesMerelyEndIsNotCalledHealthy) {
  for (const bool ends : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(12);
    job.GiveOutputs();
    if (ends) job.FinishAll();
    const Diagnosis verdict = JudgedCase(job).Verdict();
    EXPECT_EQ(verdict.status, ends ? Status::healthy : Status::undetermined);
    EXPECT_EQ(verdict.open.size(), ends ? 0u : 1u);
  }
}

TEST(Verdict, ARankOfWhichOnlyTheLogEndsEarlyIsSpokenOfButNotNamed) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(10);
  job.IssueOn(job.AllBut({5}), {});
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_NE(verdict.headline.find("rank 5"), std::string::npos) << verdict.headline;
}

TEST(Verdict, LogsThatDoNotHoldTheSameCallsAreNotCalledHealthy) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(12);
  job.IssueOn({0, 1, 3}, {});
  job.GiveOutputs();
  job.FinishAll();
  EXPECT_EQ(JudgedCase(job).Verdict().status, Status::undetermined);
}

TEST(Verdict, WithoutOutputsAJobIsNotCalledHealthy) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(12);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  ASSERT_EQ(verdict.open.size(), 2u);
  EXPECT_NE(verdict.open[0].missing.find("of all ranks"), std::string::npos);
}

TEST(Verdict, AHangThatNobodyExplainsAsksForRecords) {
  JobSketch job(4, {});
  job.TimeOut(1, 17);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_TRUE(verdict.cause.empty());
  EXPECT_TRUE(verdict.ranks.empty());
  ASSERT_FALSE(verdict.open.empty());
  EXPECT_NE(verdict.open.back().missing.find("TORCH_FR_BUFFER_SIZE"), std::string::npos);
}

TEST(Verdict, AnExitThatNobodyExplainsIsNotCalledHealthy) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(12);
  job.GiveOutputs();
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = 1;
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_NE(verdict.headline.find("crashed"), std::string::npos);
}

TEST(Verdict, AWarningAboutPaceDoesNotCoverAnUnexplainedHang) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(12);
  for (int r = 0; r < 4; ++r) {
    Event& event = job.Log(r, EventKind::environment);
    event.Make<EnvironmentSetting>().name = "NCCL_ALGO";
    event.Make<EnvironmentSetting>().value = "Ring";
  }
  job.TimeOut(0, 13);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::hang) << verdict.headline;
  EXPECT_TRUE(verdict.cause.empty());
}

TEST(Verdict, TheWeightiestFindingComesFirstAndTextsAreFilled) {
  JobSketch job(4);
  job.Rounds(12);
  job.IssueOn({0, 1, 3}, kStarted);
  job.Wait(600 * kSecondNs);
  job.Stack(2, InDataLoader());
  Event& setting = job.Log(0, EventKind::environment);
  setting.Make<EnvironmentSetting>().name = "NCCL_IB_DISABLE";
  setting.Make<EnvironmentSetting>().value = "1";
  const Diagnosis verdict = JudgedCase(job).Verdict();
  ASSERT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(verdict.findings[0].cause, "rank-stuck-on-host");
  EXPECT_EQ(verdict.findings[1].severity, Severity::note);
  for (const Finding& finding : verdict.findings) {
    EXPECT_FALSE(finding.explanation.empty());
    EXPECT_FALSE(finding.fix.empty());
    EXPECT_FALSE(finding.prevent.empty());
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(finding.headline[0]))) << finding.headline;
    EXPECT_FALSE(finding.evidence.empty());
  }
}

TEST(Verdict, EveryCitedPlaceIsInAFileOfTheJob) {
  JobSketch job(8);
  job.Rounds(12);
  job.IssueOn(job.AllBut({2}), kStarted);
  job.Wait(600 * kSecondNs);
  for (int r = 0; r < 8; ++r) job.Stack(r, r == 2 ? InDataLoader() : InCollective());
  const JudgedCase judged(job);
  for (const Finding& finding : judged.Verdict().findings)
    for (const EvidenceItem& item : finding.evidence) {
      const auto file = static_cast<uint32_t>(item.source.file);
      EXPECT_TRUE(file < judged.incident().files.size() || file == 0xffffffffu);
      EXPECT_FALSE(item.says.empty());
    }
}

// Rank 5 of 8 is one call behind when the logs end.
JobSketch Behind() {
  JobSketch job(8, {CallSource::nccl_log});
  job.GiveOutputs();
  job.Rounds(10);
  for (const int32_t r : job.AllBut({5})) job.Issue(r, {});
  return job;
}

TEST(Verdict, WithoutAnythingThatTellsOfTimeWhoIsBehindIsSpokenOfButNotSuspected) {
  JobSketch job = Behind();
  const Diagnosis moment = JudgedCase(job).Verdict();
  EXPECT_EQ(moment.status, Status::undetermined);
  EXPECT_TRUE(moment.ranks.empty());
  EXPECT_NE(moment.headline.find("rank 5 is behind"), std::string::npos) << moment.headline;
}

TEST(Verdict, ATimeoutMakesNoSuspectOfWhoseLogMayHaveBeenCut) {
  JobSketch job = Behind();
  job.TimeOut(0, 11);
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_NE(verdict.headline.find("wait for rank 5 in "), std::string::npos) << verdict.headline;
}

TEST(Verdict, AWarningOfNcclThatNobodyKnowsIsQuoted) {
  JobSketch job(2);
  Event& warning = job.Say(1, EventKind::nccl_warning);
  warning.Make<Warning>().id = "other";
  warning.text = "NET/Zeta endpoint table is smaller than the job";
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_NE(verdict.headline.find("endpoint table is smaller"), std::string::npos) << verdict.headline;
}

TEST(Verdict, ASentenceAloneMakesNothingCertain) {
  const auto told = [](bool prose) {
    JobSketch job(2);
    job.Rounds(5);
    Event& event = job.Say(1, EventKind::nccl_warning);
    auto& warning = event.Make<Warning>();
    warning.id = "shm-extend-failed";
    warning.number = 28;
    warning.role = NcclWarningRole::cause;
    event.source.line = 7;
    event.Set(Meaning::in_prose, prose);
    return JudgedCase(job).Verdict();
  };
  EXPECT_EQ(told(false).cause, "shared-memory-full");
  EXPECT_EQ(told(false).findings.at(0).confidence, Confidence::certain);
  EXPECT_EQ(told(true).findings.at(0).confidence, Confidence::likely);
}

}  // namespace
}  // namespace tacet
