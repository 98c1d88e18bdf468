// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_told_causes.h"

#include <set>
#include <string>
#include <utility>

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

size_t Count(std::string_view text, EventKind kind) {
  return EventsOf(ReadText(std::string(text) + "\n", "job.out"), kind).size();
}

// Behind it fairseq goes on; one that it does not catch is another error.
TEST(TorchLogToldCauses, MemoryThatTheProgramRecoveredFromIsNoError) {
  const std::string oom = "CUDA out of memory. Tried to allocate 1.86 GiB (GPU 3; 31.75 GiB total capacity)\n";
  const std::string caught = "WARNING | fairseq.trainer | OOM: Ran out of memory with exception: " + oom +
                             "WARNING | fairseq.trainer | attempting to recover from OOM in forward/backward pass\n";
  EXPECT_TRUE(EventsOf(ReadText(caught, "train.log"), EventKind::cuda_error).empty());
  EXPECT_EQ(EventsOf(ReadText(caught + "RuntimeError: " + oom, "train.log"), EventKind::cuda_error).size(), 1u);
}

TEST(TorchLogToldCauses, ReadsAFullSharedMemory) {
  for (const std::string_view line :
       {"RuntimeError: DataLoader worker (pid 4211) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. Please try to raise your shared memory limit.",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "RuntimeError: unable to write to file </torch_28_3451>: No space left on device (28)",
        "OSError: [Errno 28] No space left on device: '/dev/shm/x'"}) {
    EXPECT_EQ(Count(line, EventKind::shared_memory_full), 1u) << line;
    EXPECT_EQ(Count(line, EventKind::disk_full), 0u) << line;
  }
}

TEST(TorchLogToldCauses, OtherLimitsAndOtherSharedMemoryAreNotIt) {
  for (const std::string_view line :
       {"RuntimeError: unable to open shared memory object </torch_7_9> in read-write mode: Too many open files (24)",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 135168, Hardware limit: "
        "101376",
        "INFO using /dev/shm for the object store"})
    EXPECT_EQ(Count(line, EventKind::shared_memory_full), 0u) << line;
}

TEST(TorchLogToldCauses, ReadsAFullDiskAndItsPath) {
  const Fragment fragment =
      ReadText("OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_400.pt'\n", "stdout_rank2.log");
  const Event full = OneEvent(fragment, EventKind::disk_full);
  EXPECT_EQ(full.As<NoSpace>().path, "/scratch/ckpt/step_400.pt");
  EXPECT_EQ(full.As<NoSpace>().limit, SpaceLimit::device);
  EXPECT_EQ(OneEvent(ReadText("OSError: [Errno 122] Disk quota exceeded\n", "a.out"), EventKind::disk_full)
                .As<NoSpace>()
                .limit,
            SpaceLimit::quota);
  EXPECT_EQ(Count("RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 640 vs 534",
                  EventKind::disk_full),
            1u);
  EXPECT_EQ(Count("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory "
                  "(inline_container.cc)",
                  EventKind::disk_full),
            0u);
}

TEST(TorchLogToldCauses, AQuotaOfFilesAndNotOneOfRequests) {
  const Event full = OneEvent(
      ReadText("2026-02-11 09:14:55,040 loop ERROR: could not write /ckpt/final.pt: quota exceeded\n", "job.out"),
      EventKind::disk_full);
  EXPECT_EQ(full.As<NoSpace>().path, "/ckpt/final.pt");
  EXPECT_EQ(full.As<NoSpace>().limit, SpaceLimit::quota);
  for (const std::string_view line :
       {"ERROR: 429 Too Many Requests: quota exceeded, retry in 20 s",
        "google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded for quota metric 'Read requests'"})
    EXPECT_EQ(Count(line, EventKind::disk_full), 0u) << line;
}

TEST(TorchLogToldCauses, AnErrorThatTheJobSurvivedIsDropped) {
  const Fragment fragment = ReadText(
      "step 10 loss 2.5\nOSError: [Errno 28] No space left on device: '/ckpt/a.pt'\nstep 11 loss 2.4\nstep 12 loss "
      "2.3\n",
      "stdout_rank0.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::disk_full).empty());
}

TEST(TorchLogToldCauses, ReadsThePortThatIsTaken) {
  for (const std::string_view line :
       {"[E socket.cpp:860] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in "
        "use).",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: "
        "29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 29500): address already in use"}) {
    const Fragment fragment = ReadText(std::string(line) + "\n", "job.out");
    ASSERT_EQ(EventsOf(fragment, EventKind::port_in_use).size(), 1u) << line;
    EXPECT_EQ(OneEvent(fragment, EventKind::port_in_use).As<PortTaken>().port, 29500) << line;
  }
  EXPECT_EQ(OneEvent(ReadText("RuntimeError: Address already in use\n", "job.out"), EventKind::port_in_use)
                .As<PortTaken>()
                .port,
            -1);
  EXPECT_EQ(
      Count("[W socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address "
            "family not supported by protocol).",
            EventKind::port_in_use),
      0u);
}

TEST(TorchLogToldCauses, ReadsDdpsCheckOfTheModel) {
  const Event shape =
      OneEvent(ReadText("RuntimeError: [3]: params[7] in this process with sizes [10, 5] appears not to "
                        "match sizes of the same param in process 0.\n",
                        "job.out"),
               EventKind::model_mismatch);
  EXPECT_EQ(shape.group_rank, GroupRank{3});
  EXPECT_EQ(shape.peer_group_rank, GroupRank{0});
  EXPECT_EQ(shape.As<ModelMismatch>().parameter, 7);
  EXPECT_EQ(shape.As<ModelMismatch>().value, "[10, 5]");
  const Event number = OneEvent(ReadText("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 10 "
                                         "params, while rank 1 has inconsistent 8 params.\n",
                                         "job.out"),
                                EventKind::model_mismatch);
  EXPECT_EQ(number.As<ModelMismatch>().parameter, -1);
  EXPECT_EQ(number.As<ModelMismatch>().value, "10 against 8");
}

TEST(TorchLogToldCauses, ReadsPathsThatAreBroken) {
  EXPECT_EQ(Count("RuntimeError: CUDA error: peer access is not supported between these two devices",
                  EventKind::peer_access_failed),
            1u);
  EXPECT_EQ(Count("[engine][ERROR] Encountered an error: peer access is not supported between these two devices",
                  EventKind::peer_access_failed),
            1u);
  EXPECT_EQ(Count("[INFO] peer access is not supported between these two devices, going on without it",
                  EventKind::peer_access_failed),
            0u);
  EXPECT_EQ(Count("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not "
                  "yet initialized (Triggered internally at CUDAFunctions.cpp:109.)",
                  EventKind::fabric_down),
            1u);
  const Event limit =
      OneEvent(ReadText("libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\n", "job.out"), EventKind::rdma_failed);
  EXPECT_TRUE(limit.As<RdmaFailure>().only_warned);
  const Event refused =
      OneEvent(ReadText("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:22780: "
                        "Connection refused\n",
                        "job.out"),
               EventKind::connect_failed);
  EXPECT_EQ(refused.As<ConnectFailure>().address, "127.0.1.1");
}

SchedulerKill KillOf(std::string_view line) {
  return OneEvent(ReadText(std::string(line) + "\n", "job.out"), EventKind::scheduler_kill).As<OutsideEnd>().why;
}

TEST(TorchLogToldCauses, ReadsWhoEndedTheJob) {
  EXPECT_EQ(KillOf("slurmstepd: error: *** JOB 37 ON n5 CANCELLED AT 2021-03-15T18:00:46 DUE TO PREEMPTION ***"),
            SchedulerKill::preempted);
  EXPECT_EQ(KillOf("slurmstepd: error: *** JOB 37 ON n5 CANCELLED AT 2021-03-15T18:00:46 DUE TO TIME LIMIT ***"),
            SchedulerKill::time_limit);
  EXPECT_EQ(KillOf("slurmstepd: error: *** JOB 37 ON n5 CANCELLED AT 2021-03-15T18:00:46 DUE TO JOB REQUEUE ***"),
            SchedulerKill::requeued);
  EXPECT_EQ(KillOf("slurmstepd: error: *** STEP 37.0 ON n5 CANCELLED AT 2021-03-15T18:00:46 ***"),
            SchedulerKill::cancelled);
  EXPECT_EQ(KillOf("TERM_PREEMPT: job killed after preemption."), SchedulerKill::preempted);
  EXPECT_EQ(KillOf("TERM_OWNER: job killed by owner."), SchedulerKill::cancelled);
  EXPECT_EQ(KillOf("=>> PBS: job killed: walltime 3611 exceeded limit 3600"), SchedulerKill::time_limit);
  EXPECT_EQ(KillOf("Warning  Evicted  2m  kubelet  The node was low on resource: memory. Threshold quantity: 100Mi"),
            SchedulerKill::evicted);
  EXPECT_EQ(KillOf("Warning  Preempted  10s  default-scheduler  Preempted by default/urgent-0 on node gpu-7"),
            SchedulerKill::preempted);
  EXPECT_EQ(KillOf("Job was active longer than specified deadline"), SchedulerKill::time_limit);
  EXPECT_EQ(KillOf("Received EC2 Spot Instance interruption notice, shutting down in 120 s"), SchedulerKill::reclaimed);
  EXPECT_EQ(KillOf("[2024-01-01 10:00:00,123] torch.distributed.elastic.agent.server.api: [WARNING] Received "
                   "Signals.SIGTERM death signal, shutting down workers"),
            SchedulerKill::signal);
}

TEST(TorchLogToldCauses, WordsOfCachesAndEnginesAreNotAKill) {
  for (const std::string_view line :
       {"WARNING scheduler.py:1057] Sequence group 12 is preempted by PreemptionMode.RECOMPUTE mode because there is "
        "not "
        "enough KV cache space.",
        "INFO 120 blocks were evicted from the prefix cache", "grpc error: DeadlineExceeded while fetching shard 3",
        "slurmstepd: error: *** JOB 608 ON n7 CANCELLED AT 2022-08-12T02:06:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG "
        "FOR DETAILS ***"})
    EXPECT_EQ(Count(line, EventKind::scheduler_kill), 0u) << line;
}

TEST(TorchLogToldCauses, EveryPairOfRanksOnOneGpuIsRead) {
  const std::string error =
      "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, invalid "
      "usage, NCCL version 2.20.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast "
      "error:\n";
  const Fragment fragment =
      ReadText(error + "Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 4e000\n" + error +
                   "Duplicate GPU detected : rank 5 and rank 0 both on CUDA device 4e000\n",
               "job.out");
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (const Event* event : EventsOf(fragment, EventKind::nccl_warning))
    pairs.emplace(event->group_rank.value, event->peer_group_rank.value);
  EXPECT_EQ(pairs, (std::set<std::pair<int32_t, int32_t>>{{2, 0}, {5, 0}}));
}

TEST(TorchLogToldCauses, ATimeoutWhoseSentenceIsCutIsATimeout) {
  const std::string line =
      "[rank2]:[E705 11:02:33.101 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=733, OpType=ALLREDUCE, NumelIn=50, NumelOut=50, Timeout(ms)=600000)";
  for (const std::string_view rest : {" ran for 600012 milliseconds before timing out.", " ran fo", ""}) {
    const Fragment fragment = ReadText(line + std::string(rest) + "\n", "job.out");
    const Event timeout = OneEvent(fragment, EventKind::watchdog_timeout);
    EXPECT_EQ(timeout.seq, 733) << rest;
    EXPECT_EQ(RankOf(fragment, timeout), Rank{2}) << rest;
  }
}

TEST(TorchLogToldCauses, LibfabricTellsItsProcess) {
  const Fragment fragment = ReadText(
      "libfabric:70812:1731000000::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address\n",
      "job.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::nccl_warning).pid, 70812);
}

TEST(TorchLogToldCauses, TheNumbersOfAMismatchAreRead) {
  const Fragment fragment = ReadText(
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 3 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=12OpType=BARRIER), but Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=11OpType=BARRIER).Collectives differ in the following aspects: Sequence "
      "number: 12vs 11\n",
      "job.out");
  const Event report = OneEvent(fragment, EventKind::mismatch_report);
  EXPECT_EQ(report.As<MismatchReport>().aspect, "seq");
  EXPECT_EQ(report.seq, 12);
  EXPECT_EQ(report.As<MismatchReport>().expected, 11);
}

TEST(ToldCauses, UcxTellsTheProcessItSpeaksIn) {
  const Fragment fragment = ReadText(
      "[1699999999.123456] [gpu17:4121 :0]         sock.c:323  UCX  ERROR   connect(fd=54, dest_addr=10.1.2.3:43215) "
      "failed: Connection refused\n",
      "o");
  const Event failed = OneEvent(fragment, EventKind::nccl_warning);
  EXPECT_EQ(failed.pid, 4121);
  EXPECT_EQ(fragment.speakers.at(failed.speaker).host, "gpu17");
  EXPECT_EQ(fragment.speakers.at(failed.speaker).pid, 4121);
  EXPECT_FALSE(failed.text.starts_with("[16"));
  // Memory that cannot be registered is lost, and not only warned of; the limit stands behind it.
  const Fragment memory = ReadText(
      "[1699999999.123456] [gpu17:4121 :0]  ib_md.c:309  UCX  ERROR ibv_reg_mr(address=0x7f2c0000, "
      "length=8388608, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) "
      "to 'unlimited' (current: 64 kbytes)\n",
      "o");
  ASSERT_EQ(memory.events.size(), 2U);
  EXPECT_TRUE(memory.events[0].As<RdmaFailure>().may_go_on);
  EXPECT_FALSE(memory.events[0].As<RdmaFailure>().only_warned);
  EXPECT_TRUE(memory.events[1].As<RdmaFailure>().only_warned);
  EXPECT_EQ(memory.events[1].As<RdmaFailure>().code, 65536);
}

}  // namespace
}  // namespace tacet
