// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/early_leaver.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

constexpr int64_t kNoon = 43'200 * kSecondNs;

struct Told {
  explicit Told(JobSketch& job)
      : incident(job.Finish()),
        life(ReadSignsOfLife(incident)),
        outcome(ReadOutcome(incident, life)),
        found(FindEarlyLeavers(life, outcome)) {}
  Incident incident;
  SignsOfLife life;
  Outcome outcome;
  EarlyLeavers found;
};

void At(JobSketch& job, int32_t rank, EventKind kind, int64_t seconds) {
  job.Say(rank, kind).wall_ns = kNoon + seconds * kSecondNs;
}

TEST(EarlyLeaver, OneProgramEndsWhileTheOthersWait) {
  JobSketch job(3);
  At(job, 1, EventKind::program_left, 10);
  At(job, 0, EventKind::watchdog_timeout, 20);
  At(job, 2, EventKind::connection_lost, 12);
  const Told told(job);
  ASSERT_TRUE(told.found);
  EXPECT_EQ(told.found.ranks, std::vector{Rank{1}});
  EXPECT_EQ(told.found.waiters, (std::vector{Rank{0}, Rank{2}}));
}

TEST(EarlyLeaver, EndsThatAreNoneOfThese) {
  {
    JobSketch job(3);  // the usual end of a job
    for (int32_t rank = 0; rank < 3; ++rank) At(job, rank, EventKind::program_left, 10 + rank);
    EXPECT_FALSE(Told(job).found) << "all end, nobody waits";
  }
  {
    JobSketch job(3);
    At(job, 0, EventKind::watchdog_timeout, 20);
    At(job, 2, EventKind::watchdog_timeout, 20);
    At(job, 1, EventKind::program_left, 30);
    EXPECT_FALSE(Told(job).found) << "it ended when the others had given up";
  }
  {
    JobSketch job(3);
    Event& raised = job.Say(1, EventKind::exception);
    raised.wall_ns = kNoon;
    raised.Make<Raised>().type = "KeyError";
    At(job, 1, EventKind::program_left, 1);
    At(job, 0, EventKind::watchdog_timeout, 20);
    EXPECT_FALSE(Told(job).found) << "its error is the reason";
  }
  {
    JobSketch job(3);
    At(job, 1, EventKind::program_left, 10);
    At(job, 2, EventKind::program_left, 10);
    At(job, 0, EventKind::connection_lost, 12);
    EXPECT_FALSE(Told(job).found) << "most have ended: the other one is late";
  }
}

constexpr const char* kClosed = "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:24774";

// Three ranks over gloo: who lost a peer (-1: a traceback without a name tells it), whom the launcher lists, and who
// says that it is done.
std::vector<Rank> FirstToClose(const std::vector<int32_t>& lost, const std::vector<int32_t>& listed, int32_t done) {
  JobSketch job(3, {});
  for (const int32_t rank : lost) {
    Event& raised = rank < 0 ? job.Tell(EventKind::exception) : job.Say(rank, EventKind::exception);
    raised.Make<Raised>().type = "RuntimeError";
    raised.text = kClosed;
    raised.Set(Meaning::consequence);
    raised.Set(Meaning::gloo_loss);
  }
  for (const int32_t rank : listed) job.Say(rank, EventKind::process_exited).Make<ProcessEnd>().code = 1;
  if (done >= 0) job.Say(done, EventKind::process_finished);
  Incident incident = job.Finish();
  LogOutline& outline = incident.outlines.emplace_back();
  for (int32_t rank = 0; rank < 3; ++rank) {
    OwnLine line;
    line.rank = rank;
    line.text = "iter 12 loss 0.4";
    outline.own_lines.push_back(line);
  }
  const SignsOfLife life = ReadSignsOfLife(incident);
  return FindEarlyLeavers(life, ReadOutcome(incident, life), ReadPrintedLines(incident), {},
                          ReadNamelessWaits(incident))
      .ranks;
}

TEST(EarlyLeaver, TheFirstConnectionThatClosedIsThatOfWhoTellsOfNone) {
  EXPECT_EQ(FirstToClose({0, 1}, {0, 1}, -1), std::vector{Rank{2}}) << "the launcher does not list it";
  EXPECT_EQ(FirstToClose({0, 2}, {}, 1), std::vector{Rank{1}}) << "it says that it is done";
  EXPECT_EQ(FirstToClose({-1, -1}, {0, 2}, -1), std::vector{Rank{1}}) << "each listed rank has a traceback";
  EXPECT_TRUE(FirstToClose({-1}, {0, 2}, -1).empty()) << "of one that is listed nothing is known";
  EXPECT_TRUE(FirstToClose({-1, -1, -1}, {0, 2}, -1).empty()) << "the third lost a peer, too";
  EXPECT_TRUE(FirstToClose({0, 1, 2}, {0, 1, 2}, -1).empty()) << "all lost a peer";
  EXPECT_TRUE(FirstToClose({0}, {0}, -1).empty()) << "two tell of nothing";
  EXPECT_TRUE(FirstToClose({}, {}, 1).empty()) << "nobody lost anybody";
}

}  // namespace
}  // namespace tacet
