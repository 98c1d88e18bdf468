// SPDX-License-Identifier: Apache-2.0
#include "rules/words/milestone_words.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

bool Tells(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Ranks 1 to 3 time out in the one output that all share, from line 10 on.
Incident ThreeTimeOut() {
  JobSketch job(4, {});
  for (const int32_t r : {1, 2, 3}) {
    Event& event = job.Say(r, EventKind::watchdog_timeout);
    event.seq = 90;
    event.op = OpKind::all_reduce;
    event.Make<WatchdogTimeout>() = {.timeout_ms = 600'000, .elapsed_ms = 600'031};
  }
  Incident incident = job.Finish();
  uint32_t line = 10;
  for (Event& event : incident.events) event.source = {FileId{0}, line++, 0};
  return incident;
}

LogOutline OutlineWith(LineOfRank at_work) {
  LogOutline outline;
  outline.ranks = {at_work.rank};
  outline.at_work.push_back(std::move(at_work));
  return outline;
}

TEST(RankAtWork, WhoeverIsFurtherBehindTheTimeoutsIsWaitedFor) {
  Incident incident = ThreeTimeOut();
  incident.outlines.push_back(OutlineWith({0, "Scoring: 1121/5000", {FileId{0}, 14, 0}}));
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_EQ(verdict.cause, "timeout-too-short");
  EXPECT_EQ(verdict.ranks, Ranks({0}));
  EXPECT_TRUE(Tells(verdict.headline, "Ranks 1-3 timed out while they waited for rank 0")) << verdict.headline;
  EXPECT_TRUE(Tells(verdict.headline, "the limit is 10 min")) << verdict.headline;
}

TEST(RankAtWork, WhatItDidBeforeTheTimeoutsProvesNothing) {
  Incident incident = ThreeTimeOut();
  incident.outlines.push_back(OutlineWith({0, "Scoring: 1010/5000", {FileId{0}, 9, 0}}));
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_NE(verdict.cause, "timeout-too-short");
  EXPECT_FALSE(Tells(verdict.headline, "no line is from rank 0")) << verdict.headline;
}

TEST(RankAtWork, WhoTimedOutIsNotAtWork) {
  Incident incident = ThreeTimeOut();
  incident.outlines.push_back(OutlineWith({2, "Scoring: 1121/5000", {FileId{0}, 14, 0}}));
  EXPECT_NE(JudgedCase(std::move(incident)).Verdict().cause, "timeout-too-short");
}

TEST(Milestones, AHangBehindTheTrainingSaysThatItIsDone) {
  Incident incident = ThreeTimeOut();
  LogOutline outline;
  outline.trained = {"training had finished", {FileId{0}, 2, 0}};
  outline.saved = {"checkpoint-640", {FileId{0}, 3, 0}};
  incident.outlines.push_back(outline);
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_TRUE(verdict.headline.starts_with("Training had finished and checkpoint-640 was saved; then the job hung"))
      << verdict.headline;
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_TRUE(Tells(verdict.findings[0].fix.front(), "need not be repeated")) << verdict.findings[0].fix.front();
}

TEST(Milestones, WhatWasSavedIsSaidOfAJobThatWasEnded) {
  for (const bool after : {false, true}) {
    JobSketch job(2, {});
    job.Tell(EventKind::scheduler_kill).Make<OutsideEnd>().why = SchedulerKill::preempted;
    Incident incident = job.Finish();
    for (Event& event : incident.events) event.source = {FileId{0}, 10, 0};
    LogOutline outline;
    outline.saved = {"the checkpoint of step 7600", {FileId{0}, after ? 12u : 8u, 0}};
    incident.outlines.push_back(outline);
    const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
    EXPECT_TRUE(Tells(verdict.headline, after ? "the checkpoint of step 7600 was saved after that"
                                              : "the checkpoint of step 7600 had been saved"))
        << verdict.headline;
  }
}

TEST(KernelReason, AnUptimeDoesNotShowWhen) {
  JobSketch job(4, {});
  job.Say(3, EventKind::cuda_error).Make<CudaError>().words = "unspecified launch failure";
  job.Tell(EventKind::xid).Make<Xid>() = {.number = 79, .pci = "0000:5e:00"};
  Incident incident = job.Finish();
  for (Event& event : incident.events) event.wall_ns = kNoTime;
  const Finding finding = JudgedCase(std::move(incident)).Only("gpu-fault");
  ASSERT_FALSE(finding.evidence.empty());
  EXPECT_FALSE(Tells(finding.evidence[0].says, "at that time")) << finding.evidence[0].says;
  EXPECT_TRUE(Tells(finding.evidence[0].says, "does not show when")) << finding.evidence[0].says;
}

TEST(GpuFault, WhatIsOnlyPossibleExplainsNoErrorOfARank) {
  JobSketch job(4, {});
  job.Say(2, EventKind::exception).Make<Raised>().type = "ValueError";
  job.Tell(EventKind::xid).Make<Xid>() = {.number = 79, .pci = "0000:5e:00"};
  Incident incident = job.Finish();
  for (Event& event : incident.events) event.wall_ns = kNoTime;
  const Diagnosis verdict = JudgedCase(std::move(incident)).Verdict();
  EXPECT_EQ(verdict.cause, "application-exception");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
}

}  // namespace
}  // namespace tacet
