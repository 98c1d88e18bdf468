// SPDX-License-Identifier: Apache-2.0
#include "report/rank_table.h"

#include <gtest/gtest.h>

#include "model/rank_ranges.h"
#include "rules/testing/judged_case.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Pairs called "tp", each of which waits for the same number of its own; one rank of the last pair is stuck.
std::vector<ReportRank> RowsOfPairs(int32_t pairs) {
  JobSketch job(2 * pairs);
  std::vector<GroupIndex> groups;
  for (int32_t p = 0; p < pairs; ++p) groups.push_back(job.AddGroup("tp", {2 * p, 2 * p + 1}));
  for (int i = 0; i < 12; ++i)
    for (const GroupIndex group : groups) job.IssueAll({.group = group});
  for (int32_t r = 0; r < 2 * pairs - 1; ++r)
    job.Issue(r, {.group = groups[static_cast<size_t>(r / 2)], .state = CallState::started});
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  return RankTable(judged.incident(), judged.analyses(), judged.standstill(), judged.Verdict());
}

TEST(RankTable, AFewGroupsOfOneDescriptionAreToldApartByTheirMembers) {
  const std::vector<ReportRank> rows = RowsOfPairs(2);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].last_operation, "all_reduce #13 on tp (0-1): started");
  EXPECT_EQ(rows[2].last_operation, "all_reduce #13 on tp (2-3): started");
}

TEST(RankTable, ManyGroupsOfOneDescriptionAreOne) {
  EXPECT_EQ(RowsOfPairs(8)[0].last_operation, "all_reduce #13 on tp: started");
  EXPECT_EQ(RowsOfPairs(1)[0].last_operation, "all_reduce #13 on tp: started") << "the only one of its name";
}

TEST(RankRanges, AreShort) {
  EXPECT_EQ(RankRanges(Ranks({0, 1, 2, 3})), "0-3");
  EXPECT_EQ(RankRanges(Ranks({3, 0, 8, 9, 10, 11, 1, 2})), "0-3,8-11");
  EXPECT_EQ(RankRanges(Ranks({0, 2, 4, 6})), "0,2,4,6");
  EXPECT_EQ(RankRanges(Ranks({0, 8, 16, 24, 32, 40, 48, 56})), "0,8,...,56");
  EXPECT_EQ(RankRanges(Ranks({5})), "5");
  EXPECT_EQ(RankRanges(Ranks({0, 103, 207, 310, 415, 600, 701})), "0,103,207,310,415,600,701");
  EXPECT_EQ(RankRanges(Ranks({0, 103, 207, 310, 415, 600, 701, 900})), "0,103,207,310,415,600,701,... (8 ranks)");
}

TEST(RankTable, WhoFailedWithItsPeerDoesNotWait) {
  for (const bool raised : {true, false}) {
    JobSketch job(3, {});
    for (const int r : {0, 1, 2}) job.Say(r, EventKind::progress);
    job.Wait(kSecondNs);
    for (const int r : {1, 2}) {
      job.Say(r, EventKind::connection_lost);
      if (!raised) continue;
      Event& error = job.Say(r, EventKind::exception);
      error.Make<Raised>().type = "RuntimeError";
      error.text = "Connection closed by peer";
      error.Set(Meaning::consequence);
    }
    Diagnosis diagnosis;
    diagnosis.status = Status::crash;
    diagnosis.cause = "rank-dead";
    diagnosis.ranks = Ranks({0});
    Finding finding;
    finding.cause = diagnosis.cause;
    finding.status = Status::crash;
    finding.ranks = diagnosis.ranks;
    finding.affected_ranks = Ranks({1, 2});
    diagnosis.findings.push_back(finding);
    const JudgedCase judged(job);
    const auto rows = RankTable(judged.incident(), judged.analyses(), judged.standstill(), diagnosis);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[1].role, raised ? "" : "waits");
    EXPECT_EQ(rows[1].doing, raised ? "lost a connection" : "");
  }
}

// Rank 1 of three raised; how the table calls the others.
std::vector<ReportRank> RowsAfterAnError(Status status, bool by_spawn) {
  JobSketch job(3, {});
  for (const int r : {0, 1, 2}) job.Say(r, EventKind::progress);
  Event& error = job.Say(1, EventKind::exception);
  error.Make<Raised>().type = "ValueError";
  error.Make<Raised>().first_only = by_spawn;
  if (by_spawn) error.source.file = FileId{0};  // the launcher prints it, where rank 0 prints as well
  Diagnosis diagnosis;
  diagnosis.status = status;
  diagnosis.cause = "application-exception";
  diagnosis.confidence = Confidence::certain;
  diagnosis.ranks = Ranks({1});
  const JudgedCase judged(job);
  return RankTable(judged.incident(), judged.analyses(), judged.standstill(), diagnosis);
}

TEST(RankTable, NobodyIsWellInAJobThatFailed) {
  EXPECT_EQ(RowsAfterAnError(Status::crash, false)[0].role, "");
  EXPECT_EQ(RowsAfterAnError(Status::crash, false)[0].doing, "no error reported");
  EXPECT_EQ(RowsAfterAnError(Status::degraded, false)[0].role, "ok") << "a job that goes on";
  EXPECT_EQ(RowsAfterAnError(Status::crash, false)[1].role, "guilty");
}

// A cause that is only possible, or that lies outside of the rank, makes nobody guilty.
TEST(RankTable, WhoSuffersOrMayBeTheCauseIsNotGuilty) {
  for (const bool suffers : {true, false}) {
    JobSketch job(2, {});
    for (const int r : {0, 1}) job.Say(r, EventKind::progress);
    Diagnosis diagnosis;
    diagnosis.status = Status::crash;
    diagnosis.cause = "port-in-use";
    diagnosis.confidence = suffers ? Confidence::certain : Confidence::possible;
    diagnosis.ranks = Ranks({0});
    Finding finding;
    finding.cause = diagnosis.cause;
    finding.status = Status::crash;
    finding.ranks = diagnosis.ranks;
    finding.ranks_suffer = suffers;
    diagnosis.findings.push_back(finding);
    const JudgedCase judged(job);
    const auto rows = RankTable(judged.incident(), judged.analyses(), judged.standstill(), diagnosis);
    EXPECT_EQ(rows[0].role, suffers ? "" : "suspect");
    EXPECT_TRUE(rows[0].of_verdict);
  }
}

TEST(RankTable, WhoIsLeftWhenOneFailsIsEndedByTheLauncherThatTellsOfOneOnly) {
  EXPECT_EQ(RowsAfterAnError(Status::crash, true)[0].doing, "ended by the launcher");
}

TEST(RankTable, WhoWasKilledIsNotASuspectWhereThatIsCertain) {
  for (const bool certain : {true, false}) {
    JobSketch job(2, {});
    for (const int r : {0, 1}) job.Say(r, EventKind::progress);
    auto& end = job.Say(1, EventKind::process_exited).Make<ProcessEnd>();
    end.code = -9;
    end.how = "SIGKILL";
    Diagnosis diagnosis;
    diagnosis.status = Status::crash;
    diagnosis.cause = "rank-dead";
    diagnosis.confidence = certain ? Confidence::certain : Confidence::likely;
    diagnosis.ranks = Ranks({1});
    const JudgedCase judged(job);
    const auto rows = RankTable(judged.incident(), judged.analyses(), judged.standstill(), diagnosis);
    EXPECT_EQ(rows[1].role, certain ? "" : "suspect");
    EXPECT_EQ(rows[1].doing, "ended by SIGKILL");
    EXPECT_TRUE(rows[1].of_verdict);
  }
}

TEST(RankTable, WhoseCallNcclRefusedDoesNotWait) {
  JobSketch job(3, {});
  job.GiveOutputs();
  for (const int r : {1, 2}) {
    Event& wait = job.Say(r, EventKind::watchdog_timeout);
    wait.seq = 29;
    wait.op = r == 1 ? OpKind::all_gather : OpKind::all_reduce;
  }
  Event& refused = job.Say(0, EventKind::nccl_error);
  refused.seq = 29;
  refused.op = OpKind::all_gather;
  refused.Make<NcclError>().code = 5;
  const JudgedCase judged(job);
  const auto rows = RankTable(judged.incident(), judged.analyses(), judged.standstill(), judged.Verdict());
  EXPECT_EQ(rows[0].role, "");
  EXPECT_EQ(rows[0].doing, "NCCL error");
  EXPECT_EQ(rows[0].last_operation, "all_gather #29");
  EXPECT_EQ(rows[2].role, "guilty");
}

}  // namespace
}  // namespace tacet
