// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_owners.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

const std::string kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"/srv/job/fit.py\", line 71, in fit\n"
    "    loss = net(x)\n";
const std::string kMemory =
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 5; 15.78 GiB total capacity; 13.96 GiB already "
    "allocated)\n";

std::string Failure(int rank, int code, int pid, bool root) {
  const std::string head = root ? "Root Cause (first observed failure):\n[0]:\n" : "[1]:\n";
  return head + "  time      : 2024-08-17_17:40:35\n  host      : n1\n  rank      : " + std::to_string(rank) +
         " (local_rank: " + std::to_string(rank) + ")\n  exitcode  : " + std::to_string(code) +
         " (pid: " + std::to_string(pid) + ")\n  error_file: <N/A>\n  traceback : -\n------------------------------\n";
}

std::string Summary(const std::string& failures) {
  return "============================================================\nfit.py FAILED\n"
         "------------------------------------------------------------\nFailures:\n" +
         failures + "============================================================\n";
}

TEST(TorchLogOwners, AnErrorIsOfTheProgramThatEndsBehindItBeforeAnyPeerIsLost) {
  const auto left = [](int rank) {
    return "[rank" + std::to_string(rank) +
           "]:[W1116 18:48:11.340851590 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not "
           "called before program exit, which can leak resources.\n";
  };
  const std::string lost =
      "[rank3]:[E1116 18:48:12.897443909 ProcessGroupNCCL.cpp:612] [Rank 3] Collective WorkNCCL(SeqNum=18, "
      "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=12000) raised the following async exception: NCCL error: "
      "remote process exited or there was a network error, NCCL version 2.28.9\nncclRemoteError: A call failed "
      "possibly due "
      "to a network error or a remote process exiting prematurely.\nLast error:\nsocketProgress: Connection closed by "
      "remote peer localhost<47944>\n";
  const std::string error = kTraceback + "ValueError: bad batch\n";
  EXPECT_EQ(OneEvent(ReadText(error + left(2) + lost, "out.log"), EventKind::exception).rank, Rank{2});
  // Nobody else failed, or somebody had failed before: whose error it is stays open.
  EXPECT_FALSE(OneEvent(ReadText(error + left(2), "out.log"), EventKind::exception).rank.known());
  EXPECT_FALSE(OneEvent(ReadText(lost + error + left(2) + lost, "out.log"), EventKind::exception).rank.known());
}

TEST(TorchLogOwners, AnErrorIsOfTheOnlyRankThatRaised) {
  const Fragment fragment =
      ReadText("step 3 loss 2.5\n" + kTraceback + kMemory + Summary(Failure(5, 1, 77, true)), "slurm-1.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).rank, Rank{5});
  EXPECT_EQ(OneEvent(fragment, EventKind::cuda_error).rank, Rank{5});
}

TEST(TorchLogOwners, OfSeveralThatRaisedTheDeviceTells) {
  const Fragment fragment = ReadText(kTraceback + kMemory + kTraceback + "ValueError: no\n" +
                                         Summary(Failure(5, 1, 77, true) + Failure(2, 1, 74, false)),
                                     "slurm-1.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::cuda_error).rank, Rank{5});
  for (const Event* event : EventsOf(fragment, EventKind::exception)) {
    if (event->As<Raised>().type == "ValueError") {
      EXPECT_FALSE(event->rank.known());
    }
  }
}

TEST(TorchLogOwners, RanksThatRaiseTheSameGetOneEach) {
  const Fragment fragment = ReadText(kTraceback + "KeyError: 'labels'\n" + kTraceback + "KeyError: 'labels'\n" +
                                         Summary(Failure(1, 1, 77, true) + Failure(0, 1, 74, false)),
                                     "slurm-1.out");
  const auto raised = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(raised.size(), 2u);
  EXPECT_EQ(raised[0]->rank, Rank{0});
  EXPECT_EQ(raised[1]->rank, Rank{1});
}

TEST(TorchLogOwners, WhoWasKilledRaisedNothing) {
  const Fragment fragment =
      ReadText(kTraceback + "KeyError: 'labels'\n" + Summary(Failure(1, -9, 77, true) + Failure(0, -15, 74, false)),
               "slurm-1.out");
  EXPECT_FALSE(OneEvent(fragment, EventKind::exception).rank.known());
}

TEST(TorchLogOwners, WhatWasSaidBeforeARestartIsOver) {
  const Fragment fragment = ReadText(
      "[rank2]: " +
          std::string("Traceback (most recent call last):\n[rank2]:   File \"/a/fit.py\", line 1, in fit\n"
                      "[rank2]: RuntimeError: CUDA error: unspecified launch failure\n") +
          "I0817 17:41:02.000000 139 torch/distributed/elastic/agent/server/api.py:875] [default] Worker group FAILED. "
          "3/3 attempts left; will restart worker group\n"
          "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/a/fit.py\", line 1, in fit\n"
          "[rank0]: RuntimeError: CUDA error: device-side assert triggered\n",
      "train.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::cuda_error).As<CudaError>().words, "device-side assert triggered");
  EXPECT_EQ(fragment.diagnostics.size(), 1u);
}

TEST(TorchLogOwners, MemoryThatRanOutInACaughtErrorIsNothing) {
  const Fragment fragment = ReadText(
      "step 3 loss 2.5\nWARNING: skipping batch: CUDA out of memory. Tried to allocate 2.00 GiB\nstep 4 loss 2.4\n"
      "step 5 loss 2.3\n",
      "rank0.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::cuda_error).empty());
}

TEST(TorchLogOwners, ReadsATracebackInAFrame) {
  const Fragment fragment = ReadText(
      "step 3 loss 2.5\n"
      "╭───────────── Traceback (most recent call last) ──────────────╮\n"
      "│ /srv/job/fit.py:71 in fit                                    │\n"
      "│ ❱ 71 │   loss = net(x[\"labels\"])                             │\n"
      "│ /usr/lib/python3/dist-packages/torch/nn/module.py:5 in call  │\n"
      "╰──────────────────────────────────────────────────────────────╯\n"
      "KeyError: 'labels'\n",
      "rank1.log");
  const Event raised = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(raised.As<Raised>().type, "KeyError");
  EXPECT_EQ(raised.As<Raised>().place.function, "fit");
  EXPECT_EQ(raised.As<Raised>().place.line, 71u);
  EXPECT_EQ(RankOf(fragment, raised), Rank{1});
}

TEST(TorchLogOwners, TheLastErrorOfNcclIsAWarning) {
  const Fragment fragment = ReadText(
      "[rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, unhandled system error (run with "
      "NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
      "[rank1]: ncclSystemError: System call failed.\n[rank1]: Last error:\n"
      "[rank1]: Error: failed to extend /dev/shm/nccl-Mz0Kxy to 33030532 bytes\n",
      "train.log");
  const Event warning = OneEvent(fragment, EventKind::nccl_warning);
  EXPECT_EQ(warning.As<Warning>().id, "shm-extend-failed");
  EXPECT_EQ(RankOf(fragment, warning), Rank{1});
}

TEST(TorchLogOwners, KnowsTheWordsOfLibraries) {
  const auto subject = [](const std::string& error) {
    const Fragment fragment = ReadText("RuntimeError: " + error + "\n", "rank1.log");
    const auto events = EventsOf(fragment, EventKind::cuda_error);
    return events.empty() ? std::string() : events.front()->As<CudaError>().words;
  };
  EXPECT_EQ(subject("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "out of memory");
  EXPECT_EQ(subject("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), "CUDNN_STATUS_EXECUTION_FAILED");
  EXPECT_EQ(subject("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed"), "");
  EXPECT_EQ(subject("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"), "");
  EXPECT_EQ(subject("CUDA error: operation not permitted when stream is capturing"), "");
  EXPECT_EQ(subject("CUDA error: driver shutting down"), "");
  EXPECT_EQ(subject("CUDA error: device-side assert triggered"), "device-side assert triggered");
  EXPECT_EQ(subject("Triton Error [CUDA]: an illegal memory access was encountered"),
            "an illegal memory access was encountered");
}

// What stands above the marker was printed by any of the processes.
TEST(TorchLogOwners, SpawnsMarkerOwnsOnlyWhatFollowsIt) {
  const Fragment fragment = ReadText(
      kMemory + "-- Process 3 terminated with the following error:\n" + kTraceback + "KeyError: 'x'\n", "a.out");
  EXPECT_FALSE(OneEvent(fragment, EventKind::cuda_error).rank.known());
}

std::string ModelCheck(int own, int params, int other, int others) {
  return kTraceback + "RuntimeError: DDP expects same model across all ranks, but Rank " + std::to_string(own) +
         " has " + std::to_string(params) + " params, while rank " + std::to_string(other) + " has inconsistent " +
         std::to_string(others) + " params.\n";
}

TEST(TorchLogOwners, ANumberInTheMessageGoesBeforeTheOrderOfLines) {
  const std::string ends = Summary(Failure(0, 1, 70, true) + Failure(1, 1, 71, false) + Failure(2, 1, 72, false));
  const auto owners = [](const Fragment& fragment) {
    std::vector<int32_t> ranks;
    for (const Event* event : EventsOf(fragment, EventKind::model_mismatch)) ranks.push_back(event->rank.value);
    return ranks;
  };
  const std::string checks = ModelCheck(2, 8, 0, 6) + ModelCheck(1, 6, 2, 8) + ModelCheck(0, 6, 2, 8);
  EXPECT_EQ(owners(ReadText(checks + ends, "job.out")), (std::vector<int32_t>{2, 1, 0}));
  // Numbers within two groups: they tell no ranks of the job.
  const std::string within = ModelCheck(1, 8, 0, 6) + ModelCheck(0, 6, 1, 8) + ModelCheck(0, 7, 1, 8);
  EXPECT_EQ(owners(ReadText(within + ends, "job.out")), (std::vector<int32_t>{0, 1, 2}));
}

const std::string kAbort = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n";
const std::string kCheck =
    "  what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= op.nbytes. 1844 vs 4\n";

TEST(TorchLogOwners, TheOnlyAbortIsOfTheOnlyRankThatSigabrtEnded) {
  const Fragment fragment =
      ReadText(kAbort + kCheck + Summary(Failure(3, -6, 73, true) + Failure(0, 1, 70, false)), "job.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::abort_signal).rank, Rank{3});
  EXPECT_EQ(OneEvent(fragment, EventKind::mismatch_report).rank, Rank{3});
  const Fragment thrown =
      ReadText("terminate called after throwing an instance of 'std::runtime_error'\n  what():  no such column\n" +
                   Summary(Failure(1, -6, 71, true) + Failure(0, 1, 70, false) + Failure(2, 1, 72, false)),
               "job.out");
  EXPECT_EQ(OneEvent(thrown, EventKind::exception).rank, Rank{1});
}

TEST(TorchLogOwners, OfSeveralAbortsNobodyIsNamed) {
  const auto known = [](const std::string& text) {
    const Fragment fragment = ReadText(text, "job.out");
    for (const Event* event : EventsOf(fragment, EventKind::mismatch_report))
      if (event->rank.known()) return true;
    return false;
  };
  const std::string one = Failure(3, -6, 73, true), other = Failure(2, -6, 72, false);
  EXPECT_TRUE(known(kAbort + kCheck + Summary(one)));
  EXPECT_FALSE(known(kAbort + kCheck + Summary(one + other)));
  EXPECT_FALSE(known(kAbort + kCheck + kAbort + kCheck + Summary(one)));
  EXPECT_FALSE(known(kAbort + kCheck + Summary(Failure(3, -11, 73, true)))) << "a segmentation fault writes nothing";
  EXPECT_FALSE(known("[rank1]: " + kAbort + kCheck + Summary(one)));
}

}  // namespace
}  // namespace tacet
