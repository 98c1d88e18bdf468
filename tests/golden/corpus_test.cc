// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "incident_truth.h"
#include "recorded_files.h"

namespace tacet {
namespace {

class RecordedIncident : public testing::TestWithParam<IncidentTruth> {};

TEST_P(RecordedIncident, IsJudgedRight) {
  const IncidentTruth& truth = GetParam();
  const Report report = DiagnoseFolder(TestFolder("corpus") / truth.name);
  EXPECT_EQ(Judge(truth, report), std::vector<std::string>()) << report.verdict.headline;
}

INSTANTIATE_TEST_SUITE_P(Corpus, RecordedIncident,
                         testing::ValuesIn(ParseTruth(ReadWhole(TestFolder("corpus/truth.json")))),
                         [](const auto& info) { return info.param.name; });

TEST(Corpus, HoldsExactlyTheFoldersTheTruthTellsOf) {
  std::set<std::string> folders, told;
  for (const auto& entry : std::filesystem::directory_iterator(TestFolder("corpus")))
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  for (const IncidentTruth& truth : ParseTruth(ReadWhole(TestFolder("corpus/truth.json")))) told.insert(truth.name);
  EXPECT_EQ(folders, told);
}

// The judge itself: it must be able to say no.

IncidentTruth StuckRankTwo() {
  return {.name = "x", .statuses = {"hang"}, .causes = {"rank-stuck-on-host"}, .ranks = {2}, .seq = 33};
}

Report Answer(Status status, std::string cause, std::vector<int> ranks, int64_t seq) {
  Report report;
  report.verdict.status = status;
  report.verdict.cause = cause;
  report.verdict.ranks = ranks;
  report.findings.push_back({.cause = cause, .status = status, .severity = Severity::critical, .ranks = ranks});
  report.findings[0].operation = OperationRef{OpKind::all_reduce, seq, 4};
  return report;
}

TEST(CorpusJudge, AcceptsOnlyTheWholeTruth) {
  const IncidentTruth truth = StuckRankTwo();
  EXPECT_TRUE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {2}, 33)).empty());
  EXPECT_FALSE(Judge(truth, Answer(Status::crash, "rank-stuck-on-host", {2}, 33)).empty());
  EXPECT_FALSE(Judge(truth, Answer(Status::hang, "rank-dead", {2}, 33)).empty());
  EXPECT_FALSE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {2, 3}, 33)).empty());
  EXPECT_FALSE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {}, 33)).empty());
  EXPECT_FALSE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {2}, 34)).empty());
}

TEST(CorpusJudge, TakesAPartOfTheRanksOnlyWhereTheTruthSaysSo) {
  IncidentTruth truth = StuckRankTwo();
  truth.ranks = {1, 2};
  EXPECT_FALSE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {2}, 33)).empty());
  truth.some_ranks_suffice = true;
  EXPECT_TRUE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {2}, 33)).empty());
  EXPECT_FALSE(Judge(truth, Answer(Status::hang, "rank-stuck-on-host", {2, 3}, 33)).empty());
}

TEST(CorpusJudge, HoldsAHealthyJobToSilence) {
  const IncidentTruth truth{.name = "x", .statuses = {"healthy"}};
  Report report;
  report.verdict.status = Status::healthy;
  EXPECT_TRUE(Judge(truth, report).empty());
  report.findings.push_back({.cause = "transport-fallback", .severity = Severity::note});
  EXPECT_TRUE(Judge(truth, report).empty());
  report.findings[0].severity = Severity::warning;
  EXPECT_FALSE(Judge(truth, report).empty());
  EXPECT_FALSE(JudgeReduced(truth, report).acceptable);
}

TEST(CorpusJudge, LetsAnAnswerBeWithdrawnButNeverTurned) {
  const IncidentTruth truth = StuckRankTwo();
  EXPECT_TRUE(JudgeReduced(truth, Answer(Status::hang, "rank-stuck-on-host", {2}, 40)).acceptable);
  EXPECT_TRUE(JudgeReduced(truth, Answer(Status::undetermined, "", {}, -1)).acceptable);
  EXPECT_TRUE(JudgeReduced(truth, Answer(Status::undetermined, "", {2}, -1)).acceptable);
  EXPECT_FALSE(JudgeReduced(truth, Answer(Status::undetermined, "", {1}, -1)).acceptable);
  EXPECT_FALSE(JudgeReduced(truth, Answer(Status::hang, "rank-frozen", {2}, 33)).acceptable);
  Report silent;
  silent.verdict.status = Status::healthy;
  EXPECT_FALSE(JudgeReduced(truth, silent).acceptable);
}

}  // namespace
}  // namespace tacet
