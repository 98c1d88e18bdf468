// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/waits/torch_log_pending.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

Pending PendingIn(const std::string& text) {
  return OneEvent(ReadText(text + "\n", "status.txt"), EventKind::start_pending).As<Pending>();
}

bool NothingPends(const std::string& text) {
  return EventsOf(ReadText(text + "\n", "status.txt"), EventKind::start_pending).empty();
}

TEST(TorchLogPending, RayAsksForANodeByItsName) {
  const Pending pending = PendingIn(
      "Usage:\n 0.0/8.0 GPU\n\nDemands:\n {'node:head-a.lab.example.org': 0.001, 'GPU': 1.0} * 1, {'GPU': 1.0} * 7 "
      "(PACK): 1+ pending placement groups");
  EXPECT_EQ(pending.by, "Ray");
  EXPECT_EQ(pending.why, PendingWhy::unknown_node);
  EXPECT_EQ(pending.who, "head-a.lab.example.org");
  EXPECT_EQ(pending.gpus, 8);
  EXPECT_EQ(pending.gpus_used, 0);
  EXPECT_EQ(pending.gpus_wanted, 8);
}

TEST(TorchLogPending, AnAddressIsNoUnknownNode) {
  const Pending pending = PendingIn(
      "INFO 06-11 14:20:31 ray_utils.py:214] Waiting for creating a placement group of specs for 10 seconds. "
      "specs=[{'node:10.44.0.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status`\n"
      "INFO 06-11 14:21:51 ray_utils.py:214] Waiting for creating a placement group of specs for 90 seconds. "
      "specs=[{'node:10.44.0.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status`");
  EXPECT_EQ(pending.why, PendingWhy::not_told);
  EXPECT_EQ(pending.who, "10.44.0.12");
  EXPECT_EQ(pending.seconds, 90);
  EXPECT_EQ(pending.gpus_wanted, 2);
}

TEST(TorchLogPending, ADemandWithoutQuotesIsReadAsWell) {
  EXPECT_EQ(PendingIn("The actor or task with ID 71aa cannot be scheduled right now. It requires {CPU: 1.000000, GPU: "
                      "4.000000} for placement, however the cluster currently cannot provide the requested resources.")
                .gpus_wanted,
            4);
}

TEST(TorchLogPending, ATableInWhichNothingWaitsSaysNothing) {
  EXPECT_TRUE(NothingPends("Usage:\n 8.0/8.0 GPU\n\nDemands:\n (no resource demands)"));
  EXPECT_TRUE(NothingPends("peak 80.0 GPU hours"));
}

TEST(TorchLogPending, KubernetesSaysWhyAPodIsNotScheduled) {
  const Pending pending = PendingIn(
      "3m12s  Warning  FailedScheduling  pod/bert-worker-3  0/6 nodes are available: 2 node(s) had untolerated taint "
      "{dedicated: infra}, 4 Insufficient nvidia.com/gpu. preemption: 0/6 nodes are available.");
  EXPECT_EQ(pending.who, "bert-worker-3");
  EXPECT_EQ(pending.why, PendingWhy::no_resources);
  EXPECT_EQ(
      pending.reason,
      "0/6 nodes are available: 2 node(s) had untolerated taint {dedicated: infra}, 4 Insufficient nvidia.com/gpu");
  EXPECT_EQ(PendingIn("Warning  FailedScheduling  2m  default-scheduler  0/3 nodes are available: pod has unbound "
                      "immediate PersistentVolumeClaims.")
                .why,
            PendingWhy::volume);
  EXPECT_EQ(
      PendingIn("  Warning  FailedScheduling  2m  default-scheduler  0/3 nodes are available: 3 node(s) didn't match "
                "Pod's node affinity/selector.")
          .why,
      PendingWhy::no_match);
}

TEST(TorchLogPending, APodThatIsScheduledInTheEndIsNotPending) {
  EXPECT_TRUE(NothingPends(
      "Warning  FailedScheduling  95s  default-scheduler  0/6 nodes are available: 6 Insufficient "
      "nvidia.com/gpu.\nNormal  Scheduled  31s  default-scheduler  Successfully assigned nlp/bert-0 to n3"));
  EXPECT_TRUE(NothingPends("bert-worker-0   0/1   Pending   0   7s"));
  EXPECT_EQ(PendingIn("bert-worker-0   0/1   Pending   0   14m").seconds, 840);
}

TEST(TorchLogPending, AGangTellsHowManyOfItCannotBePlaced) {
  const Pending gang = PendingIn(
      "Warning  Unschedulable  12s  volcano  6/8 tasks in gang unschedulable: pod group is not ready, 6 Pending, 2 "
      "Running, 8 minAvailable");
  EXPECT_EQ(gang.gang_pending, 6);
  EXPECT_EQ(gang.gang, 8);
  EXPECT_EQ(
      PendingIn("Warning  FailedScheduling  95s  volcano  10/6 tasks in gang unschedulable: job is not ready").gang, -1)
      << "more than all";
}

TEST(TorchLogPending, RowsOfSqueueTellTheirReason) {
  const Pending pending = PendingIn(
      "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
      "            701188       gpu pretrain     mira PD       0:00      8 (ReqNodeNotAvail, UnavailableNodes:gpu7)");
  EXPECT_EQ(pending.by, "Slurm");
  EXPECT_EQ(pending.who, "701188");
  EXPECT_EQ(pending.why, PendingWhy::nodes_down);
  EXPECT_EQ(PendingIn("   JobState=PENDING Reason=QOSMaxGRESPerUser Dependency=(null)").why, PendingWhy::limit);
  EXPECT_EQ(PendingIn("   JobState=PENDING Reason=Dependency Dependency=afterok:77").why, PendingWhy::dependency);
  EXPECT_EQ(PendingIn("   JobState=PENDING Reason=DependencyNeverSatisfied Dependency=afterok:77").why,
            PendingWhy::never);
  EXPECT_EQ(PendingIn("   JobState=PENDING Reason=JobHeldUser Dependency=(null)").why, PendingWhy::held);
  EXPECT_TRUE(NothingPends("            701190       gpu   sweep3     mira  R    3:12:55      2 gpu[11-12]"));
  EXPECT_TRUE(
      NothingPends("srun: job 88412 queued and waiting for resources\nsrun: job 88412 has been allocated resources"));
}

TEST(TorchLogPending, ASentenceAboutItIsNone) {
  EXPECT_TRUE(NothingPends("why are my jobs all (Resources) and PD since 3 days?"));
  EXPECT_TRUE(NothingPends("the request is Pending review"));
}

}  // namespace
}  // namespace tacet
