// SPDX-License-Identifier: Apache-2.0
// What the programs around a job report.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

Event Reported(std::string_view id, std::string subject = "", uint32_t line = 1) {
  Event event;
  event.kind = EventKind::site_message;
  event.speaker = kNobody;
  event.source.line = line;
  event.detail = SiteNote{id, std::move(subject), false};
  return event;
}

Event StepPrinted(uint32_t line) {
  Event event;
  event.kind = EventKind::progress;
  event.speaker = kNobody;
  event.source.line = line;
  return event;
}

Incident Holding(std::vector<Event> events) {
  Incident incident;
  incident.events = std::move(events);
  return incident;
}

TEST(SiteFinding, NamesWhatFailedAndWhatToDo) {
  const JudgedCase judged(Holding({Reported("adapter-fatal", "0000:5e:00.0")}));
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_EQ(verdict.cause, "network-fault");
  EXPECT_EQ(verdict.headline, "The firmware of network adapter 0000:5e:00.0 failed");
  EXPECT_TRUE(verdict.ranks.empty());
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_FALSE(verdict.findings[0].fix.empty());
}

TEST(SiteFinding, HasNoCauseWhereNoneFits) {
  const Diagnosis verdict = JudgedCase(Holding({Reported("script-line-ends")})).Verdict();
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_EQ(verdict.cause, "");
  EXPECT_FALSE(verdict.findings[0].fix.empty());
}

TEST(SiteFinding, OfAToolTellsNothingOfTheJob) {
  const Diagnosis verdict = JudgedCase(Holding({Reported("dcgm-unreachable")})).Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_EQ(verdict.cause, "");
}

TEST(SiteFinding, IsNoneOfWhatHealthyHostsPrint) {
  EXPECT_TRUE(JudgedCase(Holding({Reported("probe-failed"), Reported("driver-assertion")})).Verdict().findings.empty());
}

TEST(SiteFinding, IsOverWhereALaterLineSaysSo) {
  const auto status = [](std::string_view id, std::string_view later) {
    return JudgedCase(Holding({Reported(id, "", 1), Reported(later, "", 2)})).Verdict().status;
  };
  EXPECT_EQ(status("pod-volume", "pod-started"), Status::undetermined);
  EXPECT_EQ(status("slurm-node-down", "slurm-node-back"), Status::undetermined);
  EXPECT_EQ(status("pod-volume", "slurm-node-back"), Status::hang);
  // The other way round it is not.
  EXPECT_EQ(JudgedCase(Holding({Reported("pod-started", "", 1), Reported("pod-volume", "", 2)})).Verdict().status,
            Status::hang);
}

TEST(SiteFinding, EndsNoJobThatMakesProgressBehindIt) {
  EXPECT_EQ(JudgedCase(Holding({Reported("container-start", "", 1), StepPrinted(2)})).Verdict().status,
            Status::undetermined);
  EXPECT_EQ(JudgedCase(Holding({StepPrinted(1), Reported("container-start", "", 2)})).Verdict().status, Status::crash);
}

TEST(SiteFinding, IsToldOnceOfSeveralLines) {
  const Diagnosis verdict =
      JudgedCase(Holding({Reported("local-disk", "nvme3", 1), Reported("local-disk", "nvme3", 2)})).Verdict();
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].evidence.size(), 2u);
}

}  // namespace
}  // namespace tacet
