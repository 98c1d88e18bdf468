// SPDX-License-Identifier: Apache-2.0
#include "launch/lab/lab_faults.h"

#include <gtest/gtest.h>

#include <set>

namespace tacet {
namespace {

LabVerdict Said(std::string cause, std::vector<int> ranks, std::string headline) {
  LabVerdict verdict;
  verdict.given = true;
  verdict.status = "hang";
  verdict.cause = std::move(cause);
  verdict.ranks = std::move(ranks);
  verdict.where = verdict.headline = std::move(headline);
  return verdict;
}

TEST(LabFaults, EveryNameIsUniqueAndInTheTrainingProgram) {
  std::set<std::string_view> names;
  for (const LabFault& fault : LabFaults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_EQ(fault.causes.empty(), fault.who == LabFault::Who::nobody) << fault.name;
    EXPECT_NE(LabTrainingProgram().find("\"" + std::string(fault.name) + "\""), std::string_view::npos) << fault.name;
    if (!fault.function.empty()) {
      EXPECT_NE(LabTrainingProgram().find("def " + std::string(fault.function) + "("), std::string_view::npos);
    }
  }
  EXPECT_EQ(FindLabFault("no such fault"), nullptr);
}

TEST(LabFaults, AVerdictIsRightOnlyWithCauseRankAndLine) {
  const LabFault& fault = *FindLabFault("stuck-lock");
  const std::string line = "Rank 2 is stuck on the host in count_samples (train.py:97)";
  EXPECT_EQ(WhatIsWrong(fault, 2, Said("rank-stuck-on-host", {2}, line)), "");
  EXPECT_EQ(WhatIsWrong(fault, 1, Said("rank-stuck-on-host", {2}, line)), "names rank 2");
  EXPECT_EQ(WhatIsWrong(fault, 2, Said("rank-stuck-on-host", {2, 3}, line)), "names ranks 2, 3");
  EXPECT_EQ(WhatIsWrong(fault, 2, Said("rank-frozen", {2}, line)), "cause rank-frozen, rank 2");
  EXPECT_EQ(WhatIsWrong(fault, 2, Said("rank-stuck-on-host", {2}, "Rank 2 is stuck")),
            "does not name count_samples and its line");
  EXPECT_EQ(WhatIsWrong(fault, 2, {}), "nothing was reported");
}

TEST(LabFaults, OfAHealthyJobNothingMayBeSaid) {
  const LabFault& fault = *FindLabFault("evaluates");
  EXPECT_EQ(WhatIsWrong(fault, 0, {}), "");
  EXPECT_NE(WhatIsWrong(fault, 0, Said("rank-stuck-on-host", {0}, "Rank 0 is stuck")), "");
}

}  // namespace
}  // namespace tacet
