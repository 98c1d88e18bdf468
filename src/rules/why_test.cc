// SPDX-License-Identifier: Apache-2.0
#include "rules/why.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/testing/job_sketch.h"
#include "rules/diagnosis.h"

namespace tacet {
namespace {

struct ExplainedJob {
  Incident incident;
  Analyses analyses;
  StandstillView standstill;
  Diagnosis diagnosis;
  Why why;
  explicit ExplainedJob(Incident&& from)
      : incident(std::move(from)),
        analyses(Analyse(incident)),
        standstill(FindStandstills(incident, analyses)),
        diagnosis(Diagnose(incident, analyses, standstill)),
        why(ExplainVerdict({incident, analyses, standstill}, diagnosis)) {}
};

JobSketch StuckInLoader() {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, kStarted);
  job.Wait(600 * kSecondNs);
  job.Stack(2, InDataLoader());
  return job;
}

TEST(Why, ClaimsSpeakOfTheNamedRankAndHaveReasons) {
  const ExplainedJob told(StuckInLoader().Finish());
  ASSERT_EQ(told.diagnosis.cause, "rank-stuck-on-host");
  EXPECT_FALSE(told.why.status.says.empty());
  const auto by_stack = std::find_if(told.why.claims.begin(), told.why.claims.end(), [](const WhyClaim& claim) {
    return claim.supports && claim.rank == Rank{2} && claim.reading == "it is stuck on the host";
  });
  ASSERT_NE(by_stack, told.why.claims.end());
  EXPECT_FALSE(by_stack->because.says.empty());
}

TEST(Why, CausesThatWouldExplainTheVerdictAreNamedWithWhereTheyWouldShow) {
  const ExplainedJob told(StuckInLoader().Finish());
  const auto memory = std::find_if(told.why.rivals.begin(), told.why.rivals.end(),
                                   [](const Rival& rival) { return rival.cause == "rank-out-of-memory"; });
  ASSERT_NE(memory, told.why.rivals.end());
  EXPECT_FALSE(memory->found);
  EXPECT_NE(memory->because.find("kernel log"), std::string::npos) << memory->because;
}

TEST(Why, AJobThatHasNotStartedHadNoOperationsInFlight) {
  Incident incident;
  Event& event = incident.events.emplace_back();
  event.kind = EventKind::start_pending;
  event.speaker = kNobody;
  event.Make<Pending>().by = "Ray";
  const ExplainedJob waits(std::move(incident));
  ASSERT_EQ(waits.diagnosis.cause, "resources-pending");
  EXPECT_EQ(waits.why.status.says, "the job has not started");
  const ExplainedJob stuck(StuckInLoader().Finish());
  EXPECT_NE(stuck.why.status.says.find("operation"), std::string::npos) << stuck.why.status.says;
}

TEST(Why, AHealthyJobHasNoRivals) {
  JobSketch job(4);
  job.Rounds(10);
  job.GiveOutputs();
  job.FinishAll();
  const ExplainedJob told(job.Finish());
  EXPECT_TRUE(told.why.claims.empty());
  EXPECT_TRUE(told.why.rivals.empty());
  EXPECT_FALSE(told.why.status.says.empty());
}

}  // namespace
}  // namespace tacet
