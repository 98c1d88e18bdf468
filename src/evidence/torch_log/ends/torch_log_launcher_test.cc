// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_launcher.h"

#include <algorithm>
#include <vector>

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

TEST(TorchLogLauncher, ReadsTorchrunsSummary) {
  const Fragment fragment = ReadSample("torchrun_summary.log");
  const auto exits = EventsOf(fragment, EventKind::process_exited);
  ASSERT_EQ(exits.size(), 3u);  // the agent's own line repeats one of them
  EXPECT_EQ(exits[0]->rank, Rank{12});
  EXPECT_EQ(exits[0]->As<ProcessEnd>().code, -6);
  EXPECT_EQ(exits[0]->As<ProcessEnd>().how, "SIGABRT");
  EXPECT_EQ(exits[0]->pid, 2633);
  EXPECT_EQ(exits[0]->As<ProcessEnd>().first_failure, false);
  EXPECT_EQ(fragment.speakers[exits[0]->speaker].host, "node7.cluster");
  EXPECT_EQ(fragment.speakers[exits[0]->speaker].pid, 2633);
  EXPECT_EQ(exits[2]->rank, Rank{9});
  EXPECT_EQ(exits[2]->As<ProcessEnd>().first_failure, true);  // the first observed failure
  EXPECT_EQ(exits[2]->wall_ns, 1774472244LL * 1'000'000'000);
  const Event killed = OneEvent(fragment, EventKind::process_killed);
  EXPECT_EQ(killed.pid, 2629);
  EXPECT_EQ(killed.speaker, kNobody);
  // Two ranks raised; the launcher's ChildFailedError is no third.
  const auto exceptions = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(exceptions.size(), 2u);
  EXPECT_EQ(RankOf(fragment, *exceptions[0]), Rank{9});
  EXPECT_EQ(exceptions[1]->As<Raised>().type, "ValueError");
  EXPECT_EQ(RankOf(fragment, *exceptions[1]), Rank{13});
  EXPECT_EQ(exceptions[1]->As<Raised>().place.function, "load");
}

TEST(TorchLogLauncher, ReadsTorchrunsErrorFile) {
  const Fragment fragment = ReadSample("attempt_0/5/error.json");
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(exception.As<Raised>().type, "ValueError");
  EXPECT_EQ(exception.As<Raised>().place.function, "load");
  EXPECT_EQ(exception.wall_ns, 1774472246LL * 1'000'000'000);
  EXPECT_EQ(RankOf(fragment, exception), Rank{5});
  EXPECT_EQ(fragment.bytes.understood, fragment.bytes.total);
  const Fragment bare =
      ReadText("{\"message\": \"RuntimeError: CUDA error: device-side assert triggered\", \"timestamp\": 1700000000}",
               "error.json");
  EXPECT_EQ(OneEvent(bare, EventKind::exception).As<Raised>().type, "RuntimeError");
  EXPECT_EQ(OneEvent(bare, EventKind::cuda_error).As<CudaError>().words, "device-side assert triggered");
  const Fragment strange = ReadText("{\"message\": 5}", "error.json");
  EXPECT_TRUE(strange.events.empty());
}

TEST(TorchLogLauncher, ReadsSlurm) {
  const Fragment fragment = ReadSample("slurm-88123.out");
  EXPECT_TRUE(fragment.speakers.empty());  // 88123 is a job, no rank
  const auto ooms = EventsOf(fragment, EventKind::oom_kill);
  ASSERT_EQ(ooms.size(), 2u);
  EXPECT_FALSE(ooms[0]->rank.known());
  EXPECT_EQ(ooms[1]->rank, Rank{3});
  const auto exits = EventsOf(fragment, EventKind::process_exited);
  ASSERT_EQ(exits.size(), 3u);
  EXPECT_EQ(exits[0]->As<ProcessEnd>().how, "Out Of Memory");
  EXPECT_EQ(exits[1]->rank, Rank{6});
  EXPECT_EQ(exits[1]->As<ProcessEnd>().code, -9);  // 137
  EXPECT_EQ(exits[2]->As<ProcessEnd>().code, -11);
  const auto killed = EventsOf(fragment, EventKind::process_killed);
  ASSERT_EQ(killed.size(), 3u);
  EXPECT_EQ(killed[0]->rank, Rank{4});
  EXPECT_EQ(killed[1]->rank, Rank{5});
  EXPECT_EQ(killed[2]->rank, Rank{7});
  EXPECT_EQ(OneEvent(fragment, EventKind::job_time_limit).wall_ns, 1776676177LL * 1'000'000'000);
}

TEST(TorchLogLauncher, TellsPreemptionAndNodeFailureFromATimeLimit) {
  const Fragment fragment = ReadText(
      "slurmstepd: error: *** JOB 37 ON n5146 CANCELLED AT 2021-03-15T18:00:46 DUE TO PREEMPTION ***\n"
      "slurmstepd: error: *** JOB 37 ON n5146 CANCELLED AT 2021-03-15T18:00:46 DUE TO NODE FAILURE, SEE SLURMCTLD LOG "
      "FOR DETAILS ***\n"
      "srun: error: tasks 0-999999999999: Terminated\n",
      "slurm-37.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_killed).As<ProcessEnd>().how, "PREEMPTION");
  EXPECT_EQ(OneEvent(fragment, EventKind::node_failed).As<NodeFailure>().node, "");  // n5146 only prints it
  EXPECT_TRUE(EventsOf(fragment, EventKind::job_time_limit).empty());
}

TEST(TorchLogLauncher, AStepThatIsCancelledWithoutAReasonEndsItsProcesses) {
  const std::string head = "slurmstepd: error: *** STEP 37.0 ON n5 CANCELLED AT 2021-03-15T18:00:46 ";
  const Fragment plain = ReadText(head + "***\n", "slurm-37.out");
  EXPECT_TRUE(OneEvent(plain, EventKind::process_killed).As<ProcessEnd>().with_step);
  const Fragment reason = ReadText(head + "DUE TO PREEMPTION ***\n", "slurm-37.out");
  EXPECT_FALSE(OneEvent(reason, EventKind::process_killed).As<ProcessEnd>().with_step);
}

TEST(TorchLogLauncher, TellsTheNodeThatFailed) {
  const Fragment fragment = ReadText("srun: error: Node failure on node7\n", "slurm-37.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::node_failed).As<NodeFailure>().node, "node7");
}

TEST(TorchLogLauncher, ReadsNoticesOfMpiThatTakeSeveralLines) {
  const Fragment wrapped = ReadText(
      "--------------------------------------------------------------------------\n"
      "mpiexec noticed that process rank 3 with PID 10313 on node proton exited on \n"
      "signal 6 (Aborted).\n",
      "job.out");
  EXPECT_EQ(OneEvent(wrapped, EventKind::process_exited).As<ProcessEnd>().code, -6);
  EXPECT_EQ(OneEvent(wrapped, EventKind::process_exited).rank, Rank{3});
  for (const char* name : {"[[56171,1],6]", "[prterun-node7-1234@1,6]"}) {
    const Fragment code = ReadText(
        "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
        "the job to be terminated. The first process to do so was:\n\n  Process name: " +
            std::string(name) + "\n  Exit code:    3\n",
        "job.out");
    EXPECT_EQ(OneEvent(code, EventKind::process_exited).As<ProcessEnd>().code, 3) << name;
    EXPECT_EQ(OneEvent(code, EventKind::process_exited).rank, Rank{6}) << name;
  }
}

TEST(TorchLogLauncher, TellsHydrasOwnKillsFromTheFirstEnd) {
  const auto block = [](int rank, const char* end) {
    return "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK " + std::to_string(rank) +
           " PID 244737 RUNNING AT node0009\n=   " + end + "\n====\n\n";
  };
  const Fragment one = ReadText(block(2, "KILLED BY SIGNAL: 9 (Killed)"), "job.out");
  EXPECT_EQ(OneEvent(one, EventKind::process_exited).As<ProcessEnd>().code, -9);
  const Fragment several =
      ReadText(block(1, "KILLED BY SIGNAL: 9 (Killed)") + block(2, "KILLED BY SIGNAL: 11 (Segmentation fault)") +
                   block(3, "KILLED BY SIGNAL: 9 (Killed)"),
               "job.out");
  EXPECT_EQ(OneEvent(several, EventKind::process_exited).As<ProcessEnd>().code, -11);
  EXPECT_EQ(OneEvent(several, EventKind::process_exited).rank, Rank{2});
  const Fragment alike =
      ReadText(block(1, "KILLED BY SIGNAL: 9 (Killed)") + block(2, "KILLED BY SIGNAL: 9 (Killed)"), "job.out");
  EXPECT_EQ(OneEvent(alike, EventKind::process_exited).As<ProcessEnd>().code, -9);
  EXPECT_EQ(OneEvent(alike, EventKind::process_exited).rank, Rank{}) << "which was killed first is not told";
  const Fragment mpich = ReadText(
      "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 92248 RUNNING AT fzh-desktop\n"
      "=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n"
      "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
      "job.out");
  EXPECT_EQ(OneEvent(mpich, EventKind::process_exited).As<ProcessEnd>().code, -9);
}

TEST(TorchLogLauncher, ReadsHowPbsAndLsfEndAJob) {
  const Fragment pbs = ReadText("=>> PBS: job killed: walltime 3611 exceeded limit 3600\n", "job.o123");
  EXPECT_EQ(EventsOf(pbs, EventKind::job_time_limit).size(), 1u);
  const Fragment memory = ReadText("=>> PBS: job killed: mem 67420160kb exceeded limit 67108864kb\n", "job.o123");
  EXPECT_EQ(EventsOf(memory, EventKind::oom_kill).size(), 1u);
  const Fragment lsf = ReadText(
      "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit code 137.\n", "lsf.out");
  EXPECT_EQ(EventsOf(lsf, EventKind::oom_kill).size(), 1u);
  const Fragment run = ReadText("TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n", "lsf.out");
  EXPECT_EQ(EventsOf(run, EventKind::job_time_limit).size(), 1u);
  const Fragment talk = ReadText("step 3: job killed the mood\n", "lsf.out");
  EXPECT_TRUE(EventsOf(talk, EventKind::process_killed).empty());
}

TEST(TorchLogLauncher, TakesTasksOfATorchrunPerNodeForNoRanks) {
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

TEST(TorchLogLauncher, BoundsTheTasksOfAHostileFile) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "srun: error: n" + std::to_string(i) + ": tasks 0-65535: Killed\n";
  const Fragment fragment = ReadText(text, "slurm-1.out");
  EXPECT_LE(fragment.events.size(), 202'000u);
}

TEST(TorchLogLauncher, ALongListOfTasksIsKeptAsAListAndLosesNone) {
  const Fragment fragment = ReadText("srun: error: node8: tasks 0-1023: Terminated\n", "slurm-1.out");
  EXPECT_LE(fragment.events.size(), 32u);
  std::vector<bool> told(1024);
  for (const Event* event : EventsOf(fragment, EventKind::process_killed)) {
    if (event->rank.known()) told.at(static_cast<size_t>(event->rank.value)) = true;
    for (const Rank rank : event->ranks) told.at(static_cast<size_t>(rank.value)) = true;
  }
  EXPECT_EQ(std::count(told.begin(), told.end(), true), 1024);
}

TEST(TorchLogLauncher, ReadsLabelsOfSrunAsRanks) {
  const Fragment fragment = ReadSample("srun_label.log");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[1].rank, Rank{1});
  EXPECT_EQ(fragment.speakers[1].rank_certainty, Certainty::assumed);
  EXPECT_EQ(fragment.speakers[1].pid, 412);
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(RankOf(fragment, exception), Rank{1});
  EXPECT_EQ(exception.As<Raised>().place.function, "step");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).rank, Rank{1});
}

TEST(TorchLogLauncher, TakesALabelForNoRankWhenALineSaysOtherwise) {
  const Fragment fragment =
      ReadText("0: [rank8]: hello\n0: step 1\n1: [rank9]: hello\n1: step 1\n1: step 2\n0: step 2\n", "job.log");
  for (const Event* step : EventsOf(fragment, EventKind::progress)) EXPECT_GE(RankOf(fragment, *step).value, 8);
  const Fragment nodes =
      ReadText("0: [rank0]: a\n0: [rank1]: a\n0: step 1\n1: [rank2]: a\n1: [rank3]: a\n1: step 1\n", "job.log");
  for (const Event* step : EventsOf(nodes, EventKind::progress)) EXPECT_EQ(step->speaker, kNobody);
}

TEST(TorchLogLauncher, ReadsTagsOfMpi) {
  const Fragment fragment = ReadSample("mpi_tagged.log");
  const Event exited = OneEvent(fragment, EventKind::process_exited);
  EXPECT_EQ(exited.rank, Rank{1});
  EXPECT_EQ(exited.As<ProcessEnd>().code, -9);
  EXPECT_EQ(exited.pid, 10313);
  EXPECT_EQ(fragment.speakers[exited.speaker].host, "proton");
  EXPECT_EQ(RankOf(fragment, OneEvent(fragment, EventKind::exception)), Rank{1});
}

TEST(TorchLogLauncher, ReadsShellNotices) {
  const Event killed = OneEvent(ReadText("step 1\nKilled\n", "stdout_rank2.log"), EventKind::process_exited);
  EXPECT_EQ(killed.As<ProcessEnd>().code, -9);
  EXPECT_EQ(killed.As<ProcessEnd>().how, "SIGKILL");
  const Fragment fragment =
      ReadText("/opt/run.sh: line 12: 12345 Segmentation fault      (core dumped) python train.py\n", "stderr.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).pid, 12345);
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).As<ProcessEnd>().code, -11);
  EXPECT_TRUE(EventsOf(ReadText("Killed two birds with one stone\n", "stderr.log"), EventKind::process_exited).empty());
}

TEST(TorchLogLauncher, KnowsThatASilentRankStarted) {
  const Fragment empty = ReadText("", "run/stdout_rank3.log");
  ASSERT_EQ(empty.speakers.size(), 1u);
  EXPECT_EQ(empty.speakers[0].rank, Rank{3});
  EXPECT_EQ(empty.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_TRUE(empty.events.empty());
  EXPECT_EQ(OneEvent(ReadSample("stdout_rank3.log"), EventKind::process_started).pid, 2788);
}

TEST(TorchLogLauncher, BelievesALineOverTheFileName) {
  const Fragment fragment = ReadText("step 1\n[rank11]: step 2\n", "attempt_0/3/stdout.log");
  ASSERT_EQ(fragment.speakers.size(), 1u);  // 3 is the rank on its node
  EXPECT_EQ(fragment.speakers[0].rank, Rank{11});
}

TEST(TorchLogLauncher, GivesLinesOfNobodyToNobody) {
  const Fragment mixed = ReadText("step 1\n[rank0]: a\n[rank1]: b\n", "rank0.log");
  EXPECT_EQ(OneEvent(mixed, EventKind::progress).speaker, kNobody);
  const Fragment lonely = ReadText("step 1\n[rank3]: a\n", "train.log");  // who counted the step?
  EXPECT_EQ(OneEvent(lonely, EventKind::progress).speaker, kNobody);
  const Fragment year = ReadText("step 1\n", "train_2024.log");
  EXPECT_FALSE(year.speakers[0].rank.known());
}

TEST(TorchLogLauncher, OnlyACommandSetsTheVisibleGpus) {
  const auto value = [](const std::string& line) {
    const Fragment fragment = ReadText(line + "\nstep 1 loss 2.0\nstep 2 loss 1.9\n", "job.out");
    for (const Event& event : fragment.events)
      if (event.kind == EventKind::environment) return event.As<EnvironmentSetting>().value;
    return std::string();
  };
  EXPECT_EQ(value("$ CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 train.py"), "0,1");
  EXPECT_EQ(value("(env) lin@gpu3:~/run$ PYTHONPATH=. CUDA_VISIBLE_DEVICES=\"2\" python train.py"), "2");
  EXPECT_EQ(value("export CUDA_VISIBLE_DEVICES=0,1,2"), "0,1,2");
  EXPECT_EQ(value("please set CUDA_VISIBLE_DEVICES=0 and try again"), "");
  EXPECT_EQ(value("LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]"), "");
  EXPECT_EQ(value("$ CUDA_VISIBLE_DEVICES=$GPUS torchrun train.py"), "");
}

TEST(TorchLogLauncher, ShellsTellWhichSignalEndedAProcess) {
  const auto signal = [](std::string_view line) {
    const auto notice = FindShellNotice(line);
    return notice ? notice->signal : 0;
  };
  EXPECT_EQ(signal("Killed"), 9);
  EXPECT_EQ(signal("Segmentation fault (core dumped)"), 11);
  EXPECT_EQ(signal("/opt/run.sh: line 12: 12345 Killed                  python train.py"), 9);
  EXPECT_EQ(FindShellNotice("/opt/run.sh: line 12: 12345 Killed                  python train.py")->pid, 12345);
  EXPECT_EQ(signal("[1]+  Killed                  nohup python train.py"), 9);
  EXPECT_EQ(FindShellNotice("[1]    75076 killed     python main.py")->pid, 75076);
  EXPECT_EQ(signal("zsh: segmentation fault (core dumped)  python main.py"), 11);
  EXPECT_EQ(signal("[1]    75076 done       python main.py"), 0);
  EXPECT_EQ(signal("[1]  Killed it with the new kernel"), 0);
  EXPECT_EQ(signal("Killed by the watchdog"), 0);
}

TEST(TorchLogLauncher, ATaskThatNeverBeganEndsNobody) {
  const Fragment fragment = ReadText(
      "slurmstepd: error: execve(): torchrun: No such file or directory\n"
      "srun: error: gpu-19: task 0: Exited with exit code 2\n",
      "job.out");
  const Event end = OneEvent(fragment, EventKind::process_exited);
  EXPECT_EQ(end.As<ProcessEnd>().how, "slurmstepd cannot start torchrun: No such file or directory");
}

}  // namespace
}  // namespace tacet
