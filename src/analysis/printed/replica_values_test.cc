// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/replica_values.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

// One line per rank and step: the values as they are printed.
void AddValues(LogOutline& outline, bool losses, const std::vector<std::vector<std::string>>& steps,
               const std::string& name) {
  for (size_t step = 0; step < steps.size(); ++step)
    for (size_t rank = 0; rank < steps[step].size(); ++rank)
      outline.values.push_back({static_cast<int32_t>(rank),
                                losses ? RankValue::Kind::loss : RankValue::Kind::parameters,
                                "step " + std::to_string(step),
                                steps[step][rank],
                                {},
                                losses ? "" : name});
}
Incident WithValues(bool losses, const std::vector<std::vector<std::string>>& steps) {
  Incident incident;
  AddValues(incident.outlines.emplace_back(), losses, steps, "param_norm");
  return incident;
}

TEST(ReplicaValues, ALossThatOneRankLosesFirst) {
  const Incident first = WithValues(true, {{"2.1", "2.2", "2.0"}, {"2.1", "2.2", "nan"}, {"nan", "nan", "nan"}});
  const auto found = FindFirstNonFinite(first);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, Rank{2});
  EXPECT_EQ(found->at, "step 1");
  EXPECT_EQ(found->finite, 2u);
  EXPECT_FALSE(FindFirstNonFinite(WithValues(true, {{"2.1", "2.2"}, {"nan", "nan"}, {"nan", "nan"}}))) << "all at once";
  EXPECT_FALSE(FindFirstNonFinite(WithValues(true, {{"2.1", "nan"}, {"2.1", "2.2"}}))) << "a step that was skipped";
  EXPECT_FALSE(FindFirstNonFinite(WithValues(true, {{"2.1", "2.2"}, {"2.1", "2.2"}})));
}

// One file per rank: the first step without a finite loss, and the last one with it.
void AddFile(Incident& incident, int64_t lost, int64_t finite) {
  const FileId file{static_cast<uint32_t>(incident.processes.size())};
  Process& process = incident.processes.emplace_back();
  process.rank = Rank{static_cast<int32_t>(incident.processes.size() - 1)};
  process.files.push_back(file);
  TrainingRecord& record = incident.training.emplace_back();
  record.source = record.loss.run_source = {file, 7, 0};
  record.loss.lines = 9;
  record.loss.run = lost >= 0 ? 4 : 0;
  record.loss.run_step = lost;
  record.loss.finite_step = finite;
  record.loss.word = "nan";
}

TEST(ReplicaValues, ALossThatOneRankLosesFirstInAFileOfItsOwn) {
  Incident first;
  AddFile(first, 40, 30);
  AddFile(first, 30, 20);
  AddFile(first, 40, 30);
  const auto found = FindFirstNonFinite(first);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, Rank{1});
  EXPECT_EQ(found->at, "step 30");
  EXPECT_EQ(found->finite, 2u);
  Incident together;
  AddFile(together, 40, 30);
  AddFile(together, 40, 30);
  EXPECT_FALSE(FindFirstNonFinite(together)) << "all at once";
  Incident alone;
  AddFile(alone, 40, 30);
  AddFile(alone, -1, 70);
  EXPECT_FALSE(FindFirstNonFinite(alone)) << "the others never have it";
}

TEST(ReplicaValues, ALossThatWasEqualOnAllRanksAndParts) {
  const Incident parts = WithValues(true, {{"6.9312", "6.9312", "6.9312"},
                                           {"6.5523", "6.5523", "6.5523"},
                                           {"6.2207", "6.2207", "6.3115"},
                                           {"5.8114", "5.8114", "6.1180"}});
  const auto drift = FindDriftedReplica(parts);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->odd->rank, 2);
  EXPECT_EQ(drift->odd->at, "step 2");
  EXPECT_FALSE(FindDriftedReplica(WithValues(
      true, {{"2.3026", "2.3026", "2.3026"}, {"2.2207", "2.2207", "2.3115"}, {"2.1114", "2.1114", "2.1180"}})))
      << "the loss before anything is learned is the same everywhere";
  EXPECT_FALSE(FindDriftedReplica(WithValues(
      true, {{"6.9312", "6.9101", "6.9044"}, {"6.5523", "6.5711", "6.5602"}, {"6.2207", "6.2411", "6.3115"}})))
      << "each rank has its own samples";
}

TEST(ReplicaValues, ParametersOfOneRankThatPart) {
  const Incident parts =
      WithValues(false, {{"15.5", "15.5", "15.5"}, {"15.7", "15.7", "15.1"}, {"15.9", "15.9", "15.3"}});
  const auto drift = FindDriftedReplica(parts);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->odd->rank, 2);
  EXPECT_EQ(drift->odd->at, "step 1");
  EXPECT_EQ(drift->agreed->at, "step 0");
  EXPECT_EQ(drift->usual->value, "15.7");
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1", "2", "3"}, {"2", "3", "4"}}))) << "shards, never equal";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1", "1", "1"}, {"2", "2", "3"}, {"4", "4", "4"}})))
      << "they agree again";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"1", "1", "1"}, {"2", "2", "3"}}))) << "one step shows little";
  EXPECT_FALSE(FindDriftedReplica(
      WithValues(false, {{"1.0", "1.0", "1.0"}, {"2.31", "2.31", "2.30"}, {"3.41", "3.41", "3.40"}})))
      << "rounded";
  const auto two = FindDriftedReplica(WithValues(false, {{"1", "1"}, {"2", "2"}, {"3", "4"}, {"5", "7"}}));
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->which()) << "of two, which is it?";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"0", "0"}, {"2", "3"}, {"2", "3"}})))
      << "equal at the start only";
}

TEST(ReplicaValues, ParametersOfOneRankThatWereNeverEqual) {
  const Incident parts = WithValues(
      false, {{"15.5121", "15.5121", "15.9013"}, {"15.7302", "15.7302", "15.9551"}, {"15.9113", "15.9113", "16.0104"}});
  const auto drift = FindDriftedReplica(parts);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->odd->rank, 2);
  EXPECT_FALSE(drift->agreed);
  EXPECT_FALSE(FindDriftedReplica(
      WithValues(false, {{"15.5", "15.5", "15.9"}, {"15.7", "15.7", "16.0"}, {"15.9", "15.9", "16.2"}})))
      << "too few digits to be sure";
  EXPECT_FALSE(FindDriftedReplica(WithValues(false, {{"15.5121", "15.5121", "14.1", "14.1"},
                                                     {"15.7302", "15.7302", "14.2", "14.2"},
                                                     {"15.9113", "15.9113", "14.3", "14.3"}})))
      << "two stages of two replicas";
  EXPECT_FALSE(
      FindDriftedReplica(WithValues(false, {{"15.5121", "15.5202"}, {"15.7302", "15.7403"}, {"15.9113", "15.9214"}})))
      << "two shards";
}

TEST(ReplicaValues, ASettingThatOnlyTheOddOneHas) {
  Incident incident = WithValues(
      false, {{"15.5121", "15.5121", "15.9013"}, {"15.7302", "15.7302", "15.9551"}, {"15.9113", "15.9113", "16.0104"}});
  LogOutline& outline = incident.outlines.front();
  const size_t values = outline.values.size();
  for (size_t i = 0; i < values; ++i) {
    RankValue lr = outline.values[i];
    lr.kind = RankValue::Kind::setting;
    lr.name = "lr";
    lr.value = lr.rank == 2 ? "0.03" : "0.01";
    outline.values.push_back(lr);
  }
  const auto drift = FindDriftedReplica(incident);
  ASSERT_TRUE(drift && drift->setting);
  EXPECT_EQ(drift->setting->value, "0.03");
  EXPECT_EQ(drift->usual_setting->value, "0.01");
}

TEST(ReplicaValues, PartsOfTheModelThatNobodyKeepsEqual) {
  const std::vector<std::vector<std::string>> body = {{"860.83", "860.83"}, {"860.84", "860.84"}, {"860.86", "860.86"}};
  Incident incident;
  LogOutline& outline = incident.outlines.emplace_back();
  AddValues(outline, false, body, "body_sum");
  AddValues(outline, false, {{"25.3014", "25.3290"}, {"25.3329", "25.3412"}, {"25.3902", "25.3915"}}, "head_sum");
  const auto found = FindUnsharedParameters(incident);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->one->name, "head_sum");
  EXPECT_EQ(found->equal->name, "body_sum");
  Incident shards;
  AddValues(shards.outlines.emplace_back(), false,
            {{"25.3014", "25.3290"}, {"25.3329", "25.3412"}, {"25.3902", "25.3915"}}, "sum");
  EXPECT_FALSE(FindUnsharedParameters(shards)) << "nothing is equal: each may hold its own part";
  EXPECT_FALSE(FindUnsharedParameters(WithValues(false, body)));
}

}  // namespace
}  // namespace tacet
