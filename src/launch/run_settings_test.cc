// SPDX-License-Identifier: Apache-2.0
#include "launch/run_settings.h"

#include <gtest/gtest.h>

#include <set>

namespace tacet {
namespace {

const RunSetting* Find(const std::vector<RunSetting>& settings, std::string_view name) {
  for (const RunSetting& setting : settings)
    if (setting.name == name) return &setting;
  return nullptr;
}

RunPlaces Places() {
  RunPlaces places;
  places.folder = "/runs/a";
  places.pipe_prefix = "/runs/a/flight/pipe_rank_";
  places.python_folder = "/runs/a/python";
  return places;
}

TEST(RunSettings, EachVariableIsChosenOnce) {
  for (const RunLevel level : {RunLevel::light, RunLevel::normal, RunLevel::full}) {
    std::set<std::string> names;
    for (const RunSetting& setting : ChooseSettings(level, Places(), {}))
      EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
  }
}

TEST(RunSettings, KeepsWhatTheUserHasSet) {
  const auto settings = ChooseSettings(RunLevel::full, Places(), {{"TORCH_DISTRIBUTED_DEBUG", "OFF"}});
  const RunSetting* kept = Find(settings, "TORCH_DISTRIBUTED_DEBUG");
  ASSERT_NE(kept, nullptr);
  EXPECT_TRUE(kept->kept);
  EXPECT_EQ(kept->users_value, "OFF");
  EXPECT_NE(DescribeSettings(settings, false).find("TORCH_DISTRIBUTED_DEBUG=OFF is kept"), std::string::npos);
}

TEST(RunSettings, TheSecondNameOfAVariableIsLeftAloneWhereTheUserHasSetTheFirst) {
  const auto settings = ChooseSettings(RunLevel::normal, Places(), {{"TORCH_FR_BUFFER_SIZE", "9"}});
  EXPECT_EQ(Find(settings, "TORCH_NCCL_TRACE_BUFFER_SIZE"), nullptr);
  EXPECT_TRUE(Find(settings, "TORCH_FR_BUFFER_SIZE")->kept);
}

TEST(RunSettings, ExtendsThePathOfPython) {
  EXPECT_EQ(Find(ChooseSettings(RunLevel::light, Places(), {}), "PYTHONPATH")->value, "/runs/a/python");
  EXPECT_EQ(Find(ChooseSettings(RunLevel::light, Places(), {{"PYTHONPATH", "/x"}}), "PYTHONPATH")->value,
            "/runs/a/python:/x");
}

TEST(RunSettings, SetsNoPipeWhereNoneCanBeMade) {
  RunPlaces places = Places();
  places.pipe_prefix.clear();
  EXPECT_EQ(Find(ChooseSettings(RunLevel::full, places, {}), "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"), nullptr);
}

TEST(RunSettings, KnowsWhichVariablesMatter) {
  EXPECT_TRUE(IsRelevantVariable("NCCL_IB_HCA"));
  EXPECT_TRUE(IsRelevantVariable("RANK"));
  EXPECT_FALSE(IsRelevantVariable("HOME"));
  EXPECT_FALSE(IsRelevantVariable("MY_NCCL_IB_HCA"));
}

}  // namespace
}  // namespace tacet
