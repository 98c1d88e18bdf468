// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_sacct.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

std::string Row(std::string_view job, std::string_view state) {
  return std::string(job) + "  pretrain  lin  gn17  gpu  " + std::string(state) +
         " 2025-02-11T07:01:01 2025-02-11T09:12:40   02:11:39\n";
}

TEST(Sacct, TheStateOfOneJobTellsHowItEnded) {
  const Fragment cancelled = ReadText(Row("774120", "CANCELLED+") + Row("774120.batch", "CANCELLED"), "a");
  EXPECT_EQ(OneEvent(cancelled, EventKind::scheduler_kill).As<OutsideEnd>().why, SchedulerKill::cancelled);
  EXPECT_EQ(OneEvent(ReadText(Row("774120", "TIMEOUT"), "a"), EventKind::scheduler_kill).As<OutsideEnd>().why,
            SchedulerKill::time_limit);
  EXPECT_EQ(EventsOf(ReadText(Row("774120", "NODE_FAIL"), "a"), EventKind::node_failed).size(), 1u);
  EXPECT_EQ(EventsOf(ReadText(Row("774120", "OUT_OF_ME+"), "a"), EventKind::oom_kill).size(), 1u);
}

TEST(Sacct, AHistoryOfJobsOrAJobThatRanWellTellsNothing) {
  EXPECT_TRUE(ReadText(Row("774120", "NODE_FAIL") + Row("774121", "COMPLETED"), "a").events.empty());
  EXPECT_TRUE(ReadText(Row("774120", "COMPLETED"), "a").events.empty());
  EXPECT_TRUE(ReadText("774120 jobs were CANCELLED yesterday\n", "a").events.empty()) << "a sentence has no times";
}

TEST(SlurmDaemon, ItsLogSaysWhatSlurmstepdPrints) {
  const std::string head = "[2020-12-14T09:43:55.500] [63532.0] ";
  const Fragment limit =
      ReadText(head + "error: *** STEP 63532.0 ON cn106 CANCELLED AT 2020-12-14T09:43:55 DUE TO TIME LIMIT ***\n", "a");
  EXPECT_EQ(OneEvent(limit, EventKind::scheduler_kill).As<OutsideEnd>().why, SchedulerKill::time_limit);
  const Fragment stuck = ReadText(head +
                                      "error: *** STEP 63532.0 STEPD TERMINATED ON cn106 AT 2020-12-14T09:44:56 DUE TO "
                                      "JOB NOT ENDING WITH SIGNALS ***\n",
                                  "a");
  EXPECT_EQ(OneEvent(stuck, EventKind::scheduler_kill).As<OutsideEnd>().why, SchedulerKill::unkillable);
  EXPECT_EQ(OneEvent(stuck, EventKind::scheduler_kill).As<OutsideEnd>().by, "cn106");
  EXPECT_TRUE(ReadText("we look for error: *** JOB 1 CANCELLED AT 2020-12-14T09:43:55 ***\n", "a").events.empty());
}

}  // namespace
}  // namespace tacet
