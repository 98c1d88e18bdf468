// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_launch_failure.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

Rendezvous LaunchOf(std::string_view text) {
  return OneEvent(ReadText(std::string(text) + "\n", "job.out"), EventKind::rendezvous_incomplete).As<Rendezvous>();
}

TEST(TorchLogLaunchFailure, TheDaemonThatAShellDoesNotFindIsTheReason) {
  const Rendezvous told = LaunchOf(
      "bash: line 1: /opt/openmpi/bin/orted: No such file or directory\n"
      "ORTE was unable to reliably start one or more daemons.");
  EXPECT_EQ(told.launch, LaunchProblem::no_program);
  EXPECT_EQ(told.reason, "orted");
  EXPECT_EQ(LaunchOf("bash: prted: command not found").reason, "prted");
}

TEST(TorchLogLaunchFailure, SrunTellsNodeAndReason) {
  const Rendezvous told = LaunchOf(
      "srun: error: Task launch for StepId=88120.0 failed on node gpu07: Invalid job credential\n"
      "srun: error: Application launch failed: Invalid job credential");
  EXPECT_EQ(told.launch, LaunchProblem::step);
  EXPECT_EQ(told.host, "gpu07");
  EXPECT_EQ(told.reason, "Invalid job credential");
  EXPECT_TRUE(told.refused);
  const Rendezvous large =
      LaunchOf("srun: error: Unable to create step for job 5512: Memory required by task is not available");
  EXPECT_EQ(large.reason, "Memory required by task is not available");
  EXPECT_FALSE(large.refused);
  EXPECT_EQ(LaunchOf("srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types").launch,
            LaunchProblem::mpi_plugin);
}

TEST(TorchLogLaunchFailure, StepsOfATrainingShowThatItPassed) {
  const Fragment fragment = ReadText(
      "srun: error: Unable to create step for job 77310: Requested nodes are busy\nstep 10 loss 9.1\nstep 20 loss "
      "8.7\n",
      "job.out");
  EXPECT_TRUE(EventsOf(fragment, EventKind::rendezvous_incomplete).empty());
}

TEST(TorchLogLaunchFailure, AFailedPrologIsTheNodesOwnState) {
  const Fragment fragment =
      ReadText("srun: error: Task launch for StepId=188454.0 failed on node gpu07: Job prolog failed\n", "job.out");
  EXPECT_TRUE(EventsOf(fragment, EventKind::rendezvous_incomplete).empty());
}

TEST(TorchLogStore, ANameThatDoesNotResolveIsTheReasonOfTheTimeout) {
  const std::string timeout =
      "[c10d] The client socket has timed out after 60s while trying to connect to (node0, 29500).\n";
  const auto lines = [](std::string_view family) {
    return "[W socket.cpp:697] [c10d] The " + std::string(family) +
           " network addresses of (node0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\n";
  };
  const Event unknown =
      OneEvent(ReadText(lines("IPv4") + "[E socket.cpp:922] " + timeout, "o"), EventKind::store_unreachable);
  EXPECT_NE(unknown.As<StoreUnreachable>().last_try.find("gai error: -2"), std::string::npos);
  const Event known =
      OneEvent(ReadText(lines("IPv6") + "[E socket.cpp:922] " + timeout, "o"), EventKind::store_unreachable);
  EXPECT_EQ(known.As<StoreUnreachable>().last_try, "") << "IPv4 may have been found";
}

}  // namespace
}  // namespace tacet
