// SPDX-License-Identifier: Apache-2.0
#include "rules/precedence.h"

#include <gtest/gtest.h>

#include "rules/rule.h"

namespace tacet {
namespace {

Finding Found(std::string cause, Confidence confidence = Confidence::likely, Severity severity = Severity::critical) {
  Finding finding;
  finding.cause = std::move(cause);
  finding.confidence = confidence;
  finding.severity = severity;
  return finding;
}

TEST(Precedence, NoCauseExplainsItselfThroughOthers) {
  for (const Explanation& line : ExplanationTable())
    EXPECT_FALSE(Explains(line.cause, line.cause)) << line.cause << " stands in a circle";
}

TEST(Precedence, APairIsEitherOrderedOrIndependent) {
  for (const IndependentPair& pair : IndependentPairs()) {
    const bool direct = Explains(pair.a, pair.b) || Explains(pair.b, pair.a);
    EXPECT_FALSE(direct) << pair.a << " and " << pair.b << " are called independent, yet one explains the other";
  }
}

TEST(Precedence, ACauseComesBeforeWhatItExplains) {
  std::vector<Finding> findings = {Found("gpu-stalled", Confidence::certain), Found("collective-skipped")};
  OrderByPrecedence(findings);
  EXPECT_EQ(findings[0].cause, "collective-skipped");
  EXPECT_EQ(findings[1].explained_by, "collective-skipped");
  EXPECT_EQ(findings[0].explained_by, "");
}

TEST(Precedence, OfTwoThatExplainNothingTheSurerComesFirst) {
  std::vector<Finding> findings = {Found("gpu-stalled", Confidence::possible),
                                   Found("rank-stuck-on-host", Confidence::certain)};
  OrderByPrecedence(findings);
  EXPECT_EQ(findings[0].cause, "rank-stuck-on-host");
  EXPECT_EQ(findings[1].explained_by, "");
}

TEST(Precedence, WhoFailedBeforeItJoinedIsMissingForThatReason) {
  for (const bool same : {true, false}) {
    std::vector<Finding> findings = {Found("init-rank-missing", Confidence::certain),
                                     Found("application-exception", Confidence::certain)};
    findings[0].ranks = {Rank{2}};
    findings[1].ranks = {Rank{same ? 2 : 0}};
    OrderByPrecedence(findings);
    EXPECT_EQ(findings[0].cause, same ? "application-exception" : "init-rank-missing");
    EXPECT_EQ(findings[1].explained_by, findings[0].cause);
    EXPECT_EQ(findings[0].explained_by, "");
  }
}

TEST(Precedence, AWarningExplainsNothingThatIsWorse) {
  std::vector<Finding> findings = {Found("application-exception"),
                                   Found("environment-differs", Confidence::certain, Severity::warning)};
  OrderByPrecedence(findings);
  EXPECT_EQ(findings[0].cause, "application-exception");
  EXPECT_EQ(findings[0].explained_by, "");
}

TEST(Precedence, AMismatchExplainsOnlyAGpuErrorThatIsLessSure) {
  std::vector<Finding> weak = {Found("gpu-fault", Confidence::possible),
                               Found("collective-mismatch-size", Confidence::certain)};
  OrderByPrecedence(weak);
  EXPECT_EQ(weak[0].cause, "collective-mismatch-size");
  std::vector<Finding> sure = {Found("collective-mismatch-size", Confidence::likely),
                               Found("gpu-fault", Confidence::certain)};
  OrderByPrecedence(sure);
  EXPECT_EQ(sure[0].cause, "gpu-fault");
}

}  // namespace
}  // namespace tacet
