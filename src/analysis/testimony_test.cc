// SPDX-License-Identifier: Apache-2.0
#include "analysis/testimony.h"

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

TEST(Testimony, TheFirstWitnessThatKnowsDecides) {
  JobSketch job = StuckJob();
  job.Stack(2, InDataLoader());
  const Heard heard(job.Finish());
  const StandstillView view = FindStandstills(heard.incident, heard.analyses);
  ASSERT_EQ(view.ranks.size(), 1u);
  EXPECT_EQ(view.ranks[0].rank, Rank{2});
  EXPECT_EQ(view.ranks[0].kind, StandstillKind::host);
  const Scene scene(heard.incident, heard.analyses);
  const std::vector<Claim> claims = ClaimsAbout(scene, Rank{2}, *view.ranks[0].root);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(claims[0].says, view.ranks[0].kind) << "the first claim is the one that decided";
  EXPECT_NE(claims[0].stack, nullptr);
  for (const Claim& claim : claims) EXPECT_FALSE(claim.because.empty());
}

TEST(Testimony, WordsOfTheProcessItselfComeBeforeItsStack) {
  JobSketch job = StuckJob();
  job.Stack(2, InDataLoader());
  Event& error = job.Say(2, EventKind::exception);
  error.Make<Raised>().type = "ValueError";
  error.text = "bad sample";
  const Heard heard(job.Finish());
  const StandstillView view = FindStandstills(heard.incident, heard.analyses);
  ASSERT_EQ(view.ranks.size(), 1u);
  EXPECT_EQ(view.ranks[0].kind, StandstillKind::explained);
  const Scene scene(heard.incident, heard.analyses);
  const std::vector<Claim> claims = ClaimsAbout(scene, Rank{2}, *view.ranks[0].root);
  ASSERT_GE(claims.size(), 2u) << "who lost is told, too";
  EXPECT_EQ(claims[0].strength, Strength::proof);
  ASSERT_NE(claims[0].event, nullptr);
  EXPECT_EQ(claims[0].event->As<Raised>().type, "ValueError");
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
