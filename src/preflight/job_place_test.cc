// SPDX-License-Identifier: Apache-2.0
#include "preflight/job_place.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(JobPlace, WithoutALauncherThereIsOneProcess) {
  const auto place = FindJobPlace({}, "", -1, -1);
  ASSERT_TRUE(place);
  EXPECT_EQ(place.value().rank, 0);
  EXPECT_EQ(place.value().size, 1);
}

TEST(JobPlace, ARankThatDoesNotExistIsRefusedInWords) {
  EXPECT_EQ(FindJobPlace({}, "n0", 3, 2).error().message, "rank 3 does not exist in a job of 2: ranks are 0 and 1");
  EXPECT_EQ(FindJobPlace({}, "n0", 8, 8).error().message, "rank 8 does not exist in a job of 8: ranks are 0 to 7");
}

TEST(JobPlace, ReadsTheVariablesOfEachLauncher) {
  const auto torch = FindJobPlace({{"RANK", "3"},
                                   {"WORLD_SIZE", "8"},
                                   {"MASTER_ADDR", "a"},
                                   {"MASTER_PORT", "29500"},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_NTASKS", "1"}},
                                  "", -1, -1);
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch.value().rank, 3);
  EXPECT_EQ(torch.value().meet_host, "a");
  EXPECT_EQ(torch.value().meet_port, 29500);
  const auto slurm = FindJobPlace(
      {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_NODELIST", "gpu[007-010]"}, {"SLURM_JOB_ID", "42"}},
      "", -1, -1);
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm.value().meet_host, "gpu007");
  EXPECT_EQ(slurm.value().token, "42");
  const auto mpi = FindJobPlace({{"OMPI_COMM_WORLD_RANK", "1"},
                                 {"OMPI_COMM_WORLD_SIZE", "2"},
                                 {"OMPI_MCA_orte_hnp_uri", "1.0;tcp://10.1.1.1,172.17.0.1:37031"}},
                                "", -1, -1);
  ASSERT_TRUE(mpi);
  EXPECT_EQ(mpi.value().meet_host, "10.1.1.1");
  const auto local = FindJobPlace({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}, "", -1, -1);
  ASSERT_TRUE(local);
  EXPECT_EQ(local.value().meet_host, "127.0.0.1");
}

TEST(JobPlace, ThePortThatTorchrunItselfUsesIsLeftAlone) {
  const auto place = FindJobPlace({{"RANK", "1"},
                                   {"WORLD_SIZE", "2"},
                                   {"MASTER_ADDR", "a"},
                                   {"MASTER_PORT", "29500"},
                                   {"TORCHELASTIC_RUN_ID", "none"}},
                                  "", -1, -1);
  ASSERT_TRUE(place);
  EXPECT_EQ(place.value().meet_port, 29501);
}

TEST(JobPlace, WhatIsGivenComesFirst) {
  const auto place = FindJobPlace({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}}, "b:4000", 1, 2);
  ASSERT_TRUE(place);
  EXPECT_EQ(place.value().rank, 1);
  EXPECT_EQ(place.value().size, 2);
  EXPECT_EQ(place.value().meet_host, "b");
  EXPECT_EQ(place.value().meet_port, 4000);
}

TEST(JobPlace, WhatCannotBeIsAnError) {
  EXPECT_FALSE(FindJobPlace({}, "", 2, 2));
  EXPECT_FALSE(FindJobPlace({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "", -1, -1));
  EXPECT_FALSE(FindJobPlace({}, "host:99999", 0, 2));
  const auto odd = FindJobPlace({{"RANK", "-1"}, {"WORLD_SIZE", "99999999999999"}}, "", -1, -1);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd.value().size, 1);
}

TEST(JobPlace, TheFirstHostOfAList) {
  EXPECT_EQ(FirstHostOf("gpu[007-012,20],login"), "gpu007");
  EXPECT_EQ(FirstHostOf("a,b"), "a");
  EXPECT_EQ(FirstHostOf("alone"), "alone");
  EXPECT_EQ(FirstHostOf("n[3]"), "n3");
  EXPECT_EQ(FirstHostOf(""), "");
  EXPECT_EQ(FirstHostOf("n["), "n");
}

}  // namespace
}  // namespace tacet
