// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/testimony.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

struct Heard {
  Incident incident;
  Analyses analyses;
  explicit Heard(Incident&& from) : incident(std::move(from)), analyses(Analyse(incident)) {}
};

JobSketch StuckJob() {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, kStarted);
  job.Wait(600 * kSecondNs);
  return job;
}

TEST(Testimony, AStackOutsideCommunicationTellsWhereTheHostIs) {
  JobSketch job = StuckJob();
  job.Stack(2, InDataLoader());
  const Heard heard(job.Finish());
  const StandstillView view = FindStandstills(heard.incident, heard.analyses);
  ASSERT_EQ(view.ranks.size(), 1u);
  const Standstill& still = view.ranks[0];
  EXPECT_EQ(still.rank, Rank{2});
  EXPECT_EQ(still.kind, StandstillKind::host);
  EXPECT_EQ(still.state.host.value, HostPlace::own_code);
  EXPECT_EQ(still.state.process.value, Liveness::running);
  ASSERT_LT(still.state.host.by, still.claims.size());
  EXPECT_NE(still.claims[still.state.host.by].stack, nullptr);
  for (const Claim& claim : still.claims) EXPECT_FALSE(claim.because.empty());
}

TEST(Testimony, WhoEndedByItselfIsNotWhereItsStackWas) {
  JobSketch job = StuckJob();
  job.Stack(2, InDataLoader());
  Event& error = job.Say(2, EventKind::exception);
  error.Make<Raised>().type = "ValueError";
  error.text = "bad sample";
  const Heard heard(job.Finish());
  const StandstillView view = FindStandstills(heard.incident, heard.analyses);
  ASSERT_EQ(view.ranks.size(), 1u);
  const Standstill& still = view.ranks[0];
  EXPECT_EQ(still.kind, StandstillKind::explained);
  EXPECT_EQ(still.state.process.value, Liveness::gone);
  EXPECT_EQ(still.state.host.value, HostPlace::own_code) << "what lost is kept, too";
  ASSERT_LT(still.state.process.by, still.claims.size());
  const Claim& decisive = still.claims[still.state.process.by];
  EXPECT_EQ(decisive.strength, Strength::proof);
  ASSERT_NE(decisive.event, nullptr);
  EXPECT_EQ(decisive.event->As<Raised>().type, "ValueError");
}

TEST(Testimony, NobodyIsAskedAboutARankThatIsUnknown) {
  JobSketch job = StuckJob();
  const Heard heard(job.Finish());
  const StandstillView view = FindStandstills(heard.incident, heard.analyses);
  ASSERT_FALSE(view.ranks.empty());
  const Scene scene(heard.incident, heard.analyses);
  EXPECT_TRUE(ClaimsAbout(scene, Rank{77}, *view.ranks[0].root).empty());
}

}  // namespace
}  // namespace tacet
