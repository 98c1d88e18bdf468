// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "lint/environment_lint.h"
#include "lint/variable_harm.h"

namespace tacet {
namespace {

std::vector<LintFinding> LintOne(const std::string& name, const std::string& value, ReleaseNumber nccl = 0) {
  GivenEnvironment environment;
  environment.source = EnvironmentSource::script;
  environment.variables.push_back({name, value, 1});
  return LintEnvironments({&environment, 1}, {.nccl = nccl}).findings;
}

TEST(VariableTable, KnowsEveryDocumentedVariable) {
  std::ifstream list(TACET_SOURCE_DIR "/src/lint/documented_variables.txt");
  size_t count = 0;
  for (std::string name; std::getline(list, name); ++count)
    EXPECT_TRUE(FindKnownVariable(name) != nullptr || FindNeverRead(name) != nullptr) << name;
  EXPECT_GT(count, 250u);
}

TEST(VariableTable, HoldsEveryNameOnceWithItsEffect) {
  std::set<std::string_view> names;
  for (const Variable& variable : AllVariables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_FALSE(variable.effect.empty()) << variable.name;
    EXPECT_FALSE(ProductOf(variable.name).empty()) << variable.name;
    EXPECT_TRUE(variable.instead.empty() || FindKnownVariable(variable.instead) != nullptr) << variable.name;
    EXPECT_TRUE(variable.until == 0 || variable.since < variable.until) << variable.name;
  }
  EXPECT_GT(names.size(), 380u);
}

TEST(VariableTable, HarmsAreOfKnownVariables) {
  for (const VariableHarm& harm : AllVariableHarms()) EXPECT_NE(FindKnownVariable(harm.name), nullptr) << harm.name;
}

TEST(VariableTable, NoDocumentedDefaultIsFlagged) {
  size_t checked = 0;
  for (const Variable& variable : AllVariables()) {
    if (variable.standard.empty() || variable.until != 0) continue;
    ++checked;
    for (const LintFinding& finding : LintOne(std::string(variable.name), std::string(variable.standard)))
      if (finding.kind != LintKind::renamed) ADD_FAILURE() << finding.headline;
  }
  EXPECT_GT(checked, 250u);
}

// The table of defaults that changed, read the other way round: in its own release a default is no finding.
TEST(VariableTable, ADefaultIsNotFlaggedInTheReleaseThatHadIt) {
  struct Past {
    const char *name, *value;
    ReleaseNumber in_force, outdated;
  };
  for (const Past& past :
       {Past{"NCCL_IB_TIMEOUT", "14", 21300, 21400}, Past{"NCCL_IB_TIMEOUT", "18", 22200, 22304},
        Past{"NCCL_IB_SPLIT_DATA_ON_QPS", "1", 21900, 22003}, Past{"NCCL_IB_TC", "0", 22501, 22602},
        Past{"NCCL_GRAPH_REGISTER", "0", 21806, 21901}, Past{"NCCL_NET_GDR_C2C", "0", 22602, 22703}}) {
    EXPECT_TRUE(LintOne(past.name, past.value, past.in_force).empty()) << past.name << "=" << past.value;
    const auto findings = LintOne(past.name, past.value, past.outdated);
    ASSERT_EQ(findings.size(), 1u) << past.name << "=" << past.value;
    EXPECT_EQ(findings[0].kind, LintKind::old_default);
  }
}

TEST(VariableTable, FindsTheNameThatWasMeant) {
  EXPECT_EQ(NearestVariable("NCCL_IB_DISABEL"), "NCCL_IB_DISABLE");
  EXPECT_EQ(NearestVariable("NCCL_SOCKET_IFNAMES"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(NearestVariable("NCCL_DISABLE_P2P"), "NCCL_P2P_DISABLE");
  EXPECT_EQ(NearestVariable("NCLL_DEBUG"), "NCCL_DEBUG");
  EXPECT_EQ(NearestVariable("NCCL_TRACE_BUFFER_SIZE"), "TORCH_NCCL_TRACE_BUFFER_SIZE");
  EXPECT_EQ(NearestVariable("NCCL_COFFEE_STRENGTH"), "");
  EXPECT_EQ(NearestVariable(std::string(100'000, 'N')), "");
}

TEST(VariableTable, ReadsReleasesAsPeopleAndLogsWriteThem) {
  EXPECT_EQ(ParseReleaseNumber("2.28.9+cuda13.0"), 22809);
  EXPECT_EQ(ParseReleaseNumber("NCCL version 2.4.8"), 20408);
  EXPECT_EQ(ParseReleaseNumber("v2.27.3-1"), 22703);
  EXPECT_EQ(ParseReleaseNumber("2.24"), 22400);
  EXPECT_EQ(ParseReleaseNumber("22809"), 22809);
  EXPECT_EQ(ParseReleaseNumber("newest"), 0);
  EXPECT_EQ(ParseReleaseNumber("99999999999999999999.1"), 0);
  EXPECT_EQ(ReleaseWords(22809), "2.28.9");
  EXPECT_EQ(ReleaseWords(21299), "2.12");
}

}  // namespace
}  // namespace tacet
