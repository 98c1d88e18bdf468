// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "evidence/format.h"

namespace tacet {

extern const Format kStacksFormat;

namespace {

TEST(StacksBegun, ADumpThatWasOnlyBegunStillShowsItsProcess) {
  const std::string_view text = "Timeout (0:00:28)!\n";
  EXPECT_EQ(kStacksFormat.recognise(text, "stack_rank3.txt"), Recognition::yes);
  Fragment fragment;
  kStacksFormat.read({"stack_rank3.txt", text}, fragment);
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_TRUE(fragment.threads.empty());
}

TEST(StacksBegun, WordsOfAJobThatLookSimilarAreNone) {
  EXPECT_EQ(kStacksFormat.recognise("Timeout (seconds): 30\n", "stdout_rank3.log"), Recognition::no);
}

Fragment ReadDump(std::string_view text) {
  Fragment fragment;
  kStacksFormat.read({"paste.txt", text}, fragment);
  return fragment;
}

std::string Spy(int pid, std::string_view command) {
  const std::string id = std::to_string(pid);
  return "Process " + id + ": " + std::string(command) + "\nPython v3.10.12 (/usr/bin/python3.10)\n\nThread " + id +
         " (idle): \"MainThread\"\n    train (train.py:274)\n\n";
}

TEST(StacksBegun, FramesAboveTheFirstHeadAreOfAThreadWhoseHeadIsCutOff) {
  const Fragment fragment = ReadDump(
      "    recv (torch/distributed/distributed_c10d.py:2501)\n    next_stage (pipe.py:88)\n    <module> (pipe.py:120)\n"
      "    0x7fab9258b1ca (libc.so.6)\n"
      "Thread 4122 (idle): \"Thread-1\"\n    wait (threading.py:359)\n    run (watch.py:12)\n");
  ASSERT_EQ(fragment.threads.size(), 2u);
  EXPECT_TRUE(fragment.threads[0].is_main) << "its outermost Python frame begins the program";
  EXPECT_FALSE(fragment.threads[1].is_main);
  // A listing of calls without a head below it is none.
  EXPECT_TRUE(ReadDump("    recv (pipe.py:12)\n    next_stage (pipe.py:88)\nstep 12\n").threads.empty());
  EXPECT_EQ(ReadDump("    recv (pipe.py:12)\n    next_stage (pipe.py:88)\nstep 12\nThread 4122 (idle): \"Thread-1\"\n"
                     "    wait (threading.py:359)\n")
                .threads.size(),
            1u);
}

TEST(StacksInOneFile, ASecondMainThreadIsOfAnotherProcess) {
  const auto stack = [](std::string_view id, std::string_view function) {
    return "Thread " + std::string(id) + " (active): \"MainThread\"\n    " + std::string(function) +
           " (torch/distributed/distributed_c10d.py:2924)\n    step (train.py:60)\n\n";
  };
  const Fragment two = ReadDump("3 processes in:\n" + stack("20110", "all_reduce") + "5 processes in:\n" +
                                stack("20109", "reduce_scatter_tensor"));
  ASSERT_EQ(two.threads.size(), 2u);
  EXPECT_TRUE(two.threads[0].is_main);
  EXPECT_TRUE(two.threads[1].is_main);
  EXPECT_NE(two.threads[0].dump, two.threads[1].dump);
  const Fragment beside =
      ReadDump(stack("20110", "all_reduce") + "Thread 20111 (idle): \"Thread-1\"\n    wait (threading.py:302)\n");
  ASSERT_EQ(beside.threads.size(), 2u);
  EXPECT_EQ(beside.threads[0].dump, beside.threads[1].dump);
}

TEST(StacksInOneFile, TheCommandTellsWhichRankAProcessIs) {
  const Fragment job = ReadDump(Spy(10, "python train.py --local_rank=0") + Spy(11, "python train.py --local_rank=1"));
  ASSERT_EQ(job.speakers.size(), 2u);
  EXPECT_EQ(job.speakers[1].rank, Rank{1});
  EXPECT_EQ(job.speakers[1].pid, 11);
  EXPECT_EQ(ReadDump(Spy(10, "env RANK=9 LOCAL_RANK=1 python train.py")).speakers.at(0).rank, Rank{9});
}

TEST(StacksInOneFile, ALocalRankThatTwoProcessesHaveIsNoRankOfTheJob) {
  const Fragment nodes =
      ReadDump(Spy(10, "python train.py --local_rank=0") + Spy(21, "python train.py --local_rank=0"));
  ASSERT_EQ(nodes.speakers.size(), 2u);
  EXPECT_FALSE(nodes.speakers[0].rank.known());
  EXPECT_FALSE(ReadDump(Spy(10, "python t.py --node_rank=1 --local_rank=0")).speakers.at(0).rank.known());
}

TEST(StacksInOneFile, AHeadingTellsWhoseStackFollowsAtOnce) {
  const std::string stack =
      "Thread 0x7FA6E7C01740 (idle): \"MainThread\"\n    get (queue.py:170)\n    main (train.py:16)\n";
  const Fragment two = ReadDump("The stack for rank0:\n```\n" + stack + "```\nrank 3 is here:\n" + stack);
  ASSERT_EQ(two.speakers.size(), 2u);
  EXPECT_EQ(two.speakers[0].rank, Rank{0});
  EXPECT_EQ(two.speakers[1].rank, Rank{3});
  for (const char* above : {"rank 3 failed, rank 4 too:\n", "rank 3:\na\nb\nc\nd\n", "rank 3 hangs\n", "Ranking 3:\n"})
    EXPECT_FALSE(ReadDump(above + stack).speakers.at(0).rank.known()) << above;
}

constexpr std::string_view kBareStack =
    "(gdb) bt\n"
    "#0  0x00007f0b1c2233c7 in sched_yield () at ../sysdeps/unix/syscall-template.S:120\n"
    "#1  0x00007f0ab027b68b in ?? () from /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
    "#2  0x00007f0ab02a1498 in ?? ()\n"
    "   from /opt/env/lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12\n"
    "#3  0x00007f0ab026bf5e in cudaLaunchKernel ()\n"
    "   from /opt/env/lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12\n";

TEST(StacksWithoutAHead, FramesOfGdbFromZeroOnAreAStack) {
  EXPECT_EQ(kStacksFormat.recognise(kBareStack, "paste.txt"), Recognition::yes);
  const Fragment fragment = ReadDump(kBareStack);
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(fragment.stacks.Get(fragment.threads[0].stack).size(), 4u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
  // References to issues, and a traceback that torch printed from #4 on, are none.
  EXPECT_EQ(kStacksFormat.recognise("#0 first (see there)\n#1 second (too)\n#2 third (as well)\nand more\n", "a.txt"),
            Recognition::no);
  EXPECT_EQ(kStacksFormat.recognise("an error\n#4 a::b() from x.cpp:2\n#5 c::d() from y.cpp:3\n#6 e() from z.cpp:4\n"
                                    "more\n",
                                    "a.txt"),
            Recognition::no);
}

TEST(StacksWithoutAHead, ArgumentsTellTheRankInACommunicator) {
  const Fragment fragment = ReadDump(
      "#0  0x00007f8920e096a7 in __libc_accept (fd=30) at ../sysdeps/unix/sysv/linux/accept.c:26\n"
      "#1  0x00007f88a2152565 in bootstrapInit (id=0x7f0, rank=rank@entry=3, nranks=nranks@entry=8) at bootstrap.cc:3\n"
      "#2  0x00007f88a2116c10 in ncclAsyncThreadMain (args_=0x5b) at group.cc:73\n");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(fragment.threads[0].group_rank, 3);
  EXPECT_EQ(fragment.threads[0].group_ranks, 8);
}

TEST(StacksWithoutAHead, ASignalIsTheEndOfTheProcessUnlessSomebodyOnlyStoppedIt) {
  const std::string frames =
      "#0  0x7f1 in f () from /a/libx.so\n#1  0x7f2 in g () from /a/libx.so\n#2  0x7f3 in h ()\n";
  const Fragment crash = ReadDump("Thread 1 \"python\" received signal SIGSEGV, Segmentation fault.\n" + frames);
  ASSERT_EQ(crash.events.size(), 1u);
  EXPECT_EQ(crash.events[0].kind, EventKind::segfault);
  EXPECT_EQ(crash.events[0].text, "Segmentation fault");
  EXPECT_TRUE(ReadDump("Program received signal SIGINT, Interrupt.\n" + frames).events.empty());
}

TEST(GdbSession, InfoThreadsIsAStackOfOneFrameEach) {
  const std::string_view text =
      "(gdb) info threads\n"
      "  Id   Target Id         Frame\n"
      "* 1    Thread 0x7f90c1a3f740 (LWP 31544) \"\" select_poll_poll () at /src/Modules/selectmodule.c.h:219\n"
      "  2    Thread 0x7f9033fff700 (LWP 31610) \"python\" 0x00007f90c0c1784d in poll () from /lib/libc.so.6\n"
      "  3    LWP 31702 \"python\" 0x00007f90c180da15 in futex_abstimed_wait_cancelable\n";
  EXPECT_EQ(kStacksFormat.recognise(text, "paste.txt"), Recognition::yes);
  const Fragment job = ReadDump(text);
  ASSERT_EQ(job.speakers.size(), 1u);
  EXPECT_EQ(job.speakers[0].pid, 31544);
  ASSERT_EQ(job.threads.size(), 3u);
  EXPECT_TRUE(job.threads[0].is_main);
  EXPECT_EQ(job.threads[1].thread_id, "31610");
  const auto function = [&](size_t i) {
    return std::string(job.strings.Get(job.stacks.Get(job.threads[i].stack).front().function));
  };
  EXPECT_EQ(function(0), "select_poll_poll");
  EXPECT_EQ(function(1), "poll");
  EXPECT_EQ(function(2), "futex_abstimed_wait_cancelable");
  EXPECT_EQ(job.bytes.not_understood, 0u);
  // A table of something else.
  EXPECT_EQ(kStacksFormat.recognise("  2    Thread pool (LWP mode) 8 workers\n", "x"), Recognition::no);
}

TEST(GdbSession, TheThreadThatIsSwitchedToIsShownInPython) {
  const Fragment job = ReadDump(
      "[Switching to thread 9 (Thread 0x7fd2a4c00700 (LWP 15520))]\n"
      "#0  0x00007fd6171d2fdd in poll () at ../sysdeps/unix/syscall-template.S:81\n"
      "81\tin ../sysdeps/unix/syscall-template.S\n"
      "(gdb) py-bt\n"
      "#3 Frame 0x7fd4c1fe0b40, for file /usr/lib/python2.7/multiprocessing/queues.py, line 131, in get "
      "(self=<Queue>)\n");
  ASSERT_EQ(job.threads.size(), 2u);
  EXPECT_EQ(job.threads[0].thread_id, "15520");
  EXPECT_TRUE(job.threads[1].has_python);
  EXPECT_EQ(job.strings.Get(job.stacks.Get(job.threads[1].stack).front().function), "get");
  EXPECT_EQ(job.bytes.not_understood, 0u);
}

TEST(GdbSession, HorovodsCoordinatorIsRankZero) {
  const std::string frames =
      "Thread 3 (Thread 0x7fa2c60b0700 (LWP 4410)):\n"
      "#0  0x00007fa2473e418d in PMPI_Gather () from /opt/openmpi/lib/libmpi.so.40\n"
      "#1  0x00007fa2476c3d46 in horovod::common::RunLoopOnce (\n    state=..., is_coordinator=is_coordinator@entry=";
  const Fragment first = ReadDump(frames + "true)\n    at horovod/common/operations.cc:1780\n");
  ASSERT_EQ(first.speakers.size(), 1u);
  EXPECT_EQ(first.speakers[0].rank, Rank{0});
  EXPECT_EQ(first.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_FALSE(ReadDump(frames + "false)\n").speakers[0].rank.known());
}

TEST(GdbSession, AHeadingOfOnlyARankIsOne) {
  const std::string stack =
      "\n```\nThread 2 (Thread 0x7f11be0b1700 (LWP 510)):\n#0  0x00007f in poll () from /lib/libc.so.6\n";
  EXPECT_EQ(ReadDump("rank 3 (part of it)\n" + stack).speakers[0].rank, Rank{3});
  EXPECT_EQ(ReadDump("Rank 3\n" + stack).speakers[0].rank, Rank{3});
  EXPECT_FALSE(ReadDump("rank 3 works (mostly)\n" + stack).speakers[0].rank.known());
  EXPECT_FALSE(ReadDump("see rank 3\n" + stack).speakers[0].rank.known());
}

}  // namespace
}  // namespace tacet
