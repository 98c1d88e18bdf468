// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_known_line.h"

#include "evidence/torch_log/errors/torch_log_keywords.h"
#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

TEST(TorchLogKnownLine, EachRowIsFoundByItsFirstWordsAndIsNotTakenByAnEarlierOne) {
  for (const KnownLine& known : kKnownLines) {
    const std::string line = "x " + std::string(known.all[0]) + " y " + std::string(known.all[1]) + " z";
    const KeywordSet found = FindKeywords(line);
    EXPECT_TRUE(found.has(Keyword::known_line) || found.has(Keyword::known_error)) << line;
    EXPECT_EQ(FindKnownLine(line), &known) << line;
    const bool named = known.told == KnownTold::failed || known.told == KnownTold::stops ||
                       known.told == KnownTold::gone || known.told == KnownTold::bad_gpu;
    EXPECT_EQ(named, !known.name.empty()) << line;
  }
}

TEST(TorchLogKnownLine, AnErrorOfAnotherProgramHasItsRefusal) {
  const Event event = OneEvent(ReadText("libgomp: Thread creation failed: Resource temporarily unavailable\n", "a.log"),
                               EventKind::exception);
  EXPECT_EQ(event.As<Raised>().type, "an error of OpenMP");
}

TEST(TorchLogKnownLine, AMonitorThatHeardNothingTellsHowLongItWaited) {
  const Event event = OneEvent(
      ReadText("[2026-08-01 12:00:00,100] [ERROR] [ft_launcher@n3] [Cycle 0] Did not get subsequent heartbeat. Waited "
               "1800.21 seconds.\n",
               "a.log"),
      EventKind::watchdog_timeout);
  EXPECT_EQ(event.As<WatchdogTimeout>().timeout_ms, 1'800'210);
}

TEST(TorchLogKnownLine, AServerThatAnswersBehindItsLimitDoesNotHang) {
  const std::string failed =
      "[2026-09-09 10:10:01] Health check failed. Server couldn't get a response from detokenizer for last 20 "
      "seconds.\n";
  EXPECT_EQ(EventsOf(ReadText(failed, "a.log"), EventKind::watchdog_timeout).size(), 1u);
  const std::string works = "[2026-09-09 10:10:04 TP0] Decode batch. #running-req: 96, #token: 401221\n";
  EXPECT_TRUE(EventsOf(ReadText(failed + works, "a.log"), EventKind::watchdog_timeout).empty());
}

TEST(TorchLogKnownLine, PaddlesReportNamesTheRankThatWaitsAndItsCall) {
  const Event event = OneEvent(
      ReadText(
          "E0505 12:30:01.110000 30114 comm_task_manager.cc:231] Find timeout start but not finish "
          "task:group_key:pg_2,group_ranks:[0, 1],global_rank:1,local_rank:1,comm_count:812,op:ALLREDUCE,started:1,"
          "completed:0,numel:4096,nranks:2\n",
          "a.log"),
      EventKind::watchdog_timeout);
  EXPECT_EQ(event.rank, Rank{1});
  EXPECT_EQ(event.seq, 812);
}

TEST(TorchLogKnownLine, WhatRayTriesAgainIsNoFailure) {
  const std::string head = "[2026-07-07 10:10:10,120 ",
                    rest =
                        " 3312 3355] gcs_rpc_client.h:179: Failed to connect to GCS "
                        "at address 10.4.1.2:6379 within 5 seconds.\n";
  EXPECT_TRUE(EventsOf(ReadText(head + "W" + rest, "a.log"), EventKind::connection_lost).empty());
  const Event event = OneEvent(ReadText(head + "E" + rest, "a.log"), EventKind::connection_lost);
  EXPECT_EQ(event.As<LostPeer>().address, "10.4.1.2:6379");
}

TEST(TorchLogKnownLine, AShardThatCrashedIsGoneAndNamed) {
  const Event event =
      OneEvent(ReadText("2026-03-03T10:00:00.300000Z ERROR text_generation_launcher: Shard 2 crashed\n", "a.log"),
               EventKind::process_exited);
  EXPECT_EQ(event.rank, Rank{2});
}

}  // namespace
}  // namespace tacet
