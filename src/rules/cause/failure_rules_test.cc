// SPDX-License-Identifier: Apache-2.0
// A rank that ends with an error of its own: out of memory, an exception, DDP's complaint.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

JobSketch LeftBehind(const FaultPlace& place) {
  JobSketch job(place.world);
  job.Rounds(place.rounds);
  job.IssueOn(job.AllBut({place.rank}), kStarted);
  job.Wait(600 * kSecondNs);
  return job;
}

class FailedRank : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, FailedRank,
                         testing::Values(FaultPlace{2, 1, 3}, FaultPlace{4, 0, 12}, FaultPlace{8, 6, 40},
                                         FaultPlace{64, 33, 8}, FaultPlace{1024, 1023, 4}),
                         [](const auto& info) { return PlaceName(info.param); });

// rank-out-of-memory

TEST_P(FailedRank, AKillByTheKernelOfARanksProcessIsNamed) {
  const FaultPlace& place = GetParam();
  JobSketch job = LeftBehind(place);
  job.LoseRecord(place.rank);
  Event& kill = job.Tell(EventKind::oom_kill);
  kill.rank = Rank{place.rank};
  kill.pid = 1000 + place.rank;
  kill.Make<OomKill>().limit = MemoryLimit::cgroup;
  const JudgedCase judged(job);
  const Finding finding = judged.Only("rank-out-of-memory");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.confidence, Confidence::certain);
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  EXPECT_NE(finding.headline.find("cgroup"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "rank-out-of-memory");
}

TEST(RankOutOfMemory, WithoutAHangItIsACrash) {
  JobSketch job(4);
  job.Rounds(10);
  job.Say(2, EventKind::cuda_error).Make<CudaError>().words = "CUDA out of memory";
  const JudgedCase judged(job);
  const Finding finding = judged.Only("rank-out-of-memory");
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(finding.ranks, Ranks({2}));
  EXPECT_NE(finding.headline.find("GPU memory"), std::string::npos);
  EXPECT_FALSE(finding.fix.empty());
  EXPECT_FALSE(judged.Fires("gpu-fault"));
}

TEST(RankOutOfMemory, MemoryOfTheHostCountsByTheWordsOfTheError) {
  const auto raises = [](std::string_view type, std::string_view text) {
    JobSketch job(4);
    job.Rounds(10);
    Event& raised = job.Say(2, EventKind::exception);
    raised.Make<Raised>().type = type;
    raised.text = text;
    return JudgedCase(job).Verdict();
  };
  for (const auto& [type, text] :
       {std::pair{"MemoryError", ""},
        std::pair{"numpy.core._exceptions._ArrayMemoryError", "Unable to allocate 14 GiB"},
        std::pair{"RuntimeError",
                  "DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes"},
        std::pair{"OSError", "[Errno 12] Cannot allocate memory"}}) {
    EXPECT_EQ(raises(type, text).cause, "rank-out-of-memory") << text;
    EXPECT_EQ(raises(type, text).ranks, Ranks({2})) << text;
  }
  EXPECT_EQ(raises("OSError", "[Errno 28] No space left on device: '/ckpt/step_9'").cause, "application-exception");
}

TEST(RankDead, AKilledLoaderWorkerIsNotTheRank) {
  const auto raises = [](std::string_view text, bool after_another) {
    JobSketch job(4);
    job.Rounds(10);
    if (after_another) {
      Event& first = job.Say(1, EventKind::exception);
      first.Make<Raised>().type = "KeyError", first.text = "'labels'";
      first.wall_ns -= 1'000'000'000;
    }
    Event& raised = job.Say(2, EventKind::exception);
    raised.Make<Raised>().type = "RuntimeError";
    raised.text = text;
    return JudgedCase(job).Verdict();
  };
  const Diagnosis killed = raises("DataLoader worker (pid 7041) is killed by signal: Killed. ", false);
  EXPECT_EQ(killed.cause, "rank-dead");
  EXPECT_EQ(killed.ranks, Ranks({2}));
  EXPECT_NE(killed.headline.find("data loader worker of rank 2 (pid 7041) was killed (SIGKILL)"), std::string::npos)
      << killed.headline;
  const Diagnosis crashed = raises("DataLoader worker (pid 7041) is killed by signal: Segmentation fault. ", false);
  EXPECT_EQ(crashed.cause, "application-exception");
  EXPECT_NE(crashed.headline.find("segmentation fault"), std::string::npos) << crashed.headline;
  // The launcher ends a job's children by SIGTERM.
  EXPECT_EQ(raises("DataLoader worker (pid 7041) is killed by signal: Terminated. ", false).cause, "");
  EXPECT_EQ(raises("DataLoader worker (pid 7041) is killed by signal: Killed. ", true).ranks, Ranks({1}));
}

TEST(RankOutOfMemory, AnErrorWithoutOwnerNamesNobody) {
  JobSketch job(4);
  job.Rounds(10);
  job.Tell(EventKind::cuda_error).Make<CudaError>().words = "out of memory";
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "rank-out-of-memory");
  EXPECT_TRUE(verdict.ranks.empty());
}

TEST(ApplicationException, AnErrorWithoutOwnerNamesNobody) {
  JobSketch job(4);
  job.Rounds(10);
  Event& raised = job.Tell(EventKind::exception);
  raised.Make<Raised>().type = "KeyError";
  raised.text = "'labels'";
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "application-exception");
  EXPECT_EQ(verdict.status, Status::crash);
  EXPECT_TRUE(verdict.ranks.empty());
}

TEST(RankOutOfMemory, NamesAllRanksThatRanOut) {
  JobSketch job(8);
  job.Rounds(1);
  for (const int r : {1, 5}) job.Say(r, EventKind::cuda_error).Make<CudaError>().words = "out of memory";
  EXPECT_EQ(JudgedCase(job).Only("rank-out-of-memory").ranks, Ranks({1, 5}));
}

TEST(RankOutOfMemory, TheKillOfAForeignProcessIsNothingInAHealthyJob) {
  JobSketch job(4);
  job.Rounds(10);
  job.FinishAll();
  Event& kill = job.Tell(EventKind::oom_kill);
  kill.pid = 77777;
  kill.Make<OomKill>().process = "chrome";
  const RuleAnswer answer = JudgedCase(job).Ask("rank-out-of-memory");
  EXPECT_TRUE(answer.findings.empty());
  EXPECT_TRUE(answer.open.empty());
}

TEST(RankOutOfMemory, AKillOfAnUnknownProcessIsAQuestionWhenARankIsMissing) {
  JobSketch job = LeftBehind({4, 1, 10});
  Event& kill = job.Tell(EventKind::oom_kill);
  kill.pid = 77777;
  kill.Make<OomKill>().process = "python";
  const RuleAnswer answer = JudgedCase(job).Ask("rank-out-of-memory");
  EXPECT_TRUE(answer.findings.empty());
  ASSERT_EQ(answer.open.size(), 1u);
  EXPECT_NE(answer.open[0].question.find("77777"), std::string::npos);
}

TEST(RankOutOfMemory, AForeignKillDoesNotMakeAHealthyJobACrash) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(10);
  job.GiveOutputs();
  job.FinishAll();
  job.Tell(EventKind::oom_kill).pid = 77777;
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.status, Status::healthy) << verdict.headline;
}

// application-exception

void Raise(JobSketch& job, int32_t rank, const std::string& type, const std::string& text = "boom") {
  Event& event = job.Say(rank, EventKind::exception);
  event.Make<Raised>().type = type;
  event.text = text;
  event.Make<Raised>().place.function = "encode";
  event.Make<Raised>().place.file = "/srv/job/data.py";
  event.Make<Raised>().place.line = 17;
}

TEST_P(FailedRank, AnExceptionOfOneRankIsNamedWithItsLine) {
  const FaultPlace& place = GetParam();
  JobSketch job(place.world);
  job.Rounds(place.rounds);
  Raise(job, place.rank, "KeyError", "'tokens'");
  for (const int32_t r : job.AllBut({place.rank}))
    Raise(job, r, "torch.distributed.DistBackendError", "NCCL error in: x");
  const JudgedCase judged(job);
  const Finding finding = judged.Only("application-exception");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_EQ(finding.confidence, Confidence::certain);
  EXPECT_NE(finding.headline.find("data.py:17"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "application-exception");
}

TEST(ApplicationException, NamesAllRanksThatRaiseTheSame) {
  JobSketch job(4);
  for (int r = 0; r < 4; ++r) Raise(job, r, "FileNotFoundError");
  EXPECT_EQ(JudgedCase(job).Only("application-exception").ranks, Ranks({0, 1, 2, 3}));
}

TEST(ApplicationException, OfDifferentErrorsTheFirstIsTheCause) {
  JobSketch job(4);
  Raise(job, 3, "ZeroDivisionError");
  job.Wait(kSecondNs);
  Raise(job, 1, "AssertionError");
  EXPECT_EQ(JudgedCase(job).Only("application-exception").ranks, Ranks({3}));
}

class Consequences : public testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, Consequences,
    testing::Values(std::pair{"torch.distributed.DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:2"},
                    std::pair{"torch.distributed.DistNetworkError", "Connection reset by peer"},
                    std::pair{"torch.distributed.DistStoreError", "Timed out after 61 seconds waiting for clients"},
                    std::pair{"torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "train.py FAILED"},
                    std::pair{"torch.distributed.elastic.multiprocessing.api.SignalException", "got signal: 15"},
                    std::pair{"RuntimeError", "[2] is setting up NCCL communicator; Socket Timeout"},
                    std::pair{"RuntimeError", "[../gloo/transport/tcp/pair.cc:598] Connection closed by peer"},
                    std::pair{"RuntimeError", "NCCL communicator was aborted on rank 3"},
                    std::pair{"KeyboardInterrupt", ""}));

TEST_P(Consequences, AreNotBlamed) {
  JobSketch job(4);
  job.Rounds(5);
  for (const int r : {0, 2}) Raise(job, r, GetParam().first, GetParam().second);
  EXPECT_FALSE(JudgedCase(job).Fires("application-exception"));
}

TEST(ApplicationException, AReaderThatFindsItsFileCutShortIsAnErrorOfTheApplication) {
  // EOFError is also what a pipe to a dead process gives; its text then says nothing of input.
  JobSketch job(4);
  job.Rounds(5);
  Raise(job, 2, "EOFError", "Ran out of input");
  EXPECT_EQ(JudgedCase(job).Only("application-exception").ranks, Ranks({2}));
}

TEST(ApplicationException, AWrongCallOfNcclIsFirstHandAndToldInItsOwnWords) {
  JobSketch job(4);
  job.Rounds(5);
  for (int r = 0; r < 4; ++r) {
    Raise(job, r, "torch.distributed.DistBackendError",
          "NCCL error in: ProcessGroupNCCL.cpp:3780, invalid usage (run with NCCL_DEBUG=WARN for details)");
    job.Say(r, EventKind::nccl_error).text =
        "NCCL error in: ProcessGroupNCCL.cpp:3780\nLast error: no algorithm available for Broadcast";
  }
  const Finding finding = JudgedCase(job).Only("application-exception");
  EXPECT_EQ(finding.ranks, Ranks({0, 1, 2, 3}));
  EXPECT_NE(finding.headline.find("NCCL says no algorithm available"), std::string::npos) << finding.headline;
}

TEST(ApplicationException, LeavesMemoryAndDdpToTheirOwnCauses) {
  JobSketch job(4);
  Raise(job, 1, "torch.OutOfMemoryError", "CUDA out of memory");
  job.Say(1, EventKind::cuda_error).Make<CudaError>().words = "out of memory";
  Raise(job, 2, "RuntimeError", "Expected to have finished reduction");
  job.Say(2, EventKind::ddp_unused_parameters).Make<DdpParameters>().names = "1 4";
  EXPECT_FALSE(JudgedCase(job).Fires("application-exception"));
}

TEST(ApplicationException, StaysSilentWithoutAnyOutput) {
  JobSketch job(4);
  job.Rounds(5);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("application-exception"));
  bool asked = false;
  for (const CannotTell& open : judged.Verdict().open) asked |= open.missing.find("output") != std::string::npos;
  EXPECT_TRUE(asked);
}

// ddp-unused-parameters

TEST_P(FailedRank, TheRankThatTookAnotherBranchIsNamedAndTheBucketItsPeersWaitIn) {
  const FaultPlace& place = GetParam();
  JobSketch job = LeftBehind(place);
  Event& event = job.Say(place.rank, EventKind::ddp_unused_parameters);
  event.Make<DdpParameters>().names = "head.weight";
  for (const int32_t r : job.AllBut({place.rank})) job.TimeOut(r, place.rounds + 1);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("ddp-unused-parameters");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  EXPECT_NE(finding.headline.find("head.weight"), std::string::npos);
  EXPECT_EQ(judged.Verdict().cause, "ddp-unused-parameters");
}

TEST(DdpUnusedParameters, OnAllRanksItIsACrash) {
  JobSketch job(4);
  job.Rounds(3);
  for (int r = 0; r < 4; ++r) job.Say(r, EventKind::ddp_unused_parameters).Make<DdpParameters>().names = "1 4 7";
  const Finding finding = JudgedCase(job).Only("ddp-unused-parameters");
  EXPECT_EQ(finding.ranks, Ranks({0, 1, 2, 3}));
  EXPECT_EQ(finding.status, Status::crash);
  EXPECT_NE(finding.headline.find("on any rank"), std::string::npos);
  JobSketch apart(3);
  apart.Rounds(3);
  for (int r = 0; r < 3; ++r)
    apart.Say(r, EventKind::ddp_unused_parameters).Make<DdpParameters>().names = r == 0 ? "4 5" : "2 3";
  const Finding differs = JudgedCase(apart).Only("ddp-unused-parameters");
  EXPECT_NE(differs.headline.find("(rank 0: 4 and 5; rank 1: 2 and 3; rank 2: 2 and 3)"), std::string::npos)
      << differs.headline;
}

TEST(DdpUnusedParameters, AFileOfAnUnknownRankNamesNobody) {
  JobSketch job(4);
  job.Rounds(3);
  job.Tell(EventKind::ddp_unused_parameters).Make<DdpParameters>().names = "1";
  const Finding finding = JudgedCase(job).Only("ddp-unused-parameters");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.headline.find("no rank"), std::string::npos) << finding.headline;
}

TEST(DdpUnusedParameters, StaysSilentOnOtherErrors) {
  JobSketch job(4);
  job.Rounds(3);
  Raise(job, 1, "RuntimeError", "shape mismatch");
  job.Say(2, EventKind::ddp_marked_twice);
  EXPECT_FALSE(JudgedCase(job).Fires("ddp-unused-parameters"));
}

TEST(DdpUnusedParameters, WithoutTheOutputItLooksLikeARankStuckOnItsHost) {
  JobSketch job = LeftBehind({4, 1, 12});
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("ddp-unused-parameters"));
  const RuleAnswer answer = judged.Ask("rank-stuck-on-host");
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_NE(answer.findings[0].confidence, Confidence::certain);
  EXPECT_FALSE(answer.open.empty());
}

TEST(ApplicationException, CommunicationIsNotRuledOutWhereTheErrorSpeaksOfIt) {
  const auto headline = [](const char* text) {
    JobSketch job(3);
    for (int32_t r = 0; r < 3; ++r) {
      Event& raised = job.Say(r, EventKind::exception);
      raised.Make<Raised>().type = "RuntimeError";
      raised.text = text;
    }
    return JudgedCase(job).Verdict().headline;
  };
  EXPECT_NE(headline("bad shape").find("Communication is not the cause"), std::string::npos);
  EXPECT_EQ(headline("shard server timed out after 30 s").find("communication"), std::string::npos);
}

// Several processes with one fault

JobSketch EndedBySignal(int32_t world, const std::vector<int32_t>& ranks, int64_t code) {
  JobSketch job(world);
  for (const int32_t rank : ranks) {
    Event& end = job.Tell(EventKind::process_exited);
    end.rank = Rank{rank};
    end.source.line = static_cast<uint32_t>(10 + rank);
    end.Make<ProcessEnd>().code = code;
  }
  return job;
}

TEST(CommonEnd, ManyThatEndBySegmentationFaultNameNobody) {
  JobSketch job = EndedBySignal(7, {2, 0, 3, 6}, -11);
  const Finding finding = JudgedCase(job).Only("rank-dead");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.headline.find("not specific to one rank"), std::string::npos) << finding.headline;
}

TEST(CommonEnd, OneOrTwoAreNamedAsBefore) {
  JobSketch job = EndedBySignal(4, {2}, -11);
  EXPECT_EQ(JudgedCase(job).Only("rank-dead").ranks, Ranks({2}));
}

TEST(RankOutOfMemory, SeveralThatReachTheirOwnLimitAreToldSo) {
  JobSketch job(2, {});
  job.GiveOutputs();
  for (const int r : {0, 1}) {
    Event& error = job.Say(r, EventKind::cuda_error);
    error.Make<CudaError>().words = "out of memory";
    error.text =
        "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 70.00 GiB is "
        "free. Including non-PyTorch memory, this process has 4.00 GiB memory in use. 4.50 GiB allowed; Of the "
        "allocated memory 3.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.";
  }
  const Finding finding = JudgedCase(job).Only("rank-out-of-memory");
  EXPECT_NE(finding.headline.find("each may use only 4.50 of the 80.00 GiB of its GPU"), std::string::npos)
      << finding.headline;
}

Event& RaiseTooSlow(JobSketch& job, int32_t rank) {
  Event& error = job.Say(rank, EventKind::exception);
  error.Make<Raised>().type = "SyncTooSlow";
  error.text = "gradients of step 7 are not complete";
  return error;
}

TEST(ApplicationException, CommunicationIsExcludedOnlyWhereAllRanksRaiseTheSame) {
  for (const int32_t raising : {3, 4}) {
    JobSketch job(4, {});
    job.GiveOutputs();
    for (int32_t r = 0; r < raising; ++r) RaiseTooSlow(job, r);
    const Finding finding = JudgedCase(job).Only("application-exception");
    EXPECT_EQ(finding.headline.find("Communication is not the cause") != std::string::npos, raising == 4)
        << finding.headline;
    const bool asks = std::any_of(finding.fix.begin(), finding.fix.end(), [](const std::string& step) {
      return step.find("Only rank 3 did not raise it") != std::string::npos;
    });
    EXPECT_EQ(asks, raising == 3);
  }
}

TEST(ApplicationException, AddressesOfObjectsAreNoDifference) {
  JobSketch job(2, {});
  job.GiveOutputs();
  RaiseTooSlow(job, 0).text = "rank 5 is not in <ProcessGroup object at 0x7f10aa>";
  RaiseTooSlow(job, 1).text = "rank 5 is not in <ProcessGroup object at 0x7fe3bb>";
  EXPECT_EQ(JudgedCase(job).Only("application-exception").evidence.size(), 1u);
}

TEST(ApplicationException, WhoAloneHasNoRankIsComparedWithTheOthers) {
  for (const int32_t without : {1, 2}) {
    JobSketch job(2, {});
    job.GiveOutputs();
    for (int32_t r = 0; r < without; ++r) {
      Event& error = RaiseTooSlow(job, r);
      error.Make<Raised>().type = "ValueError";
      error.Set(Meaning::no_launcher);
    }
    const Finding finding = JudgedCase(job).Only("application-exception");
    EXPECT_EQ(finding.fix.front().find("The other ranks do not report this") == 0, without == 1) << finding.fix.front();
  }
}

}  // namespace
}  // namespace tacet
