// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_import.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

TEST(TorchLogImport, ReadsATimeoutInASubGroup) {
  const Fragment fragment = ReadSample("torch_2_11_timeout_rank3.log");
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_EQ(fragment.speakers[0].pid, 2345);
  const Event timeout = OneEvent(fragment, EventKind::watchdog_timeout);
  EXPECT_EQ(timeout.seq, 13);
  EXPECT_EQ(timeout.op, OpKind::all_reduce);
  EXPECT_EQ(timeout.value, 20000);
  EXPECT_EQ(timeout.value2, 20020);
  EXPECT_EQ(timeout.count, 1048576);
  // The group is told by the next line only; "[Rank 1]" is the rank in it.
  EXPECT_EQ(timeout.group_name, "1187ab66aa1922bc98611a123d3eaaa45aa6040e");
  EXPECT_EQ(timeout.group_rank, GroupRank{1});
  const Event status = OneEvent(fragment, EventKind::watchdog_status);
  EXPECT_EQ(status.seq, 13);
  EXPECT_EQ(status.value, 13);
  EXPECT_EQ(status.value2, 12);
  const Event signal = OneEvent(fragment, EventKind::dump_signal);
  EXPECT_EQ(signal.peer, Rank{1});
  EXPECT_EQ(signal.value, -1);
  // Whole seconds only: the written fraction is of another clock.
  EXPECT_EQ(timeout.wall_ns, 1794702508LL * 1'000'000'000);
  const auto steps = EventsOf(fragment, EventKind::progress);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1]->value, 10);
  EXPECT_EQ(steps[1]->count, 3);
}

TEST(TorchLogImport, ReadsTimeoutsOfOlderVersions) {
  const Fragment old = ReadSample("torch_1_13_timeout_mixed.log");
  const auto timeouts = EventsOf(old, EventKind::watchdog_timeout);
  ASSERT_EQ(timeouts.size(), 2u);  // the words of what() repeat the first
  EXPECT_EQ(timeouts[0]->count, 200);
  EXPECT_EQ(timeouts[1]->count, -1);
  EXPECT_EQ(RankOf(old, *timeouts[0]), Rank{3});
  EXPECT_EQ(old.speakers[timeouts[0]->speaker].rank_certainty, Certainty::assumed);
  EXPECT_EQ(timeouts[0]->wall_ns, kNoTime);

  const Fragment v23 = ReadSample("torch_2_3_timeout_mixed.log");
  const Event timeout = OneEvent(v23, EventKind::watchdog_timeout);
  EXPECT_EQ(timeout.group_name, "0");
  EXPECT_EQ(OneEvent(v23, EventKind::watchdog_status).value, 7489);
  const auto signals = EventsOf(v23, EventKind::dump_signal);
  ASSERT_EQ(signals.size(), 2u);
  EXPECT_FALSE(signals[0]->peer.known());
  EXPECT_EQ(signals[1]->peer, Rank{2});
  EXPECT_EQ(OneEvent(v23, EventKind::heartbeat_stuck).value, 600);

  const Fragment v24 = ReadSample("torch_2_4_timeout_mixed.log");
  const Event sharded = OneEvent(v24, EventKind::watchdog_timeout);
  EXPECT_EQ(sharded.op, OpKind::reduce_scatter);
  EXPECT_EQ(sharded.group_description, "TENSOR_MODEL_PARALLEL_GROUP");
  EXPECT_EQ(RankOf(v24, sharded), Rank{5});
  EXPECT_EQ(sharded.group_rank, GroupRank{1});
  EXPECT_EQ(EventsOf(v24, EventKind::dump_signal)[0]->peer, Rank{5});
  EXPECT_EQ(EventsOf(v24, EventKind::gil_blocked).size(), 1u);
}

TEST(TorchLogImport, ReadsGlogBuilds) {
  const Fragment fragment = ReadSample("torch_glog_build_rank1.log");
  EXPECT_EQ(fragment.speakers[0].world_size, 8);
  EXPECT_EQ(OneEvent(fragment, EventKind::process_started).value, 8);
  const Event status = OneEvent(fragment, EventKind::watchdog_status);  // only the newest of the periodic ones
  EXPECT_EQ(status.value, 9);
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
  EXPECT_EQ(timeout.function, "train_step");
  EXPECT_EQ(timeout.code_line, 69u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(TorchLogImport, ReadsUnusedParameters) {
  const Fragment fragment = ReadSample("torch_2_11_ddp_unused_rank0.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::ddp_unused_parameters).subject, "8 9");
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(exception.subject, "RuntimeError");
  EXPECT_EQ(exception.file, "/srv/train/train.py");
  EXPECT_EQ(exception.code_line, 191u);
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
  EXPECT_EQ(OneEvent(fragment, EventKind::ddp_unused_parameters).subject, "head.weight, head.bias");
}

TEST(TorchLogImport, ReadsAParameterMarkedTwice) {
  const Fragment fragment = ReadText(
      "[rank1]: RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the "
      "following reasons: 1)\n"
      "[rank1]: Parameter at index 695 with name layers.35.down_proj.weight has been marked as ready twice. This means "
      "that\n",
      "x.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::ddp_marked_twice).subject, "layers.35.down_proj.weight");
}

TEST(TorchLogImport, ReadsAMismatchInDetail) {
  const Fragment fragment = ReadSample("torch_2_11_mismatch_rank1.log");
  const Event report = OneEvent(fragment, EventKind::mismatch_report);
  EXPECT_EQ(report.subject, "shape");
  EXPECT_EQ(report.seq, 17);
  EXPECT_EQ(report.op, OpKind::all_reduce);
  EXPECT_EQ(report.rank, Rank{1});
  EXPECT_EQ(report.peer, Rank{0});
  EXPECT_EQ(report.ranks, (std::vector<Rank>{Rank{1}, Rank{0}}));
  EXPECT_EQ(report.count, 8388608);
  EXPECT_EQ(report.value, 8388608);
  EXPECT_EQ(report.value2, 262144);
  EXPECT_EQ(report.text, "shape: [8388608] vs [262144]");
}

TEST(TorchLogImport, BlamesNoShapeThatWasNotPrinted) {
  const Event report = OneEvent(ReadSample("torch_2_0_mismatch_rank1.log"), EventKind::mismatch_report);
  EXPECT_EQ(report.subject, "op");
  EXPECT_EQ(report.value2, -1);
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
    return OneEvent(ReadText(Mismatch(base, other), "x.log"), EventKind::mismatch_report).subject;
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
  EXPECT_EQ(error.value, 6);
  EXPECT_EQ(error.subject, "ncclRemoteError");
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
  EXPECT_EQ(error.value, 1);
  EXPECT_EQ(error.subject, "ncclUnhandledCudaError");
}

TEST(TorchLogImport, LeavesNcclsOwnLinesToItsReader) {
  const Fragment fragment = ReadSample("nccl_and_torch_rank0.log");
  EXPECT_EQ(EventsOf(fragment, EventKind::connection_lost).size(), 1u);  // PyTorch's, not NCCL's
  EXPECT_EQ(OneEvent(fragment, EventKind::connection_lost).source.line, 9u);
  EXPECT_EQ(OneEvent(fragment, EventKind::connection_lost).subject, "node7<41234>");
  EXPECT_GT(fragment.bytes.ignored, 150u);
}

TEST(TorchLogImport, CountsARepeatedComplaintOnce) {
  const Fragment fragment = ReadSample("torch_2_11_store_lost_rank1.log");
  const Event lost = OneEvent(fragment, EventKind::store_lost);
  EXPECT_EQ(lost.subject, "[localhost]:29621");
  EXPECT_NE(lost.text.find(" times)"), std::string::npos);
  EXPECT_EQ(EventsOf(fragment, EventKind::connection_lost).size(), 1u);
}

TEST(TorchLogImport, ReadsAnAbort) {
  const Fragment fragment = ReadSample("torch_2_11_abort_rank0.log");
  const Event abort = OneEvent(fragment, EventKind::abort_signal);
  EXPECT_EQ(abort.subject, "c10::DistBackendError");
  EXPECT_EQ(RankOf(fragment, abort), Rank{0});
}

TEST(TorchLogImport, ReadsFailuresOfTheRendezvous) {
  const Event missing = OneEvent(ReadSample("torch_2_11_init_missing_rank0.log"), EventKind::rendezvous_incomplete);
  EXPECT_EQ(missing.value, 3);
  EXPECT_EQ(missing.value2, 4);
  const Fragment waiting = ReadSample("torch_2_11_init_missing_rank1.log");
  const Event wait = OneEvent(waiting, EventKind::store_wait_timeout);
  EXPECT_EQ(wait.subject, "/default_pg/0//cuda//0");
  EXPECT_EQ(wait.value, 20000);
  EXPECT_EQ(wait.group_rank, GroupRank{1});
  EXPECT_EQ(wait.peer_group_rank, GroupRank{0});
  // No "[rank1]:" yet, but its line about the default group says the rank.
  EXPECT_EQ(waiting.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_EQ(OneEvent(waiting, EventKind::exception).function, "init");

  const Event barrier = OneEvent(ReadText("RuntimeError: Timed out initializing process group in store based barrier "
                                          "on rank: 7, for key: store_based_barrier_key:32 "
                                          "(world_size=8, worker_count=4, timeout=0:00:30)\n",
                                          "x.log"),
                                 EventKind::rendezvous_incomplete);
  EXPECT_EQ(barrier.rank, Rank{7});
  EXPECT_EQ(barrier.value, 4);
  EXPECT_EQ(barrier.value2, 8);

  const Event unreachable = OneEvent(ReadSample("pods.log"), EventKind::store_unreachable);
  EXPECT_EQ(unreachable.subject, "172.18.21.4:37907");
  EXPECT_EQ(unreachable.value, 600000);
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
  EXPECT_EQ(error.subject, "ncclInvalidUsage");
  EXPECT_NE(error.text.find("no socket interface found"), std::string::npos);
}

TEST(TorchLogImport, FindsTheUsersOwnFrame) {
  const Event exception = OneEvent(ReadSample("torch_2_11_exception_rank2.log"), EventKind::exception);
  EXPECT_EQ(exception.function, "gpt_steps");
  EXPECT_EQ(exception.code_line, 246u);
}

TEST(TorchLogImport, KeepsTheRootOfAChain) {
  const Event exception = OneEvent(ReadSample("chained_rank4.log"), EventKind::exception);
  EXPECT_EQ(exception.subject, "__main__.DataError");
  EXPECT_EQ(exception.code_line, 19u);
  EXPECT_NE(exception.text.find("while handling KeyError: 'tokens'"), std::string::npos);
}

TEST(TorchLogImport, KeepsTheRootWhenTheChainIsCut) {
  const Fragment fragment = ReadText(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nKeyError: 'a'\n\n"
      "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  "
      "File \"a.py\", line 2",
      "rank0.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).subject, "KeyError");
}

TEST(TorchLogImport, DropsATracebackThatTheJobSurvived) {
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nValueError: retry\n";
  const Fragment survived = ReadText("step 1\n" + traceback + "step 2\nstep 3\n", "rank0.log");
  EXPECT_TRUE(EventsOf(survived, EventKind::exception).empty());
  ASSERT_EQ(survived.diagnostics.size(), 1u);
  EXPECT_EQ(survived.diagnostics[0].code, "exception-survived");
  // A summary that names the last step again is no progress.
  const Fragment ended = ReadText("step 1\nstep 2\n" + traceback + "\nlast step: 2\n", "rank0.log");
  EXPECT_EQ(EventsOf(ended, EventKind::exception).size(), 1u);
}

TEST(TorchLogImport, DisregardsExceptionsThatPythonIgnores) {
  const Fragment fragment = ReadText(
      "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n    x\nAttributeError: gone\n",
      "rank0.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::exception).empty());
}

TEST(TorchLogImport, ReadsATracebackBehindALoggersPrefix) {
  const Fragment fragment = ReadText(
      "ERROR 08-22 13:50:25 worker.py:148] Traceback (most recent call last):\n"
      "ERROR 08-22 13:50:25 worker.py:148]   File \"/srv/serve.py\", line 140, in run\n"
      "ERROR 08-22 13:50:25 worker.py:148]     return executor()\n"
      "ERROR 08-22 13:50:25 worker.py:148] RuntimeError: boom\n",
      "rank0.log");
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(exception.subject, "RuntimeError");
  EXPECT_EQ(exception.text, "boom");
  EXPECT_EQ(exception.function, "run");
}

TEST(TorchLogImport, ReadsInterleavedTracebacksOfTwoRanks) {
  const Fragment fragment = ReadText(
      "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"b.py\", line 2, in g\n[rank0]:   File \"a.py\", line 1, in f\n[rank1]:     y\n[rank0]:     x\n"
      "[rank1]: ValueError: two\n[rank0]: KeyError: 'one'\n",
      "job.log");
  const auto exceptions = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(exceptions.size(), 2u);
  EXPECT_EQ(RankOf(fragment, *exceptions[0]), Rank{1});
  EXPECT_EQ(exceptions[0]->function, "g");
  EXPECT_EQ(RankOf(fragment, *exceptions[1]), Rank{0});
  EXPECT_EQ(exceptions[1]->function, "f");
}

TEST(TorchLogImport, ReadsCudaErrors) {
  const Fragment ray = ReadSample("ray_workers.log");
  EXPECT_EQ(OneEvent(ray, EventKind::cuda_error).subject, "an illegal memory access was encountered");
  EXPECT_EQ(ray.speakers[0].host, "10.0.0.7");
  EXPECT_EQ(ray.speakers[0].pid, 7046);
  const Fragment summary = ReadSample("torchrun_summary.log");
  EXPECT_EQ(OneEvent(summary, EventKind::cuda_error).subject, "out of memory");
  EXPECT_EQ(RankOf(summary, OneEvent(summary, EventKind::cuda_error)), Rank{9});
  // Nobody's CUDA memory:
  EXPECT_TRUE(EventsOf(ReadText("the cache is out of memory, evicting\n", "rank0.log"), EventKind::cuda_error).empty());
}

TEST(TorchLogImport, ReadsTorchrunsSummary) {
  const Fragment fragment = ReadSample("torchrun_summary.log");
  const auto exits = EventsOf(fragment, EventKind::process_exited);
  ASSERT_EQ(exits.size(), 3u);  // the agent's own line repeats one of them
  EXPECT_EQ(exits[0]->rank, Rank{12});
  EXPECT_EQ(exits[0]->value, -6);
  EXPECT_EQ(exits[0]->subject, "SIGABRT");
  EXPECT_EQ(exits[0]->pid, 2633);
  EXPECT_EQ(exits[0]->value2, 0);
  EXPECT_EQ(fragment.speakers[exits[0]->speaker].host, "node7.cluster");
  EXPECT_EQ(fragment.speakers[exits[0]->speaker].pid, 2633);
  EXPECT_EQ(exits[2]->rank, Rank{9});
  EXPECT_EQ(exits[2]->value2, 1);  // the first observed failure
  EXPECT_EQ(exits[2]->wall_ns, 1774472244LL * 1'000'000'000);
  const Event killed = OneEvent(fragment, EventKind::process_killed);
  EXPECT_EQ(killed.pid, 2629);
  EXPECT_EQ(killed.speaker, kNobody);
  // Two ranks raised; the launcher's ChildFailedError is no third.
  const auto exceptions = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(exceptions.size(), 2u);
  EXPECT_EQ(RankOf(fragment, *exceptions[0]), Rank{9});
  EXPECT_EQ(exceptions[1]->subject, "ValueError");
  EXPECT_EQ(RankOf(fragment, *exceptions[1]), Rank{13});
  EXPECT_EQ(exceptions[1]->function, "load");
}

TEST(TorchLogImport, ReadsTorchrunsErrorFile) {
  const Fragment fragment = ReadSample("attempt_0/5/error.json");
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(exception.subject, "ValueError");
  EXPECT_EQ(exception.function, "load");
  EXPECT_EQ(exception.wall_ns, 1774472246LL * 1'000'000'000);
  EXPECT_EQ(RankOf(fragment, exception), Rank{5});
  EXPECT_EQ(fragment.bytes.understood, fragment.bytes.total);
  const Fragment bare =
      ReadText("{\"message\": \"RuntimeError: CUDA error: device-side assert triggered\", \"timestamp\": 1700000000}",
               "error.json");
  EXPECT_EQ(OneEvent(bare, EventKind::exception).subject, "RuntimeError");
  EXPECT_EQ(OneEvent(bare, EventKind::cuda_error).subject, "device-side assert triggered");
  const Fragment strange = ReadText("{\"message\": 5}", "error.json");
  EXPECT_TRUE(strange.events.empty());
}

TEST(TorchLogImport, ReadsSlurm) {
  const Fragment fragment = ReadSample("slurm-88123.out");
  EXPECT_TRUE(fragment.speakers.empty());  // 88123 is a job, no rank
  const auto ooms = EventsOf(fragment, EventKind::oom_kill);
  ASSERT_EQ(ooms.size(), 2u);
  EXPECT_FALSE(ooms[0]->rank.known());
  EXPECT_EQ(ooms[1]->rank, Rank{3});
  const auto exits = EventsOf(fragment, EventKind::process_exited);
  ASSERT_EQ(exits.size(), 3u);
  EXPECT_EQ(exits[0]->subject, "Out Of Memory");
  EXPECT_EQ(exits[1]->rank, Rank{6});
  EXPECT_EQ(exits[1]->value, -9);  // 137
  EXPECT_EQ(exits[2]->value, -11);
  const auto killed = EventsOf(fragment, EventKind::process_killed);
  ASSERT_EQ(killed.size(), 3u);
  EXPECT_EQ(killed[0]->rank, Rank{4});
  EXPECT_EQ(killed[1]->rank, Rank{5});
  EXPECT_EQ(killed[2]->rank, Rank{7});
  EXPECT_EQ(OneEvent(fragment, EventKind::job_time_limit).wall_ns, 1776676177LL * 1'000'000'000);
}

TEST(TorchLogImport, TellsPreemptionAndNodeFailureFromATimeLimit) {
  const Fragment fragment = ReadText(
      "slurmstepd: error: *** JOB 37 ON n5146 CANCELLED AT 2021-03-15T18:00:46 DUE TO PREEMPTION ***\n"
      "slurmstepd: error: *** JOB 37 ON n5146 CANCELLED AT 2021-03-15T18:00:46 DUE TO NODE FAILURE, SEE SLURMCTLD LOG "
      "FOR DETAILS ***\n"
      "srun: error: tasks 0-999999999999: Terminated\n",
      "slurm-37.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_killed).subject, "PREEMPTION");
  EXPECT_EQ(OneEvent(fragment, EventKind::node_failed).subject, "n5146");
  EXPECT_TRUE(EventsOf(fragment, EventKind::job_time_limit).empty());
}

TEST(TorchLogImport, TakesTasksOfATorchrunPerNodeForNoRanks) {
  const Fragment fragment = ReadText(
      "E0325 20:57:27.620000 2606 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
      "local_rank: 1 (pid: 2630) of binary: p\n"
      "srun: error: node1: task 1: Exited with exit code 1\n",
      "job.out");
  const auto exits = EventsOf(fragment, EventKind::process_exited);
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_EQ(exits[0]->pid, 2630);
  EXPECT_FALSE(exits[1]->rank.known());
}

TEST(TorchLogImport, ReadsLabelsOfSrunAsRanks) {
  const Fragment fragment = ReadSample("srun_label.log");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[1].rank, Rank{1});
  EXPECT_EQ(fragment.speakers[1].rank_certainty, Certainty::assumed);
  EXPECT_EQ(fragment.speakers[1].pid, 412);
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(RankOf(fragment, exception), Rank{1});
  EXPECT_EQ(exception.function, "step");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).rank, Rank{1});
}

TEST(TorchLogImport, TakesALabelForNoRankWhenALineSaysOtherwise) {
  const Fragment fragment =
      ReadText("0: [rank8]: hello\n0: step 1\n1: [rank9]: hello\n1: step 1\n1: step 2\n0: step 2\n", "job.log");
  for (const Event* step : EventsOf(fragment, EventKind::progress)) EXPECT_GE(RankOf(fragment, *step).value, 8);
  const Fragment nodes =
      ReadText("0: [rank0]: a\n0: [rank1]: a\n0: step 1\n1: [rank2]: a\n1: [rank3]: a\n1: step 1\n", "job.log");
  for (const Event* step : EventsOf(nodes, EventKind::progress)) EXPECT_EQ(step->speaker, kNobody);
}

TEST(TorchLogImport, ReadsTagsOfMpi) {
  const Fragment fragment = ReadSample("mpi_tagged.log");
  const Event exited = OneEvent(fragment, EventKind::process_exited);
  EXPECT_EQ(exited.rank, Rank{1});
  EXPECT_EQ(exited.value, -9);
  EXPECT_EQ(exited.pid, 10313);
  EXPECT_EQ(fragment.speakers[exited.speaker].host, "proton");
  EXPECT_EQ(RankOf(fragment, OneEvent(fragment, EventKind::exception)), Rank{1});
}

TEST(TorchLogImport, ReadsShellNotices) {
  const Event killed = OneEvent(ReadText("step 1\nKilled\n", "stdout_rank2.log"), EventKind::process_exited);
  EXPECT_EQ(killed.value, -9);
  EXPECT_EQ(killed.subject, "SIGKILL");
  const Fragment fragment =
      ReadText("/opt/run.sh: line 12: 12345 Segmentation fault      (core dumped) python train.py\n", "stderr.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).pid, 12345);
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).value, -11);
  EXPECT_TRUE(EventsOf(ReadText("Killed two birds with one stone\n", "stderr.log"), EventKind::process_exited).empty());
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

TEST(TorchLogImport, ReadsTheMonitoredBarrier) {
  const Event failed = OneEvent(ReadSample("torch_monitored_barrier_rank0.log"), EventKind::monitored_barrier_failed);
  EXPECT_EQ(failed.ranks, (std::vector<Rank>{Rank{1}, Rank{3}}));
  EXPECT_EQ(failed.value, 30000);
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
  EXPECT_EQ(OneEvent(ReadSample("pods.log"), EventKind::connection_lost).subject, "[10.1.3.122]:42916");
  // A web client's broken pipe is none of ours.
  EXPECT_TRUE(
      EventsOf(ReadText("requests: Connection reset by peer, retrying\n", "rank0.log"), EventKind::connection_lost)
          .empty());
}

TEST(TorchLogImport, ReadsAHealthyJob) {
  const Fragment fragment = ReadSample("torch_2_11_clean_rank0.log");
  EXPECT_EQ(EventsOf(fragment, EventKind::process_finished).size(), 1u);
  EXPECT_EQ(EventsOf(fragment, EventKind::progress)[1]->value, 25);
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

TEST(TorchLogImport, KnowsThatASilentRankStarted) {
  const Fragment empty = ReadText("", "run/stdout_rank3.log");
  ASSERT_EQ(empty.speakers.size(), 1u);
  EXPECT_EQ(empty.speakers[0].rank, Rank{3});
  EXPECT_EQ(empty.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_TRUE(empty.events.empty());
  EXPECT_EQ(OneEvent(ReadSample("stdout_rank3.log"), EventKind::process_started).pid, 2788);
}

TEST(TorchLogImport, BelievesALineOverTheFileName) {
  const Fragment fragment = ReadText("step 1\n[rank11]: step 2\n", "attempt_0/3/stdout.log");
  ASSERT_EQ(fragment.speakers.size(), 1u);  // 3 is the rank on its node
  EXPECT_EQ(fragment.speakers[0].rank, Rank{11});
}

TEST(TorchLogImport, GivesLinesOfNobodyToNobody) {
  const Fragment mixed = ReadText("step 1\n[rank0]: a\n[rank1]: b\n", "rank0.log");
  EXPECT_EQ(OneEvent(mixed, EventKind::progress).speaker, kNobody);
  const Fragment lonely = ReadText("step 1\n[rank3]: a\n", "train.log");  // who counted the step?
  EXPECT_EQ(OneEvent(lonely, EventKind::progress).speaker, kNobody);
  const Fragment year = ReadText("step 1\n", "train_2024.log");
  EXPECT_FALSE(year.speakers[0].rank.known());
}

TEST(TorchLogImport, ReadsColouredLines) {
  const Fragment fragment = ReadText(
      "\x1b[32m[rank0]: \x1b[0mTraceback (most recent call last):\n[rank0]:   File \"a.py\", line 1, in f\n"
      "[rank0]: \x1b[1;31mValueError\x1b[0m: x\n",
      "job.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).subject, "ValueError");
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

}  // namespace
}  // namespace tacet
