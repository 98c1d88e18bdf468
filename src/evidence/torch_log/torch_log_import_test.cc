// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_import.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

// Horovod's coordinator tells every rank the same, and names none.
TEST(TorchLogImport, HorovodsCheckTellsWhatDiffersAndNobody) {
  const auto report = [](const std::string& words) {
    return OneEvent(
        ReadText("[1,2]<stderr>:horovod.common.exceptions.HorovodInternalError: Mismatched " + words + "\n", "job.out"),
        EventKind::mismatch_report);
  };
  const Event shapes = report(
      "ALLREDUCE tensor shapes: One rank sent a tensor of shape [1000, 2048], but another rank sent a tensor of shape "
      "[1001, 2048].");
  EXPECT_TRUE(shapes.ranks.empty());
  EXPECT_EQ(shapes.op, OpKind::all_reduce);
  EXPECT_EQ(shapes.As<MismatchReport>().aspect, "shape");
  EXPECT_EQ(shapes.As<MismatchReport>().tensor, "[1000, 2048]");
  EXPECT_EQ(shapes.As<MismatchReport>().other_tensor, "[1001, 2048]");
  const Event types = report("data types: One rank had type float32, but another rank had type float64.");
  EXPECT_EQ(types.As<MismatchReport>().aspect, "dtype");
  EXPECT_EQ(types.As<MismatchReport>().other_tensor, "float64");
  EXPECT_TRUE(
      EventsOf(ReadText("one rank is late, but another rank waits\n", "job.out"), EventKind::mismatch_report).empty());
}

TEST(TorchLogImport, ReadsATimeoutInASubGroup) {
  const Fragment fragment = ReadSample("torch_2_11_timeout_rank3.log");
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_EQ(fragment.speakers[0].pid, 2345);
  const Event timeout = OneEvent(fragment, EventKind::watchdog_timeout);
  EXPECT_EQ(timeout.seq, 13);
  EXPECT_EQ(timeout.op, OpKind::all_reduce);
  EXPECT_EQ(timeout.As<WatchdogTimeout>().timeout_ms, 20000);
  EXPECT_EQ(timeout.As<WatchdogTimeout>().elapsed_ms, 20020);
  EXPECT_EQ(timeout.As<WatchdogTimeout>().elements, 1048576);
  // The group is told by the next line only; "[Rank 1]" is the rank in it.
  EXPECT_EQ(timeout.group_name, "1187ab66aa1922bc98611a123d3eaaa45aa6040e");
  EXPECT_EQ(timeout.group_rank, GroupRank{1});
  const Event status = OneEvent(fragment, EventKind::watchdog_status);
  EXPECT_EQ(status.seq, 13);
  EXPECT_EQ(status.As<WorkCounters>().last_enqueued, 13);
  EXPECT_EQ(status.As<WorkCounters>().last_completed, 12);
  const Event signal = OneEvent(fragment, EventKind::dump_signal);
  EXPECT_EQ(signal.peer, Rank{1});
  EXPECT_EQ(signal.As<WorkCounters>().last_enqueued, -1);
  // Whole seconds only: the written fraction is of another clock.
  EXPECT_EQ(timeout.wall_ns, 1794702508LL * 1'000'000'000);
  const auto steps = EventsOf(fragment, EventKind::progress);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1]->As<Progress>().step, 10);
  EXPECT_EQ(steps[1]->As<Progress>().lines, 3);
}

TEST(TorchLogImport, ReadsTimeoutsOfOlderVersions) {
  const Fragment old = ReadSample("torch_1_13_timeout_mixed.log");
  const auto timeouts = EventsOf(old, EventKind::watchdog_timeout);
  ASSERT_EQ(timeouts.size(), 2u);  // the words of what() repeat the first
  EXPECT_EQ(timeouts[0]->As<WatchdogTimeout>().elements, 200);
  EXPECT_EQ(timeouts[1]->As<WatchdogTimeout>().elements, -1);
  EXPECT_EQ(RankOf(old, *timeouts[0]), Rank{3});
  EXPECT_EQ(old.speakers[timeouts[0]->speaker].rank_certainty, Certainty::assumed);
  EXPECT_EQ(timeouts[0]->wall_ns, kNoTime);

  const Fragment v23 = ReadSample("torch_2_3_timeout_mixed.log");
  const Event timeout = OneEvent(v23, EventKind::watchdog_timeout);
  EXPECT_EQ(timeout.group_name, "0");
  EXPECT_EQ(OneEvent(v23, EventKind::watchdog_status).As<WorkCounters>().last_enqueued, 7489);
  const auto signals = EventsOf(v23, EventKind::dump_signal);
  ASSERT_EQ(signals.size(), 2u);
  EXPECT_FALSE(signals[0]->peer.known());
  EXPECT_EQ(signals[1]->peer, Rank{2});
  EXPECT_EQ(OneEvent(v23, EventKind::heartbeat_stuck).As<HeartbeatStuck>().seconds, 600);

  const Fragment v24 = ReadSample("torch_2_4_timeout_mixed.log");
  const Event sharded = OneEvent(v24, EventKind::watchdog_timeout);
  EXPECT_EQ(sharded.op, OpKind::reduce_scatter);
  EXPECT_EQ(sharded.group_description, "TENSOR_MODEL_PARALLEL_GROUP");
  EXPECT_EQ(RankOf(v24, sharded), Rank{5});
  EXPECT_EQ(sharded.group_rank, GroupRank{1});
  EXPECT_EQ(EventsOf(v24, EventKind::dump_signal)[0]->peer, Rank{5});
  EXPECT_EQ(EventsOf(v24, EventKind::gil_blocked).size(), 1u);
}

// Two processes wait in one call: the file is not one process's, whatever its name says.
TEST(TorchLogImport, WhatLinesTellOfRanksOutweighsTheNameOfTheFile) {
  const auto timeout = [](int rank, int number) {
    return "[E ProcessGroupNCCL.cpp:737] [Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + std::to_string(number) +
           ", OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802212 milliseconds before timing out.\n";
  };
  const auto ranks = [](const Fragment& fragment) {
    std::set<int32_t> known;
    for (const Speaker& speaker : fragment.speakers)
      if (speaker.rank.known()) known.insert(speaker.rank.value);
    return known;
  };
  for (const char* name : {"1.txt", "log1.txt", "rank1.txt", "err-3.txt"})
    EXPECT_EQ(ranks(ReadText(timeout(1, 46) + timeout(3, 46), name)), (std::set<int32_t>{1, 3})) << name;
  EXPECT_EQ(ranks(ReadText(timeout(1, 46) + timeout(1, 47), "rank1.txt")), std::set<int32_t>{1});
  EXPECT_EQ(ranks(ReadText(timeout(0, 46) + timeout(3, 9), "rank7.txt")), (std::set<int32_t>{7}))
      << "one process in two of its groups";
}

TEST(TorchLogImport, TheBarOfWorkIsTheOneWhosMarkStandsBeforeIt) {
  const std::string bar = "Map:  25%|##   | 100/400 [04:41<39:58, 16.88 examples/s]";
  const auto timeout = [](int rank, int label) {
    return "[default" + std::to_string(label) + "]:[E ProcessGroupNCCL.cpp:475] [Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, Timeout(ms)=600000) "
           "ran for 600888 milliseconds before timing out.\n";
  };
  const auto owners = [](const std::string& text) {
    return EventsOf(ReadText(text, "job.out"), EventKind::watchdog_timeout).at(0)->ranks;
  };
  EXPECT_EQ(owners("[default0]:" + bar + timeout(2, 2)), std::vector<Rank>{Rank{0}});
  EXPECT_TRUE(owners("[default0]:" + bar + timeout(10, 2)).empty()) << "a later node: the label is no rank of the job";
  EXPECT_TRUE(owners(bar + timeout(2, 2)).empty());
}

TEST(TorchLogImport, ReadsGlogBuilds) {
  const Fragment fragment = ReadSample("torch_glog_build_rank1.log");
  EXPECT_EQ(fragment.speakers[0].world_size, 8);
  EXPECT_EQ(OneEvent(fragment, EventKind::process_started).As<ProcessStart>().world_size, 8);
  const Event status = OneEvent(fragment, EventKind::watchdog_status);  // only the newest of the periodic ones
  EXPECT_EQ(status.As<WorkCounters>().last_enqueued, 9);
  EXPECT_EQ(status.seq, -1);
  EXPECT_EQ(OneEvent(fragment, EventKind::watchdog_timeout).seq, 5);
}

TEST(TorchLogImport, AddsTheUsersFrameToATimeout) {
  const std::string text =
      "[rank0]:[E1115 00:15:59.753636191 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation "
      "timeout: "
      "WorkNCCL(SeqNum=24, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=20000) ran for 20028 milliseconds "
      "before timing out.\n"
      "[rank0]:[E1115 00:15:59.756156750 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: \n"
      "#0 all_reduce from /venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:3068\n"
      "#1 train_step from /srv/train/train.py:69\n"
      "#2 <module> from /srv/train/train.py:224\n";
  const Fragment fragment = ReadText(text, "stdout_rank0.log");
  const Event timeout = OneEvent(fragment, EventKind::watchdog_timeout);
  EXPECT_EQ(timeout.As<WatchdogTimeout>().place.function, "train_step");
  EXPECT_EQ(timeout.As<WatchdogTimeout>().place.line, 69u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(TorchLogImport, ReadsUnusedParameters) {
  const Fragment fragment = ReadSample("torch_2_11_ddp_unused_rank0.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::ddp_unused_parameters).As<DdpParameters>().names, "8 9");
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(exception.As<Raised>().type, "RuntimeError");
  EXPECT_EQ(exception.As<Raised>().place.file, "/srv/train/train.py");
  EXPECT_EQ(exception.As<Raised>().place.line, 191u);
  EXPECT_NE(exception.text.find("did not receive grad"), std::string::npos);
  EXPECT_EQ(exception.source.line, OneEvent(fragment, EventKind::ddp_unused_parameters).source.line);
  // The dump at the end of a program speaks of a timeout that never was.
  EXPECT_TRUE(EventsOf(fragment, EventKind::watchdog_timeout).empty());
  EXPECT_EQ(OneEvent(fragment, EventKind::dump_signal).peer, Rank{0});
}

TEST(TorchLogImport, PrefersNamesOfUnusedParameters) {
  const Fragment fragment = ReadText(
      "[rank2]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n"
      "[rank2]: Parameters which did not receive grad for rank 2: head.weight, head.bias\n"
      "[rank2]: Parameter indices which did not receive grad for rank 2: 4 5\n",
      "x.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::ddp_unused_parameters).As<DdpParameters>().names, "head.weight, head.bias");
}

TEST(TorchLogImport, ReadsAParameterMarkedTwice) {
  const Fragment fragment = ReadText(
      "[rank1]: RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the "
      "following reasons: 1)\n"
      "[rank1]: Parameter at index 695 with name layers.35.down_proj.weight has been marked as ready twice. This means "
      "that\n",
      "x.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::ddp_marked_twice).As<DdpParameters>().names, "layers.35.down_proj.weight");
}

TEST(TorchLogImport, ReadsAMismatchInDetail) {
  const Fragment fragment = ReadSample("torch_2_11_mismatch_rank1.log");
  const Event report = OneEvent(fragment, EventKind::mismatch_report);
  EXPECT_EQ(report.As<MismatchReport>().aspect, "shape");
  EXPECT_EQ(report.seq, 17);
  EXPECT_EQ(report.op, OpKind::all_reduce);
  EXPECT_EQ(report.rank, Rank{1});
  EXPECT_EQ(report.peer, Rank{0});
  EXPECT_EQ(report.ranks, (std::vector<Rank>{Rank{1}, Rank{0}}));
  EXPECT_EQ(report.As<MismatchReport>().elements, 8388608);
  EXPECT_EQ(report.As<MismatchReport>().elements, 8388608);
  EXPECT_EQ(report.As<MismatchReport>().expected, 262144);
  EXPECT_EQ(report.text, "shape: [8388608] vs [262144]");
}

TEST(TorchLogImport, BlamesNoShapeThatWasNotPrinted) {
  const Event report = OneEvent(ReadSample("torch_2_0_mismatch_rank1.log"), EventKind::mismatch_report);
  EXPECT_EQ(report.As<MismatchReport>().aspect, "op");
  EXPECT_EQ(report.As<MismatchReport>().expected, -1);
  EXPECT_EQ(report.text, "op: ALLGATHER vs _ALLGATHER_BASE");
}

std::string Mismatch(const std::string& first, const std::string& second) {
  return "[rank5]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
         "CollectiveFingerPrint(" +
         first + "), but Rank 0 is running collective: CollectiveFingerPrint(" + second + ").\n";
}

TEST(TorchLogImport, NamesTheAspectThatDiffers) {
  const std::string base =
      "SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float, "
      "TensorDeviceTypes=TensorOptions(device=cuda)";
  const auto aspect = [&](const std::string& other) {
    return OneEvent(ReadText(Mismatch(base, other), "x.log"), EventKind::mismatch_report).As<MismatchReport>().aspect;
  };
  EXPECT_EQ(aspect("SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Double, "
                   "TensorDeviceTypes=TensorOptions(device=cuda)"),
            "dtype");
  EXPECT_EQ(aspect("SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float, "
                   "TensorDeviceTypes=TensorOptions(device=cpu)"),
            "device");
  EXPECT_EQ(aspect("SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float, "
                   "TensorDeviceTypes=TensorOptions(device=cuda)"),
            "seq");
  EXPECT_EQ(aspect("SequenceNumber=4, OpType=REDUCE, TensorShape=[5], TensorDtypes=Float, "
                   "TensorDeviceTypes=TensorOptions(device=cuda)"),
            "op");
}

TEST(TorchLogImport, KeepsGroupRanksOfAMismatchApartFromGlobalOnes) {
  const std::string side = "SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float";
  const Event report =
      OneEvent(ReadText(Mismatch(side, "SequenceNumber=3OpType=BARRIER"), "x.log"), EventKind::mismatch_report);
  EXPECT_EQ(report.group_rank, GroupRank{1});
  EXPECT_EQ(report.peer_group_rank, GroupRank{0});
  EXPECT_FALSE(report.peer.known());  // rank 5 speaks: "Rank 1" is its rank in a smaller group
  EXPECT_TRUE(report.ranks.empty());
}

TEST(TorchLogImport, ReadsARemoteErrorWithItsLastError) {
  const Fragment fragment = ReadSample("torch_2_11_remote_error_rank2.log");
  const Event error = OneEvent(fragment, EventKind::nccl_error);
  EXPECT_EQ(error.As<NcclError>().code, 6);
  EXPECT_EQ(error.As<NcclError>().result, "ncclRemoteError");
  EXPECT_EQ(error.seq, 24);
  EXPECT_EQ(error.op, OpKind::all_reduce);
  EXPECT_EQ(error.group_description, "default_pg");
  EXPECT_NE(error.text.find("Last error: socketProgress: Connection closed by remote peer"), std::string::npos);
  EXPECT_EQ(EventsOf(fragment, EventKind::connection_lost).size(), 1u);
  EXPECT_TRUE(EventsOf(fragment, EventKind::watchdog_timeout).empty());
}

TEST(TorchLogImport, ReadsNcclErrorsByWordsAlone) {
  const Event error = OneEvent(
      ReadText("RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269, unhandled cuda "
               "error, NCCL version 2.14.3\n",
               "x.log"),
      EventKind::nccl_error);
  EXPECT_EQ(error.As<NcclError>().code, 1);
  EXPECT_EQ(error.As<NcclError>().result, "ncclUnhandledCudaError");
}

TEST(TorchLogImport, TakesADatedLineForNoLastError) {
  const Fragment fragment = ReadText(
      "RuntimeError: NCCL error in: a.cpp:1, unhandled system error, NCCL version 2.14.3\nLast "
      "error:\n[2026-11-15T00:28:55] step 7\n",
      "rank0.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::progress).As<Progress>().step, 7);
  EXPECT_EQ(OneEvent(fragment, EventKind::nccl_error).text.find("step"), std::string::npos);
}

TEST(TorchLogImport, LeavesNcclsOwnLinesToItsReader) {
  const Fragment fragment = ReadSample("nccl_and_torch_rank0.log");
  EXPECT_EQ(EventsOf(fragment, EventKind::connection_lost).size(), 1u);  // PyTorch's, not NCCL's
  EXPECT_EQ(OneEvent(fragment, EventKind::connection_lost).source.line, 9u);
  EXPECT_EQ(OneEvent(fragment, EventKind::connection_lost).As<LostPeer>().address, "node7<41234>");
  EXPECT_GT(fragment.bytes.ignored, 150u);
}

TEST(TorchLogImport, CountsARepeatedComplaintOnce) {
  const Fragment fragment = ReadSample("torch_2_11_store_lost_rank1.log");
  const Event lost = OneEvent(fragment, EventKind::store_lost);
  EXPECT_EQ(lost.As<LostPeer>().address, "[localhost]:29621");
  EXPECT_NE(lost.text.find(" times)"), std::string::npos);
  EXPECT_EQ(EventsOf(fragment, EventKind::connection_lost).size(), 1u);
}

TEST(TorchLogImport, ReadsAnAbort) {
  const Fragment fragment = ReadSample("torch_2_11_abort_rank0.log");
  const Event abort = OneEvent(fragment, EventKind::abort_signal);
  EXPECT_EQ(abort.As<Abort>().reason, "c10::DistBackendError");
  EXPECT_EQ(RankOf(fragment, abort), Rank{0});
}

TEST(TorchLogImport, TheLowerRankOfAPairCreatesItsCommunicator) {
  const auto wait = [](std::string_view from, std::string_view key, std::string_view group) {
    const std::string name(key);
    return OneEvent(
        ReadText("[rank5]: torch.distributed.DistBackendError: [5] is setting up NCCL communicator and "
                 "retrieving ncclUniqueId from [" +
                     std::string(from) + "] via c10d key-value store by key '" + name + "', but store->get('" + name +
                     "') got error: wait timeout after 9000ms, keys: /" + std::string(group) + "//cuda//" + name + "\n",
                 "x.log"),
        EventKind::store_wait_timeout);
  };
  EXPECT_TRUE(wait("0", "2:5", "default_pg/0").As<StoreWait>().pair);
  EXPECT_EQ(wait("0", "2:5", "default_pg/0").peer, Rank{2});
  EXPECT_FALSE(wait("0", "0", "default_pg/0").As<StoreWait>().pair);
  EXPECT_EQ(wait("0", "0", "default_pg/0").peer, Rank{0});
  EXPECT_FALSE(wait("0", "0", "default_pg/0//7").peer.known());  // the first rank of that group, whichever it is
}

TEST(TorchLogImport, AProcessThatComesToItsEndHasOnlyBeenLeftByTheStore) {
  const std::string lost =
      "[rank3]:[W1116 18:46:52.705353815 ProcessGroupNCCL.cpp:1826] [PG ID 0 PG GUID 0(default_pg) Rank 3] Failed to "
      "check the \"should dump\" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: "
      "Broken pipe\n";
  const std::string left =
      "[rank3]:[W1116 18:46:56.710852944 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not "
      "called before program exit, which can leak resources.\n";
  EXPECT_FALSE(OneEvent(ReadText(lost, "x.log"), EventKind::store_lost).As<LostPeer>().ends_itself);
  EXPECT_TRUE(OneEvent(ReadText(lost + left, "x.log"), EventKind::store_lost).As<LostPeer>().ends_itself);
}

TEST(TorchLogImport, ReadsFailuresOfTheRendezvous) {
  const Event missing = OneEvent(ReadSample("torch_2_11_init_missing_rank0.log"), EventKind::rendezvous_incomplete);
  EXPECT_EQ(missing.As<Rendezvous>().joined, 3);
  EXPECT_EQ(missing.As<Rendezvous>().expected, 4);
  const Fragment waiting = ReadSample("torch_2_11_init_missing_rank1.log");
  const Event wait = OneEvent(waiting, EventKind::store_wait_timeout);
  EXPECT_EQ(wait.As<StoreWait>().keys, "/default_pg/0//cuda//0");
  EXPECT_EQ(wait.As<StoreWait>().timeout_ms, 20000);
  EXPECT_EQ(wait.group_rank, GroupRank{1});
  EXPECT_EQ(wait.peer_group_rank, GroupRank{0});
  // No "[rank1]:" yet, but its line about the default group says the rank.
  EXPECT_EQ(waiting.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_EQ(OneEvent(waiting, EventKind::exception).As<Raised>().place.function, "init");

  const Event barrier = OneEvent(ReadText("RuntimeError: Timed out initializing process group in store based barrier "
                                          "on rank: 7, for key: store_based_barrier_key:32 "
                                          "(world_size=8, worker_count=4, timeout=0:00:30)\n",
                                          "x.log"),
                                 EventKind::rendezvous_incomplete);
  EXPECT_EQ(barrier.rank, Rank{7});
  EXPECT_EQ(barrier.As<Rendezvous>().joined, 4);
  EXPECT_EQ(barrier.As<Rendezvous>().expected, 8);

  const Event unreachable = OneEvent(ReadSample("pods.log"), EventKind::store_unreachable);
  EXPECT_EQ(unreachable.As<StoreUnreachable>().address, "172.18.21.4:37907");
  EXPECT_EQ(unreachable.As<StoreUnreachable>().timeout_ms, 600000);
}

TEST(TorchLogImport, ForgetsABarrierThatWasPassed) {
  const std::string waits =
      "Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 "
      "(world_size=2, "
      "worker_count=1, timeout=0:30:00)\n";
  EXPECT_EQ(EventsOf(ReadText(waits + waits, "rank0.log"), EventKind::rendezvous_incomplete).size(), 1u);
  EXPECT_TRUE(EventsOf(ReadText(waits + "step 1\n", "rank0.log"), EventKind::rendezvous_incomplete).empty());
}

TEST(TorchLogImport, ReadsWrongInterface) {
  const Event error = OneEvent(ReadSample("torch_2_11_init_ifname_rank1.log"), EventKind::nccl_error);
  EXPECT_EQ(error.As<NcclError>().result, "ncclInvalidUsage");
  EXPECT_NE(error.text.find("no socket interface found"), std::string::npos);
}

TEST(TorchLogImport, ReadsCudaErrors) {
  const Fragment ray = ReadSample("ray_workers.log");
  EXPECT_EQ(OneEvent(ray, EventKind::cuda_error).As<CudaError>().words, "an illegal memory access was encountered");
  EXPECT_EQ(ray.speakers[0].host, "10.0.0.7");
  EXPECT_EQ(ray.speakers[0].pid, 7046);
  const Fragment summary = ReadSample("torchrun_summary.log");
  EXPECT_EQ(OneEvent(summary, EventKind::cuda_error).As<CudaError>().words, "out of memory");
  EXPECT_EQ(RankOf(summary, OneEvent(summary, EventKind::cuda_error)), Rank{9});
  // Nobody's CUDA memory:
  EXPECT_TRUE(EventsOf(ReadText("the cache is out of memory, evicting\n", "rank0.log"), EventKind::cuda_error).empty());
}

TEST(TorchLogImport, ReadsTheDesyncReport) {
  const Fragment fragment = ReadSample("torch_desync_report.log");
  const auto reports = EventsOf(fragment, EventKind::desync_report);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0]->seq, 3);
  EXPECT_EQ(reports[0]->op, OpKind::all_reduce);
  EXPECT_EQ(reports[0]->ranks, std::vector<Rank>{Rank{0}});  // rank 2 joined and waits
  EXPECT_EQ(RankOf(fragment, *reports[0]), Rank{1});
  EXPECT_EQ(reports[1]->ranks, (std::vector<Rank>{Rank{4}, Rank{5}}));
}

// The ranks that wait for rank 0 say the same sentence whatever happened; gloo's words below it tell what did.
TEST(TorchLogImport, GloosWordsTellWhyAMonitoredBarrierFailed) {
  const std::string sentence =
      "[rank2]: RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for "
      "send/recv from rank 0. Please check rank 0 logs for faulty rank.\n[rank2]:  Original exception: \n[rank2]: "
      "[../third_party/gloo/gloo/transport/tcp/";
  const Fragment late =
      ReadText(sentence + "unbound_buffer.cc:81] Timed out waiting 900000ms for recv operation to complete\n", "x.log");
  const Event failed = OneEvent(late, EventKind::monitored_barrier_failed);
  EXPECT_FALSE(failed.peer.known()) << "any rank may have been late";
  EXPECT_EQ(failed.As<BarrierFailure>().timeout_ms, 900'000);
  const Fragment gone = ReadText(sentence + "pair.cc:534] Connection closed by peer [10.0.0.2]:35230\n", "x.log");
  EXPECT_EQ(OneEvent(gone, EventKind::monitored_barrier_failed).peer.value, 0);
  EXPECT_EQ(OneEvent(gone, EventKind::connection_lost).peer.value, 0);
}

TEST(TorchLogImport, ReadsWhatEndsAWorkerOfRayInItsCppPart) {
  const auto line = [](std::string_view thrown) {
    return "(W pid=7) [2026-03-04 19:28:30,014 E 7 7] logging.cc:113: Unhandled exception: " + std::string(thrown) +
           " [repeated 2x across cluster]\n";
  };
  const Fragment threads = ReadText(line("N5boost10wrapexceptINS_6system12system_errorEEE. what(): thread: Resource "
                                         "temporarily unavailable [system:11]"),
                                    "x.log");
  const Event raised = OneEvent(threads, EventKind::exception);
  EXPECT_EQ(raised.As<Raised>().type, "system_error");
  EXPECT_EQ(OneEvent(ReadText(line("St13runtime_error. what(): no such shard"), "x.log"), EventKind::exception)
                .As<Raised>()
                .type,
            "std::runtime_error");
}

TEST(TorchLogImport, ReadsTheMonitoredBarrier) {
  const Event failed = OneEvent(ReadSample("torch_monitored_barrier_rank0.log"), EventKind::monitored_barrier_failed);
  EXPECT_EQ(failed.ranks, (std::vector<Rank>{Rank{1}, Rank{3}}));
  EXPECT_EQ(failed.As<BarrierFailure>().timeout_ms, 30000);
  const Event one =
      OneEvent(ReadText("RuntimeError: [Rank 0]: Rank 3 failed to pass monitoredBarrier in 30000 ms\n", "x.log"),
               EventKind::monitored_barrier_failed);
  EXPECT_EQ(one.ranks, std::vector<Rank>{Rank{3}});
  const Event errors = OneEvent(
      ReadText("RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for "
               "send/recv from rank 0. Please check rank 0 logs for faulty rank.\n",
               "x.log"),
      EventKind::monitored_barrier_failed);
  EXPECT_EQ(errors.peer, Rank{0});
  EXPECT_TRUE(errors.ranks.empty());
}

TEST(TorchLogImport, ReadsALostConnectionOfGloo) {
  EXPECT_EQ(OneEvent(ReadSample("pods.log"), EventKind::connection_lost).As<LostPeer>().address, "[10.1.3.122]:42916");
  // A web client's broken pipe is none of ours.
  EXPECT_TRUE(
      EventsOf(ReadText("requests: Connection reset by peer, retrying\n", "rank0.log"), EventKind::connection_lost)
          .empty());
}

TEST(TorchLogImport, ReadsAHealthyJob) {
  const Fragment fragment = ReadSample("torch_2_11_clean_rank0.log");
  EXPECT_EQ(EventsOf(fragment, EventKind::process_finished).size(), 1u);
  EXPECT_EQ(EventsOf(fragment, EventKind::progress)[1]->As<Progress>().step, 25);
  EXPECT_EQ(fragment.events.size(), 4u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(TorchLogImport, TakesFinishedForTheEndOnlyAtTheEnd) {
  EXPECT_TRUE(EventsOf(ReadText("finished\nstep 1\n", "rank0.log"), EventKind::process_finished).empty());
  EXPECT_TRUE(EventsOf(ReadText("finished\nnow the second phase\n", "rank0.log"), EventKind::process_finished).empty());
  EXPECT_TRUE(
      EventsOf(
          ReadText("finished\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 1, in f\n"
                   "[rank0]: ValueError: x\n",
                   "rank0.log"),
          EventKind::process_finished)
          .empty());
  EXPECT_EQ(EventsOf(ReadText("Training complete\nwrote 3 files\n", "rank0.log"), EventKind::process_finished).size(),
            1u);
}

TEST(TorchLogImport, ReadsColouredLines) {
  const Fragment fragment = ReadText(
      "\x1b[32m[rank0]: \x1b[0mTraceback (most recent call last):\n[rank0]:   File \"a.py\", line 1, in f\n"
      "[rank0]: \x1b[1;31mValueError\x1b[0m: x\n",
      "job.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).As<Raised>().type, "ValueError");
}

TEST(TorchLogImport, AccountsForEveryByteOfEverySample) {
  for (const char* name :
       {"torchrun_summary.log", "slurm-88123.out", "progress_bar.out", "nccl_and_torch_rank0.log", "pods.log"}) {
    const std::string text = SampleText(name);
    ReadText(text, name);
    ReadText(text + "no newline at the end", name);
    ReadText("\r\n\r\n" + text + std::string("\0\xff\n", 3), name);
  }
}

TEST(TorchLogImport, AKeyOfTheStoreNamesWhoShouldHaveWrittenIt) {
  const auto missing = [](const std::string& message) {
    const Fragment fragment = ReadText("[rank0]: RuntimeError: " + message + "\n", "o");
    const auto events = EventsOf(fragment, EventKind::rendezvous_incomplete);
    return events.empty() ? std::vector<Rank>{} : events.front()->ranks;
  };
  const std::vector<Rank> three = {Rank{3}}, nobody;
  EXPECT_EQ(missing("Timeout waiting for key: default_pg/0//cpu//0/3 after 30000 ms"), three);
  EXPECT_EQ(missing("wait timeout after 300000ms, keys: /worker/3/ready"), three);
  EXPECT_EQ(missing("wait timeout after 300000ms, keys: /init/rank_3"), three);
  // Another group's numbers are not ranks; a list holds keys that are there, too.
  EXPECT_EQ(missing("wait timeout after 300000ms, keys: /default_pg/0//5//cpu//0/3"), nobody);
  EXPECT_EQ(missing("wait timeout after 300000ms, keys: /worker/join"), nobody);
  EXPECT_EQ(missing("wait timeout after 300000ms, keys: /rank_1, /rank_3"), nobody);
  EXPECT_EQ(missing("wait timeout after 300000ms, keys: /epoch/3"), nobody);
}

TEST(TorchLogImport, AStoreWaitTellsWhoseKeyItIs) {
  const auto wait = [](const std::string& key) {
    return OneEvent(
               ReadText("[rank0]: torch.distributed.DistStoreError: wait timeout after 9000ms, keys: " + key + "\n",
                        "o"),
               EventKind::store_wait_timeout)
        .As<StoreWait>();
  };
  EXPECT_EQ(wait("/default_pg/0//tokenizer").own_key, "tokenizer");
  EXPECT_FALSE(wait("/default_pg/0//tokenizer").of_group);
  EXPECT_TRUE(wait("/default_pg/0//1//cpu//0/1").of_group);
  EXPECT_EQ(wait("/default_pg/0//1//cpu//0/1").own_key, "");
  EXPECT_FALSE(wait("/default_pg/0//cpu//0/1").of_group) << "the job's first group";
  EXPECT_EQ(wait("/default_pg/0//store_based_barrier_key:1").own_key, "");
}

}  // namespace
}  // namespace tacet
