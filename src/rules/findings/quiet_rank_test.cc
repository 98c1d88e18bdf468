// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

// These ranks lost a peer; rank 2 said something into the same output.
Diagnosis Lost(const std::vector<int32_t>& ranks) {
  JobSketch job(4, {});
  job.GiveOutputs();
  for (const int32_t r : ranks) {
    Event& event = job.Say(r, EventKind::nccl_error);
    event.source.file = FileId{0};
    auto& error = event.Make<NcclError>();
    error.code = 6;
    error.result = "ncclRemoteError";
    error.reason = "Connection closed by remote peer";
  }
  Incident incident = job.Finish();
  LogOutline outline;
  outline.last_of_ranks.push_back(LineOfRank{2, "shard is done, exporting", {FileId{0}, 14, 0}});
  incident.outlines.push_back(std::move(outline));
  return JudgedCase(std::move(incident)).Verdict();
}

TEST(QuietRank, TheOnlyOneWithoutAnErrorIsQuotedAndNotBlamed) {
  const Diagnosis verdict = Lost({0, 1, 3});
  EXPECT_NE(verdict.headline.find("rank 2 is the only one that reports no error"), std::string::npos)
      << verdict.headline;
  EXPECT_NE(verdict.headline.find("'shard is done, exporting'"), std::string::npos) << verdict.headline;
  EXPECT_TRUE(verdict.ranks.empty());
}

TEST(QuietRank, OfTwoNobodyIsSpokenOf) {
  EXPECT_EQ(Lost({0, 1}).headline.find("only one"), std::string::npos);
  EXPECT_EQ(Lost({0, 1, 2, 3}).headline.find("only one"), std::string::npos);
}

}  // namespace
}  // namespace tacet
