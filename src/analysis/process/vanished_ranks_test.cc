// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/vanished_ranks.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

void FailOnGpu(JobSketch& job, int32_t rank) {
  job.Say(rank, EventKind::cuda_error).Make<CudaError>().words = "an illegal memory access was encountered";
  Event& raised = job.Say(rank, EventKind::exception);
  raised.Make<Raised>().type = "torch.AcceleratorError";
  raised.text = "CUDA error: an illegal memory access was encountered";
}

void LoseAPeer(JobSketch& job, int32_t rank) { job.Log(rank, EventKind::connection_lost); }

// `rank` has written its last line; its neighbours saw the connection close, and all peers' GPUs lost its memory.
JobSketch Gone(int32_t world, int32_t rank) {
  JobSketch job(world, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  job.Wait(kSecondNs);
  LoseAPeer(job, (rank + 1) % world);
  for (const int32_t r : job.AllBut({rank})) FailOnGpu(job, r);
  return job;
}

struct VanishedRead {
  explicit VanishedRead(JobSketch& job) : incident(job.Finish()), signs(ReadSignsOfLife(incident)) {}
  std::vector<Rank> Vanished() const {
    std::vector<Rank> ranks;
    for (const auto& [rank, life] : signs.ranks)
      if (life.vanished) ranks.push_back(rank);
    return ranks;
  }
  std::vector<Rank> Faulty() const {
    std::vector<Rank> ranks;
    for (const auto& [rank, life] : signs.ranks)
      if (life.gpu_error || life.exception) ranks.push_back(rank);
    return ranks;
  }
  Incident incident;
  SignsOfLife signs;
};

TEST(VanishedRanks, TheOnlyRankWithoutAWordIsGoneAndItsPeersErrorsAreAftershocks) {
  for (const auto& [world, rank] : {std::pair{2, 1}, std::pair{4, 0}, std::pair{4, 2}, std::pair{64, 63}}) {
    JobSketch job = Gone(world, rank);
    const VanishedRead read(job);
    EXPECT_EQ(read.Vanished(), Ranks({rank})) << world;
    EXPECT_TRUE(read.Faulty().empty()) << world;
    EXPECT_NE(read.signs.Of(Rank{(rank + 1) % world})->shared_gpu_error, nullptr);
  }
}

TEST(VanishedRanks, AToldEndExplainsTheSameErrors) {
  JobSketch job = Gone(4, 2);
  job.Say(2, EventKind::process_exited).Make<ProcessEnd>().code = -9;
  const VanishedRead read(job);
  EXPECT_TRUE(read.Faulty().empty());
}

TEST(VanishedRanks, AKernelsOwnBugOnOneRankStaysItsFault) {
  // Rank 1 fails by itself; 0 sees it go, 2 and 3 are killed by the launcher before they notice.
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  FailOnGpu(job, 1);
  job.Wait(kSecondNs);
  LoseAPeer(job, 0);
  const VanishedRead read(job);
  EXPECT_TRUE(read.Vanished().empty());
  EXPECT_EQ(read.Faulty(), Ranks({1}));
}

TEST(VanishedRanks, AnErrorOnAllRanksStaysTheirFault) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  for (int32_t r = 0; r < 4; ++r) FailOnGpu(job, r);
  LoseAPeer(job, 0);
  const VanishedRead read(job);
  EXPECT_TRUE(read.Vanished().empty());
  EXPECT_EQ(read.Faulty(), RankRange(0, 4));
}

TEST(VanishedRanks, AnExceptionOfSomebodyExplainsTheClosedConnections) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  job.Say(3, EventKind::exception).Make<Raised>().type = "ValueError";
  for (const int32_t r : {0, 2}) LoseAPeer(job, r);
  EXPECT_TRUE(VanishedRead(job).Vanished().empty());
}

TEST(VanishedRanks, ConnectionsThatAnAbortClosedSayNothing) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  for (const int32_t r : {0, 1, 2}) job.TimeOut(r, 6);
  job.Wait(kSecondNs);
  for (const int32_t r : {0, 2}) LoseAPeer(job, r);
  EXPECT_TRUE(VanishedRead(job).Vanished().empty());
}

TEST(VanishedRanks, OfOneKindOfFileAloneNothingIsConcluded) {
  JobSketch job(4, {});
  job.GiveOutputs();
  for (const int32_t r : {0, 1, 2}) job.Say(r, EventKind::connection_lost);
  EXPECT_TRUE(VanishedRead(job).Vanished().empty());
}

// By one kind of file: it counts only for a rank that records show to be waited for.
TEST(VanishedRanks, TheOnlyRankWithoutAVoiceFellSilentWhenConnectionsClosedFirst) {
  for (const bool closed_first : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    if (!closed_first) job.TimeOut(3, 6);
    job.Wait(kSecondNs);
    for (const int32_t r : {0, 1, 2}) LoseAPeer(job, r);
    if (closed_first) job.Say(3, EventKind::progress);
    const VanishedRead read(job);
    EXPECT_FALSE(read.signs.Of(Rank{3})->vanished && !closed_first);
    EXPECT_EQ(read.signs.Of(Rank{3})->fell_silent, closed_first);
    EXPECT_FALSE(read.signs.Of(Rank{0})->fell_silent);
  }
}

TEST(VanishedRanks, NobodyFellSilentWhileSomebodyElseHasNoVoiceEither) {
  JobSketch job(8, {CallSource::nccl_log});
  job.Rounds(5);
  for (const int32_t r : {0, 1, 2, 3, 4, 5}) LoseAPeer(job, r);
  const VanishedRead read(job);
  for (const int32_t r : {6, 7}) EXPECT_FALSE(read.signs.Of(Rank{r})->fell_silent);
}

TEST(VanishedRanks, BetweenOneErrorAndOneSilenceNobodyIsNamedUnlessTheErrorCameFirst) {
  for (const bool error_first : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    job.GiveOutputs();
    if (error_first) FailOnGpu(job, 0);
    job.Wait(kSecondNs);
    for (const int32_t r : {1, 3}) LoseAPeer(job, r);
    job.Wait(kSecondNs);
    if (!error_first) FailOnGpu(job, 0);
    const VanishedRead read(job);
    EXPECT_TRUE(read.Vanished().empty());
    EXPECT_FALSE(read.signs.Of(Rank{2})->fell_silent);
    EXPECT_EQ(read.Faulty(), error_first ? Ranks({0}) : Ranks({}));
  }
}

TEST(VanishedRanks, AnErrorBesideFilesThatEndEarlyMayBeAnAftershock) {
  for (const bool cut : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    job.GiveOutputs();
    FailOnGpu(job, 0);
    job.StreamOf(3, CallSource::nccl_log).cut = cut;
    EXPECT_EQ(VanishedRead(job).Faulty(), cut ? Ranks({}) : Ranks({0}));
  }
}

TEST(VanishedRanks, AnErrorBesideATracebackThatIsCutMayBeAnAftershock) {
  for (const bool cut : {true, false}) {
    JobSketch job(4, {CallSource::nccl_log});
    job.Rounds(5);
    job.GiveOutputs();
    FailOnGpu(job, 0);
    Event& began = job.Say(3, EventKind::exception);
    began.Make<Raised>().type = "an exception whose name is cut off";
    if (!cut) began.text = "and these are its words";
    began.Set(Meaning::reported);
    began.Set(Meaning::consequence);
    EXPECT_EQ(VanishedRead(job).Faulty(), cut ? Ranks({}) : Ranks({0}));
  }
}

TEST(VanishedRanks, ErrorsOfSeveralAreAftershocksThoughWhoWentCannotBeTold) {
  // Two of four say nothing: the files of one of them may have lost their end.
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  LoseAPeer(job, 1);
  for (const int32_t r : {1, 3}) FailOnGpu(job, r);
  const VanishedRead read(job);
  EXPECT_TRUE(read.Vanished().empty());
  EXPECT_TRUE(read.Faulty().empty());
}

TEST(VanishedRanks, WhileAnothersFilesAreMissingNobodyIsNamed) {
  JobSketch job = Gone(8, 3);
  job.LoseEverything(6);
  EXPECT_TRUE(VanishedRead(job).Vanished().empty());
}

TEST(VanishedRanks, TwoOfSixAreGoneWhereAllOthersLostTheirMemory) {
  JobSketch job(6, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  job.Wait(kSecondNs);
  for (const int32_t r : job.AllBut({1, 4})) FailOnGpu(job, r);
  const VanishedRead read(job);
  EXPECT_EQ(read.Vanished(), Ranks({1, 4}));
  EXPECT_TRUE(read.Faulty().empty());
}

TEST(VanishedRanks, WhoeverMissesTheStoreIsAlive) {
  // Rank 0 ran the store; 2 and 3 only notice that it is gone.
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  job.Wait(kSecondNs);
  LoseAPeer(job, 1);
  FailOnGpu(job, 1);
  for (const int32_t r : {2, 3}) job.Say(r, EventKind::store_lost);
  const VanishedRead read(job);
  EXPECT_EQ(read.Vanished(), Ranks({0}));
  EXPECT_TRUE(read.Faulty().empty());
}

TEST(VanishedRanks, AnErrorOfTheProgramComesBeforeTheLossOfItsMemory) {
  JobSketch job(7, {CallSource::nccl_log});
  job.Rounds(5);
  job.GiveOutputs();
  for (const int32_t r : {0, 3, 4, 5, 6}) job.Say(r, EventKind::exception).Make<Raised>().type = "ValueError";
  for (const int32_t r : {1, 2}) FailOnGpu(job, r);
  EXPECT_EQ(VanishedRead(job).Faulty(), Ranks({0, 3, 4, 5, 6}));
}

TEST(VanishedRanks, ABlackBoxIsNoLastWord) {
  // It outlives its process; a flight record is written by a process that lives.
  for (const CallSource source : {CallSource::black_box, CallSource::flight_recorder}) {
    JobSketch job(4, {source});
    job.Rounds(5);
    job.GiveOutputs();
    job.Wait(kSecondNs);
    for (const int32_t r : {0, 1, 3}) {
      LoseAPeer(job, r);
      FailOnGpu(job, r);
    }
    EXPECT_EQ(VanishedRead(job).Vanished(), source == CallSource::black_box ? Ranks({2}) : Ranks({}))
        << static_cast<int>(source);
  }
}

TEST(VanishedRanks, WhoHasNoLogOfWarningsWherePeersHaveOneIsSilentTwice) {
  // NCCL_DEBUG=WARN: a log exists only where something was wrong.
  const auto vanished = [](bool peers_warn) {
    JobSketch job(4, {});
    job.GiveOutputs();
    job.Wait(kSecondNs);
    for (const int32_t r : {0, 1, 3}) {
      if (peers_warn)
        LoseAPeer(job, r);
      else
        job.Say(r, EventKind::connection_lost);
    }
    return VanishedRead(job).Vanished();
  };
  EXPECT_EQ(vanished(true), Ranks({2}));
  EXPECT_EQ(vanished(false), Ranks({}));
}

// One GPU fails, one peer loses the connection, and the launcher ends the third, which had lived until then.
TEST(VanishedRanks, WhomTheLauncherEndedWasNotGoneBefore) {
  for (const bool ended : {true, false}) {
    JobSketch job(3, {CallSource::nccl_log});
    job.Rounds(5);
    job.GiveOutputs();
    job.Wait(kSecondNs);
    LoseAPeer(job, 2);
    FailOnGpu(job, 1);
    if (ended) {
      auto& end = job.Say(0, EventKind::process_exited).Make<ProcessEnd>();
      end.code = -15;
      end.first_failure = false;
    }
    const VanishedRead read(job);
    EXPECT_EQ(read.Faulty(), ended ? Ranks({1}) : Ranks({})) << ended;
  }
}

}  // namespace
}  // namespace tacet
