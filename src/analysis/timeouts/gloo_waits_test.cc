// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/gloo_waits.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

constexpr const char* kTimeUp =
    "[./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 10000ms for recv operation to complete";
constexpr const char* kPeerGone = "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:24774";

void Steps(JobSketch& job, int32_t world, int64_t last) {
  for (int32_t rank = 0; rank < world; ++rank) job.Say(rank, EventKind::progress).Make<Progress>().step = last;
}

void Raise(JobSketch& job, int32_t rank, const char* text) {
  Event& event = job.Say(rank, EventKind::exception);
  event.Make<Raised>().type = "RuntimeError";
  event.text = text;
  if (text == kPeerGone) job.Say(rank, EventKind::connection_lost);
}

std::vector<Rank> Laggards(JobSketch& job) {
  const Incident incident = job.Finish();
  std::vector<Rank> ranks;
  for (const ToldLaggard& laggard : FindGlooLaggards(ReadSignsOfLife(incident))) ranks.push_back(laggard.rank);
  return ranks;
}

bool IsGone(JobSketch& job, int32_t rank) {
  const Incident incident = job.Finish();
  return ReadSignsOfLife(incident).Of(Rank{rank})->vanished;
}

TEST(GlooWaits, TheSilentRankIsWaitedForWhenSomebodysTimeWasUp) {
  JobSketch job(4, {});
  Steps(job, 4, 15);
  Raise(job, 0, kTimeUp);
  Raise(job, 1, kPeerGone);
  Raise(job, 3, kTimeUp);
  EXPECT_EQ(Laggards(job), Ranks({2}));
}

TEST(GlooWaits, TheSilentRankIsGoneWhenAllOthersLostAPeer) {
  JobSketch job(4, {});
  Steps(job, 4, 15);
  for (const int32_t rank : {0, 1, 3}) Raise(job, rank, kPeerGone);
  EXPECT_TRUE(IsGone(job, 2));
}

// Its launcher ended it, and it lost the others when they had given up.
TEST(GlooWaits, ARankThatWentPastThePlaceIsWaitedForWhateverEndsItLater) {
  for (const bool apart : {true, false}) {
    JobSketch job(3, {});
    for (const int32_t rank : {0, 2}) Raise(job, rank, kTimeUp);
    job.Wait(kSecondNs);
    job.Say(1, EventKind::connection_lost);
    job.Say(1, EventKind::process_exited).Make<ProcessEnd>().code = -15;
    job.GiveOutputs();
    const Incident incident = job.Finish();
    OutputFront front;
    front.kind = OutputFront::Kind::leads;
    front.rank = Rank{1};
    const auto laggards = FindGlooLaggards(ReadSignsOfLife(incident), {}, apart ? front : OutputFront{});
    EXPECT_EQ(laggards.size(), apart ? 1u : 0u);
  }
}

TEST(GlooWaits, ALimitOfTheProgramsOwnIsAWaitAsWell) {
  JobSketch job(3, {});
  Steps(job, 3, 15);
  for (const int32_t rank : {0, 2}) Raise(job, rank, "all-reduce of update 24 not finished within 20 s");
  EXPECT_EQ(Laggards(job), Ranks({1}));
}

TEST(GlooWaits, ADownloadThatTakesTooLongWaitsForNoRank) {
  JobSketch job(3, {});
  Steps(job, 3, 15);
  for (const int32_t rank : {0, 2}) Raise(job, rank, "download of vgg.pt not finished within 20 s from http://mirror");
  EXPECT_TRUE(Laggards(job).empty());
}

TEST(GlooWaits, AnOutputThatEndsEarlyMakesNobodySuspect) {
  JobSketch late(4, {}), gone(4, {});
  for (JobSketch* job : {&late, &gone})
    for (const int32_t rank : {0, 1, 3}) job->Say(rank, EventKind::progress).Make<Progress>().step = 15;
  late.Say(2, EventKind::progress).Make<Progress>().step = 5;
  gone.Say(2, EventKind::progress).Make<Progress>().step = 5;
  for (const int32_t rank : {0, 1, 3}) Raise(late, rank, kTimeUp), Raise(gone, rank, kPeerGone);
  EXPECT_TRUE(Laggards(late).empty());
  EXPECT_FALSE(IsGone(gone, 2));
}

// Its output may be buffered, or not be there at all: a stack in its own code is better than that.
TEST(GlooWaits, AStackShowsWhoIsElsewhere) {
  JobSketch job(4, {});
  for (const int32_t rank : {0, 1, 3}) job.Say(rank, EventKind::progress).Make<Progress>().step = 15;
  job.Say(2, EventKind::progress).Make<Progress>().step = 5;
  for (const int32_t rank : {0, 1, 3}) Raise(job, rank, kTimeUp);
  const Incident incident = job.Finish();
  const SignsOfLife life = ReadSignsOfLife(incident);
  const auto named = [&](StackReading::Place place) {
    StackReading stack;
    stack.rank = Rank{2};
    stack.place = place;
    return FindGlooLaggards(life, {stack}).size();
  };
  EXPECT_EQ(named(StackReading::Place::host), 1u);
  EXPECT_EQ(named(StackReading::Place::communication), 0u);
}

TEST(GlooWaits, WhereAllRaiseOrTwoAreSilentNobodyIsNamed) {
  JobSketch all(3, {}), two(4, {});
  Steps(all, 3, 15);
  Steps(two, 4, 15);
  for (const int32_t rank : {0, 1, 2}) Raise(all, rank, kTimeUp);
  for (const int32_t rank : {0, 1}) Raise(two, rank, kTimeUp);
  EXPECT_TRUE(Laggards(all).empty());
  EXPECT_TRUE(Laggards(two).empty());
}

// Who lost the others when their time was up came too late, unless all wait for messages of each other.
TEST(GlooWaits, WhoLostTheOthersAfterTheirTimeWasUpIsWaitedFor) {
  const auto laggards = [](OpKind call, uint32_t line_of_second) {
    JobSketch job(3, {});
    for (const int32_t rank : {0, 1, 2}) {
      Event& event = job.Say(rank, EventKind::exception);
      event.Make<Raised>().type = "RuntimeError";
      event.Make<Raised>().place = {"step", "/srv/train.py", rank == 1 ? line_of_second : 40};
      event.op = call;
      event.text = rank == 2 ? kPeerGone : kTimeUp;
    }
    return Laggards(job);
  };
  EXPECT_EQ(laggards(OpKind::unknown, 40), Ranks({2}));
  EXPECT_TRUE(laggards(OpKind::recv, 40).empty()) << "a circle of receives";
  EXPECT_TRUE(laggards(OpKind::unknown, 52).empty()) << "they wait in different calls";
}

// One text without names: three tracebacks of a wait, three ranks on the launcher's list, and an error of a thread.
std::vector<Rank> NamelessLaggards(bool in_thread, int32_t listed, int32_t raised = 3) {
  JobSketch job(4, {});
  Event& error = job.Tell(EventKind::exception);
  error.Make<Raised>().type = "UnicodeDecodeError";
  error.Make<Raised>().in_thread = in_thread;
  for (int32_t i = 0; i < raised; ++i) {
    Event& event = job.Tell(EventKind::exception);
    event.Make<Raised>().type = "RuntimeError";
    event.text = kTimeUp;
  }
  for (int32_t rank = 0; rank < listed; ++rank) job.Say(rank, EventKind::process_exited).Make<ProcessEnd>().code = 1;
  const Incident incident = job.Finish();
  std::vector<Rank> ranks;
  for (const ToldLaggard& laggard :
       FindGlooLaggards(ReadSignsOfLife(incident), {}, {}, {}, ReadNamelessWaits(incident)))
    ranks.push_back(laggard.rank);
  return ranks;
}

TEST(GlooWaits, AnErrorOfAThreadHidesNobody) {
  EXPECT_EQ(NamelessLaggards(true, 3), Ranks({3}));
  EXPECT_TRUE(NamelessLaggards(false, 3).empty()) << "it may have ended the process";
  EXPECT_TRUE(NamelessLaggards(true, 2).empty()) << "two are left";
  EXPECT_TRUE(NamelessLaggards(true, 4).empty()) << "all raised";
  EXPECT_TRUE(NamelessLaggards(true, 3, 2).empty()) << "a traceback is missing";
}

TEST(GlooWaits, AnErrorOfAnybodysOwnExplainsTheRest) {
  JobSketch job(4, {});
  Steps(job, 4, 15);
  Raise(job, 0, kTimeUp);
  Raise(job, 1, "loss is not finite");
  Raise(job, 3, kTimeUp);
  EXPECT_TRUE(Laggards(job).empty());
}

}  // namespace
}  // namespace tacet
