// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_worker_end.h"

#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

Event EndOf(std::string_view line) {
  return OneEvent(ReadText(std::string(line) + "\n", "out.txt"), EventKind::process_exited);
}

TEST(WorkerEnd, IsToldByManyLaunchers) {
  EXPECT_EQ(EndOf("Global rank 9 (PID 1822) exited with code 1").rank.value, 9);
  EXPECT_EQ(EndOf("ERROR:composer.cli.launcher:Rank 4 crashed with exit code -9.").As<ProcessEnd>().code, -9);
  EXPECT_EQ(EndOf("[rank: 0] Child process with PID 20114 terminated with code -11. Forcefully terminating").pid,
            20114);
  EXPECT_EQ(EndOf("subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.")
                .As<ProcessEnd>()
                .code,
            -9);
  EXPECT_EQ(EndOf("subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 3.")
                .As<ProcessEnd>()
                .code,
            3);
  EXPECT_EQ(
      EndOf("2026-01-08T09:33:41.511066Z ERROR shard-manager: text_generation_launcher: Shard process was signaled "
            "to shutdown with signal 9 rank=1")
          .rank.value,
      1);
  EXPECT_EQ(EndOf("MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD").rank.value, 12);
}

TEST(WorkerEnd, OfAVllmWorkerIsToldByItsEngine) {
  const Event end = EndOf(
      "(EngineCore pid=511) ERROR 10-02 [multiproc_executor.py:154] Worker proc VllmWorker-3 died "
      "unexpectedly, shutting down executor.");
  EXPECT_EQ(end.rank.value, 3);
  EXPECT_EQ(end.pid, -1) << "511 is the engine";
  EXPECT_EQ(EndOf("(EngineCore_DP1 pid=511) Worker proc VllmWorker-3 died unexpectedly, shutting down executor.").rank,
            Rank{});
}

TEST(WorkerEnd, BySigtermIsTheLaunchersDoing) {
  const Fragment fragment = ReadText("Global rank 0 (PID 511) exited with code -15\n", "out.txt");
  EXPECT_TRUE(EventsOf(fragment, EventKind::process_exited).empty());
  EXPECT_EQ(OneEvent(fragment, EventKind::process_killed).rank.value, 0);
}

TEST(WorkerEnd, OfAPodIsATableOrAReasonAndNoMention) {
  for (const char* line : {"llm-worker-1   0/1   OOMKilled   0   3h12m\n", "      Reason:       OOMKilled\n"})
    EXPECT_EQ(EventsOf(ReadText(line, "a"), EventKind::oom_kill).size(), 1u) << line;
  EXPECT_TRUE(EventsOf(ReadText("watch out for OOMKilled pods\n", "a"), EventKind::oom_kill).empty());
}

TEST(WorkerEnd, WhatALauncherQuotesIsTheRanksOwn) {
  const Fragment fragment = ReadText(
      "----------Begin global rank 9 STDERR----------\n"
      "Traceback (most recent call last):\n"
      "  File \"/a/train.py\", line 3, in main\n"
      "ValueError: no\n"
      "----------End global rank 9 STDERR----------\n",
      "out.txt");
  EXPECT_EQ(RankOf(fragment, OneEvent(fragment, EventKind::exception)).value, 9);
}

TEST(StalledTensors, NameTheRanksThatDidNotCome) {
  const Fragment now = ReadText(
      "are waiting for remainder of ranks for more than 60 seconds.\nMissing ranks:\n3: [grads_17, grads_18 ...]\n5: "
      "[x]\n",
      "out.txt");
  EXPECT_EQ(OneEvent(now, EventKind::desync_report).ranks, (std::vector<Rank>{Rank{3}, Rank{5}}));
  const Fragment old =
      ReadText("Stalled ops:\nAllreduce/x [missing ranks: 2, 5]\nAllreduce/y [missing ranks: 2, 5]\n", "o");
  EXPECT_EQ(OneEvent(old, EventKind::desync_report).ranks, (std::vector<Rank>{Rank{2}, Rank{5}}));
}

TEST(OtherLibraries, HaveAWatchdogLikePyTorchs) {
  for (const char* library : {"WorkHCCL", "WorkMCCL", "WorkXCCL", "WorkBKCL"}) {
    const Fragment fragment = ReadText(
        "[rank2]:[E1224 20:20:20.202000000 P.cpp:633] [Rank 2] Watchdog caught collective "
        "operation timeout: " +
            std::string(library) +
            "(SeqNum=77, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran "
            "for 600001 milliseconds before timing out.\n",
        "out.txt");
    EXPECT_EQ(OneEvent(fragment, EventKind::watchdog_timeout).seq, 77) << library;
  }
}

TEST(OtherLibraries, TellErrorsInTheirOwnWords) {
  for (const char* line :
       {"RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64\n",
        "2025:01:20-10:20:30:( 4123) |CCL_ERROR| atl_ofi.cpp:214 init: EXCEPTION: no ofi providers found\n"})
    EXPECT_EQ(EventsOf(ReadText(line, "a"), EventKind::nccl_error).size(), 1u) << line;
  EXPECT_EQ(OneEvent(ReadText("Memory access fault by GPU node-4 (Agent handle: 0x9c) on address 0x7f.\n", "a"),
                     EventKind::cuda_error)
                .As<CudaError>()
                .words,
            "memory access fault");
}

TEST(BareErrors, AreTakenWithoutTheirTraceback) {
  const Fragment tail = ReadText("  File \"/a/train.py\", line 3, in main\n    run()\nValueError: no\n", "a");
  EXPECT_EQ(OneEvent(tail, EventKind::exception).As<Raised>().place.line, 3u);
  EXPECT_EQ(OneEvent(ReadText("ValueError: no\n", "a"), EventKind::exception).text, "no");
  EXPECT_EQ(OneEvent(ReadText("ERROR 05-30 08:11:40 [core.py:515] ValueError: No available memory\n", "a"),
                     EventKind::exception)
                .As<Raised>()
                .type,
            "ValueError");
  EXPECT_EQ(
      OneEvent(ReadText("torch.distributed.elastic.rendezvous.api.RendezvousClosedError\n", "a"), EventKind::exception)
          .As<Raised>()
          .type,
      "torch.distributed.elastic.rendezvous.api.RendezvousClosedError");
  for (const char* line : {"Error: x\n", "no ValueError: here\n", "what is a ValueError:\n", "ValueErrors: 3\n",
                           "ValueError\n", "LustreError: 11-0: out of reach\n"})
    EXPECT_TRUE(EventsOf(ReadText(line, "a"), EventKind::exception).empty()) << line;
}

TEST(BareErrors, ThatTheJobSurvivedAreDropped) {
  const Fragment fragment = ReadText("step 10 loss 3\nValueError: bad sample\nstep 11 loss 3\nstep 12 loss 3\n", "a");
  EXPECT_TRUE(EventsOf(fragment, EventKind::exception).empty());
}

TEST(WorkerEnd, TheLaunchersLineComesBeforeASentenceAboutIt) {
  const std::string told = "In the end, exits with return code = -11 is prompted.\n";
  const std::string line =
      "[2023-07-20 15:45:13,982] [ERROR] [launch.py:321:sigkill_handler] ['python3', '-u', 'main.py'] exits with "
      "return "
      "code = -7\n";
  for (const std::string& text : {told + line, line + told})
    EXPECT_EQ(OneEvent(ReadText(text, "a"), EventKind::process_exited).As<ProcessEnd>().code, -7);
  EXPECT_EQ(OneEvent(ReadText(told, "a"), EventKind::process_exited).As<ProcessEnd>().code, -11);
}

TEST(BareErrors, BeginWhereWordsOfAnotherScriptEnd) {
  const Event glued = OneEvent(ReadText("总是报错KeyError: 'input_ids'\n", "a"), EventKind::exception);
  EXPECT_EQ(glued.As<Raised>().type, "KeyError");
  EXPECT_EQ(glued.text, "'input_ids'");
  EXPECT_EQ(WithoutGluedWords("报错torch.distributed.DistStoreError: x"), "torch.distributed.DistStoreError: x");
  for (const char* whole : {"the ValueError: no", "ValueError: 错", "错Error: no", "模型加载完成"})
    EXPECT_EQ(WithoutGluedWords(whole), whole);
}

TEST(PodEnd, ReadsTheStateOfAPodAndTheOperatorsWord) {
  const Event loop = OneEvent(ReadText("NAME            READY   STATUS             RESTARTS   AGE\n"
                                       "vit-7-master-0  0/2     CrashLoopBackOff   8          2m41s\n"
                                       "vit-7-worker-0  0/1     Init:1/2           0          2m40s\n",
                                       "o"),
                              EventKind::process_exited);
  EXPECT_EQ(loop.As<ProcessEnd>().host, "vit-7-master-0");
  EXPECT_EQ(loop.As<ProcessEnd>().how, "CrashLoopBackOff");
  const Event killed =
      OneEvent(ReadText("time=\"2024\" level=info msg=\"Pod: ns.vit-worker-0 exited with code 137\" job=ns.vit\n", "o"),
               EventKind::process_exited);
  EXPECT_EQ(killed.As<ProcessEnd>().code, -9);
  EXPECT_EQ(killed.As<ProcessEnd>().host, "vit-worker-0");
  for (const char* text : {"msg=\"Pod: ns.vit-worker-0 exited with code 0\"\n",
                           "what does the status CrashLoopBackOff in 0/2 pods mean\n"})
    EXPECT_TRUE(EventsOf(ReadText(text, "o"), EventKind::process_exited).empty()) << text;
}

TEST(TorchLogWorkerEnd, AHostThatSshCannotResolveKeepsItsWholeName) {
  const Fragment fragment = ReadText(
      "ssh: Could not resolve hostname perf-worker-0.perf.lab.svc: Name or service not known\n"
      "ssh: Could not resolve hostname perf-worker-1.perf.lab.svc: Name or service not known\n"
      "ssh: Could not resolve hostname localhost:8: Name or service not known\n",
      "job.out");
  const auto events = EventsOf(fragment, EventKind::store_unreachable);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1]->As<StoreUnreachable>().address, "perf-worker-1.perf.lab.svc");
  EXPECT_EQ(events[1]->As<StoreUnreachable>().how, Unreachable::ssh_unknown_host);
  EXPECT_EQ(events[2]->As<StoreUnreachable>().address, "localhost:8");
  EXPECT_EQ(events[2]->As<StoreUnreachable>().how, Unreachable::ssh_slots);
}

TEST(TorchLogWorkerEnd, ANodeThatSshCannotReachIsNamed) {
  const auto reached = [](const char* text) {
    return OneEvent(ReadText(text, "job.out"), EventKind::store_unreachable).As<StoreUnreachable>();
  };
  for (const char* text : {"ssh: connect to host node-2 port 22: Connection refused\n",
                           "pdsh@node-1: node-2: ssh exited with exit code 255\n"}) {
    EXPECT_EQ(reached(text).address, "node-2") << text;
    EXPECT_EQ(reached(text).how, Unreachable::ssh) << text;
  }
  // The command that ssh ran has ended so, not ssh.
  EXPECT_TRUE(
      EventsOf(ReadText("pdsh@node-1: node-2: ssh exited with exit code 1\n", "job.out"), EventKind::store_unreachable)
          .empty());
}

TEST(TorchLogWorkerEnd, ANodeOfMindSporeThatTimedOutIsARank) {
  const std::string line = "The node: 3 is timed out. It may exit with exception, please check this node's log.\n";
  EXPECT_EQ(OneEvent(ReadText(line, "scheduler.log"), EventKind::process_exited).rank, Rank{3});
  const std::string other = "The node: 5 is timed out. It may exit with exception, please check this node's log.\n";
  EXPECT_FALSE(OneEvent(ReadText(line + other, "scheduler.log"), EventKind::process_exited).rank.known())
      << "of two nobody can say which stopped first";
}

TEST(TorchLogWorkerEnd, ATaskWhoseHeartbeatsStoppedIsNamed) {
  const std::string head =
      "F0611 23:18:09.337166  90112 client.h:77] Terminating process because the JAX distributed service detected "
      "fatal "
      "errors. absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n";
  const std::string task = "/job:jax_worker/replica:0/task:";
  EXPECT_EQ(OneEvent(ReadText(head + task + "6\nThe tasks have crashed.\n", "o"), EventKind::process_exited).rank,
            Rank{6});
  EXPECT_FALSE(OneEvent(ReadText(head + task + "6\n" + task + "7\n", "o"), EventKind::process_exited).rank.known());
}

TEST(TorchLogWorkerEnd, MpirunsOwnSummaryIsMarkedAsSuch) {
  const Event event = OneEvent(ReadText("PRTE was unable to reliably start one or more daemons.\n", "job.out"),
                               EventKind::rendezvous_incomplete);
  EXPECT_EQ(event.As<Rendezvous>().launch, LaunchProblem::daemons);
}

TEST(TorchLogWorkerEnd, ReadyRanksAreKeptBesideThoseThatAreNot) {
  const Event event = OneEvent(
      ReadText("WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of "
               "ranks and are waiting for remainder of ranks for more than 60 seconds. Stalled ops: a.weight "
               "[ready ranks: 3, 1, 4], a.bias [ready ranks: 3, 1, 4]\n",
               "job.out"),
      EventKind::desync_report);
  EXPECT_EQ(event.ranks, (std::vector<Rank>{Rank{0}, Rank{2}}));
  EXPECT_EQ(event.As<DesyncReport>().waiting, (std::vector<Rank>{Rank{1}, Rank{3}, Rank{4}}));
}

TEST(TorchLogWorkerEnd, LibfabricWithoutAProviderIsANotice) {
  const Event event =
      OneEvent(ReadText("libfabric:85:1747242728::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa output "
                        "empty list\n",
                        "job.out"),
               EventKind::nccl_warning);
  EXPECT_EQ(event.As<Warning>().id, "libfabric-no-provider");
  EXPECT_EQ(event.As<Warning>().object, "efa");
  EXPECT_EQ(event.As<Warning>().role, NcclWarningRole::notice);
}

TEST(TorchLogWorkerEnd, TensorsOfBothSidesAreKept) {
  const Fragment fragment = ReadText(
      "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
      "waiting for remainder of ranks for more than 60 seconds. Stalled ops: val_loss [ready ranks: 2], grads_7_0 "
      "[ready ranks: 0, 1, 3], grads_8_0 [ready ranks: 0, 1, 3]\n",
      "job.out");
  const auto reports = EventsOf(fragment, EventKind::mismatch_report);
  ASSERT_EQ(reports.size(), 3u);
  const Event& event = *reports.front();
  EXPECT_EQ(event.As<MismatchReport>().tensor, "grads_7_0");
  EXPECT_EQ(event.As<MismatchReport>().other_tensor, "val_loss");
}

// PyTorch's analyser of flight records: one report of several lines.
TEST(TorchLogWorkerEnd, AnAnalysisIsOneReportWithItsCall) {
  const Event event = OneEvent(ReadText("Not all ranks joining collective: sequence number: 512\n"
                                        "internal record id: 511\n"
                                        "group info: 0:default_pg\n"
                                        "collective: nccl:reduce_scatter\n"
                                        "missing ranks: {2, 3}\n"
                                        "input sizes: [[4096]]\n"
                                        "world size: 4\n",
                                        "report.txt"),
                               EventKind::desync_report);
  EXPECT_EQ(event.op, OpKind::reduce_scatter);
  EXPECT_EQ(event.seq, 512);
  EXPECT_EQ(event.ranks, (std::vector<Rank>{Rank{2}, Rank{3}}));
  EXPECT_EQ(event.text.find("times)"), std::string::npos) << event.text;
}

TEST(TorchLogWorkerEnd, ParsersOfArgumentsRefuseThem) {
  const auto refusal = [](const std::string& text) {
    const Fragment fragment = ReadText(text, "job.out");
    const auto events = EventsOf(fragment, EventKind::exception);
    return events.empty() ? std::string() : events.front()->text;
  };
  EXPECT_EQ(refusal("train.py: error: argument --lr: invalid float value: 'fast'\n"),
            "argument --lr: invalid float value: 'fast'");
  EXPECT_EQ(refusal("Error: Missing option '--data'.\n"), "Missing option '--data'.");
  EXPECT_EQ(refusal("Error parsing override 'optim.lr=='\n"), "Error parsing override 'optim.lr=='");
  EXPECT_EQ(refusal("FATAL Flags parsing error:\n  Unknown command line flag 'lrr'. Did you mean: lr ?\n"),
            "Unknown command line flag 'lrr'. Did you mean: lr ?");
  // Other programs that print "error:".
  EXPECT_EQ(refusal("srun: error: argument list too long\nstep 1 loss 2.0\nstep 2 loss 1.9\n"), "");
}

}  // namespace
}  // namespace tacet
