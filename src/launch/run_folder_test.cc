// SPDX-License-Identifier: Apache-2.0
#include "launch/run_folder.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(RunFolder, RunsThatALauncherStartsTogetherHaveAPartEach) {
  EXPECT_EQ(PartOfJob({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}}, "gpu7"), "gpu7");
  EXPECT_EQ(PartOfJob({{"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "3"}}, "gpu7"), "gpu7-3");
  EXPECT_EQ(PartOfJob({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}, "gpu7"), "gpu7-1");
  EXPECT_EQ(PartOfJob({{"PMI_SIZE", "2"}}, "../gpu7"), "gpu7");
}

TEST(RunFolder, ARunThatIsAloneHasTheWholeFolder) {
  EXPECT_EQ(PartOfJob({}, "gpu7"), "");
  EXPECT_EQ(PartOfJob({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_LOCALID", "0"}}, "gpu7"), "");
  // A batch script of a job with many tasks.
  EXPECT_EQ(PartOfJob({{"SLURM_NTASKS", "64"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}, "gpu7"), "");
  EXPECT_EQ(PartOfJob({{"SLURM_STEP_NUM_TASKS", "two"}}, "gpu7"), "");
}

}  // namespace
}  // namespace tacet
