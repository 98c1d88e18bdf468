// SPDX-License-Identifier: Apache-2.0
#include "evidence/stacks/stacks_parse.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "evidence/format.h"
#include "evidence/stacks/stacks_lines.h"

namespace tacet {
extern const Format kStacksFormat;

namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/stacks/samples/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Fragment Read(std::string_view bytes, std::string_view path) {
  Fragment out;
  kStacksFormat.read({path, bytes, false}, out);
  EXPECT_EQ(out.bytes.total, bytes.size());
  EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, bytes.size());
  return out;
}
Fragment ReadSample(const std::string& name) { return Read(Sample(name), name); }

std::string Show(const Fragment& fragment, const ThreadStack& thread, size_t frame) {
  const auto& frames = fragment.stacks.Get(thread.stack);
  if (frame >= frames.size()) return "-";
  return std::string(fragment.strings.Get(frames[frame].function)) + " " +
         std::string(fragment.strings.Get(frames[frame].file)) + ":" + std::to_string(frames[frame].line);
}
size_t Depth(const Fragment& fragment, const ThreadStack& thread) { return fragment.stacks.Get(thread.stack).size(); }

const ThreadStack* Main(const Fragment& fragment) {
  const ThreadStack* found = nullptr;
  for (const auto& thread : fragment.threads)
    if (thread.is_main) found = &thread;
  return found;
}

TEST(StacksFaulthandler, ReadsThreadsInnermostFirstAndTheRankFromTheFileName) {
  const Fragment fragment = ReadSample("faulthandler_host_rank2.txt");
  ASSERT_EQ(fragment.threads.size(), 2u);
  EXPECT_EQ(fragment.threads[0].thread_id, "0x00007f6cdb6ba6c0");
  EXPECT_EQ(Depth(fragment, fragment.threads[0]), 0u);
  EXPECT_FALSE(fragment.threads[0].has_python);
  const ThreadStack& main = fragment.threads[1];
  EXPECT_TRUE(main.is_main);
  EXPECT_TRUE(main.has_python);
  EXPECT_EQ(Show(fragment, main, 0), "load_next_batch_from_storage /srv/train/train.py:124");
  EXPECT_EQ(Show(fragment, main, 4), "<module> /srv/train/train.py:224");
  EXPECT_EQ(main.source.line, 5u);
  EXPECT_EQ(main.first_line, 6u);
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{2});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksFaulthandler, KeepsTheLastLineWithoutNewline) {
  const Fragment fragment = Read("Thread 0x01 (most recent call first):\n  File \"a.py\", line 3 in f", "x");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(Show(fragment, fragment.threads[0], 0), "f a.py:3");
}

TEST(StacksFaulthandler, CountsRepeatedDumpsAndGivesThemInOrder) {
  const Fragment fragment = ReadSample("faulthandler_repeated_rank2.txt");
  // Two timeouts, two SIGUSR1 dumps that have no heading, one more timeout.
  ASSERT_EQ(fragment.threads.size(), 10u);
  ASSERT_EQ(fragment.speakers.size(), 1u);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(fragment.threads[i].dump, i / 2) << i;
    EXPECT_EQ(fragment.threads[i].is_main, i % 2 == 1) << i;
  }
  EXPECT_EQ(fragment.threads[5].state, "current");
  EXPECT_LT(fragment.threads[1].first_line, fragment.threads[9].first_line);
}

TEST(StacksFaulthandler, AThreadThatIsImportingIsNotTheMainThread) {
  const Fragment fragment = ReadSample("faulthandler_cut_at_100_rank1.txt");
  ASSERT_EQ(fragment.threads.size(), 2u);
  EXPECT_EQ(Depth(fragment, fragment.threads[0]), 100u);
  EXPECT_FALSE(fragment.threads[0].is_main);
  EXPECT_TRUE(fragment.threads[1].is_main);
}

TEST(StacksFaulthandler, AThreadInWhichTheFileEndsIsNotTakenForTheMainThread) {
  const std::string helper =
      "Timeout (0:00:28)!\nThread 0x00007f125ef916c0 (most recent call first):\n"
      "  File \"<frozen importlib._bootstrap>\", line 488 in _call_with_frames_removed\n"
      "  File \"/v/lib/python3.12/site-packages/sympy/__init__.py\", line 23 in <module>\n";
  const std::string rest = "  File \"/usr/lib/python3.12/threading.py\", line 1032 in _bootstrap\n\n";
  const std::string main =
      "Thread 0x00007f12c2af2080 (most recent call first):\n  File \"/srv/train.py\", line 9 in step\n";
  const std::string end = "  File \"/srv/train.py\", line 90 in <module>\n";
  const auto is_main = [](const std::string& text) { return Read(text, "stack_rank0.txt").threads.back().is_main; };
  EXPECT_FALSE(is_main(helper));
  EXPECT_FALSE(is_main(helper + rest));
  EXPECT_FALSE(is_main(helper + rest + main));
  EXPECT_TRUE(is_main(helper + rest + main + end));
}

TEST(StacksFaulthandler, TheLastThreadIsTheMainOneEvenWithoutFrames) {
  const Fragment fragment = ReadSample("faulthandler_no_frame_rank1.txt");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_TRUE(fragment.threads[0].is_main);
  EXPECT_FALSE(fragment.threads[0].has_python);
}

TEST(StacksFaulthandler, AWorkerThreadThatDumpsOnlyItselfIsNotTheMainThread) {
  const Fragment fragment = Read(
      "Current thread 0x07 (most recent call first):\n  File \"a.py\", line 3 in f\n  File \"threading.py\", line 9 in "
      "_bootstrap\n",
      "x");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_FALSE(fragment.threads[0].is_main);
}

TEST(StacksFaulthandler, NoMainThreadIsClaimedWhenThreadsWereLeftOut) {
  const Fragment fragment = Read(
      "Timeout (0:00:01)!\nThread 0x07 (most recent call first):\n  <no Python frame>\n\n"
      "Thread 0x08 (most recent call first):\n  File \"a.py\", line 3 in f\n...\n",
      "x");
  EXPECT_EQ(Main(fragment), nullptr);
  ASSERT_EQ(fragment.diagnostics.size(), 1u);
  EXPECT_EQ(fragment.diagnostics[0].code, "threads-left-out");
}

TEST(StacksFaulthandler, AProgramStartedAsAModuleHasAMainThread) {
  const Fragment fragment = Read(
      "Timeout (0:00:01)!\nThread 0x07 (most recent call first):\n  File \"a.py\", line 3 in f\n"
      "  File \"<frozen runpy>\", line 198 in _run_module_as_main\n\n"
      "Thread 0x08 (most recent call first):\n  File \"a.py\", line 4 in g\n",
      "x");
  ASSERT_EQ(fragment.threads.size(), 2u);
  EXPECT_TRUE(fragment.threads[0].is_main);
  EXPECT_FALSE(fragment.threads[1].is_main);
}

TEST(StacksFaulthandler, ASegmentationFaultIsAnEventWithItsPlace) {
  const Fragment fragment = ReadSample("faulthandler_segfault_rank1.txt");
  ASSERT_EQ(fragment.events.size(), 1u);
  const Event& event = fragment.events[0];
  EXPECT_EQ(event.kind, EventKind::segfault);
  EXPECT_EQ(event.source.line, 1u);
  EXPECT_EQ(event.text, "Fatal Python error: Segmentation fault");
  EXPECT_EQ(event.As<Segfault>().place.function, "bad");
  EXPECT_EQ(event.As<Segfault>().place.file, "/srv/train/crash.py");
  EXPECT_EQ(event.As<Segfault>().place.line, 4u);
  ASSERT_LT(event.speaker, fragment.speakers.size());
  EXPECT_EQ(fragment.speakers[event.speaker].rank, Rank{1});
  EXPECT_EQ(fragment.threads.back().state, "current");
  EXPECT_TRUE(fragment.threads.back().is_main);
}

TEST(StacksFaulthandler, AnAbortIsAnEventOfItsOwnKind) {
  const Fragment fragment = ReadSample("faulthandler_abort.txt");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::abort_signal);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksFaulthandler, ReadsThreadNamesAndTheCStackOfPython314) {
  const Fragment fragment = ReadSample("faulthandler_python314.txt");
  ASSERT_EQ(fragment.threads.size(), 3u);
  EXPECT_EQ(fragment.threads[0].thread_name, "pin_memory");
  EXPECT_TRUE(fragment.threads[1].is_main);
  EXPECT_EQ(fragment.threads[2].thread_name, "C stack");
  EXPECT_FALSE(fragment.threads[2].has_python);
  EXPECT_EQ(Show(fragment, fragment.threads[2], 2),
            "fr_decode_block /opt/venv/lib/python3.14/site-packages/fastread/_io.so:0");
  EXPECT_EQ(fragment.events[0].As<Segfault>().place.function, "read");
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksFaulthandler, UnreadableFilesAndLinesAreQuestionMarks) {
  FrameLine frame;
  ASSERT_TRUE(ParseFaulthandlerFrame("  File ???, line ??? in f", &frame));
  EXPECT_EQ(frame.file, "");
  EXPECT_EQ(frame.code_line, 0u);
  EXPECT_FALSE(ParseFaulthandlerFrame("  File \"a.py\", line 99999999999999 in f", &frame));
  EXPECT_FALSE(ParseFaulthandlerFrame("  File \"a.py\", line 3, in f", &frame))
      << "that is a traceback of an exception";
}

TEST(StacksPrefixes, InterleavedRanksAreToldApartByTheLaunchersLabel) {
  const Fragment fragment = ReadSample("faulthandler_srun_label.txt");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
  EXPECT_EQ(fragment.speakers[1].rank, Rank{1});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  int mains[2] = {0, 0};
  for (const auto& thread : fragment.threads) {
    if (!thread.is_main) continue;
    ++mains[thread.speaker];
    EXPECT_EQ(Depth(fragment, thread), 4u);
    EXPECT_EQ(Show(fragment, thread, 3), "<module> /srv/train/train.py:286");
  }
  EXPECT_EQ(mains[0], 1);
  EXPECT_EQ(mains[1], 1);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksPrefixes, EveryLauncherStyleIsTakenOff) {
  const auto with = [](const std::string& prefix) {
    const std::string text = prefix + "Timeout (0:00:28)!\n" + prefix + "Thread 0x01 (most recent call first):\n" +
                             prefix + "  File \"a.py\", line 3 in f\n" + prefix +
                             "  File \"a.py\", line 9 in <module>\n";
    Fragment fragment = Read(text, "job.log");
    EXPECT_EQ(fragment.threads.size(), 1u) << prefix;
    EXPECT_EQ(fragment.bytes.not_understood, 0u) << prefix;
    EXPECT_EQ(Depth(fragment, fragment.threads.at(0)), 2u) << prefix;
    return fragment.speakers.at(0);
  };
  EXPECT_EQ(with("3: ").rank, Rank{3});
  EXPECT_EQ(with("[1,3]<stderr>:").rank, Rank{3});
  EXPECT_EQ(with("[rank3]: ").rank_certainty, Certainty::stated);
  EXPECT_EQ(with("0: [rank3]:").rank, Rank{3});
  EXPECT_EQ(with("[default3]:").rank, Rank{3});
  EXPECT_EQ(with("(RayTrainWorker pid=1234, ip=10.0.0.7) ").pid, 1234);
  EXPECT_FALSE(with("[pod/trainer-3/main] ").rank.known());
  EXPECT_FALSE(with("trainer-3 ").rank.known());
  EXPECT_FALSE(with("trainer-3 main ").rank.known());
}

TEST(StacksPySpy, ReadsProcessesThreadsAndNames) {
  const Fragment fragment = ReadSample("py_spy_rank0.txt");
  ASSERT_EQ(fragment.threads.size(), 3u);
  EXPECT_EQ(fragment.threads[0].state, "active+gil");
  EXPECT_EQ(fragment.threads[0].thread_name, "MainThread");
  EXPECT_TRUE(fragment.threads[0].is_main);
  EXPECT_EQ(Show(fragment, fragment.threads[0], 0), "all_reduce torch/distributed/distributed_c10d.py:2501");
  EXPECT_EQ(fragment.threads[1].thread_name, "Thread-1 (_pin_memory_loop)");
  EXPECT_FALSE(fragment.threads[1].is_main);
  EXPECT_EQ(fragment.threads[2].thread_id, "41402");
  EXPECT_EQ(Depth(fragment, fragment.threads[2]), 0u);
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].pid, 41210);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksPySpy, ReadsNativeFramesAndLeavesLocalsAlone) {
  const Fragment fragment = ReadSample("py_spy_native_locals.txt");
  ASSERT_EQ(fragment.threads.size(), 1u);
  const ThreadStack& main = fragment.threads[0];
  EXPECT_EQ(Depth(fragment, main), 8u);
  EXPECT_EQ(Show(fragment, main, 2), "cudaStreamSynchronize libcudart.so.12:0");
  EXPECT_EQ(
      Show(fragment, main, 3),
      "at::native::_local_scalar_dense_cuda(at::Tensor const&)::{lambda()#1}::operator()() const libtorch_cuda.so:0");
  EXPECT_EQ(Show(fragment, main, 5), "log_loss train.py:61");
  EXPECT_GT(fragment.bytes.ignored, 50u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksPySpy, ColoursOfATerminalDoNotMatter) {
  const Fragment fragment = ReadSample("py_spy_coloured.txt");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(fragment.threads[0].thread_id, "41212");
  EXPECT_EQ(Show(fragment, fragment.threads[0], 0), "get queue.py:171");
  EXPECT_EQ(fragment.speakers[0].pid, 41212);
}

TEST(StacksPySpy, TheRankInTheNameIsNotThatOfAChildProcess) {
  const Fragment fragment = ReadSample("py_spy_subprocesses_rank5.txt");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].pid, 7001);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{5});
  EXPECT_EQ(fragment.speakers[1].pid, 7100);
  EXPECT_FALSE(fragment.speakers[1].rank.known());
}

TEST(StacksPySpy, UnrelatedProcessesInOneFileShareNoRank) {
  const std::string one = "Process 10: a\n\nThread 10 (idle): \"MainThread\"\n    f (a.py:1)\n";
  const std::string two = "Process 11: a\n\nThread 11 (idle): \"MainThread\"\n    f (a.py:1)\n";
  const Fragment fragment = Read(one + two, "node_3.txt");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_FALSE(fragment.speakers[0].rank.known());
  EXPECT_FALSE(fragment.speakers[1].rank.known());
}

TEST(StacksPySpy, APidInTheFileNameIsNoRank) {
  const Fragment fragment =
      Read("Process 4242: a\n\nThread 4242 (idle): \"MainThread\"\n    f (a.py:1)\n", "pyspy_4242.txt");
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_FALSE(fragment.speakers[0].rank.known());
  EXPECT_EQ(fragment.speakers[0].pid, 4242);
}

TEST(StacksPySpy, ReadsJson) {
  const Fragment fragment = ReadSample("py_spy_json_rank4.json");
  ASSERT_EQ(fragment.threads.size(), 2u);
  EXPECT_TRUE(fragment.threads[0].is_main);
  EXPECT_EQ(fragment.threads[0].state, "active");
  EXPECT_EQ(fragment.threads[0].thread_id, "52001");
  EXPECT_EQ(fragment.threads[0].first_line, 10u);
  EXPECT_EQ(Show(fragment, fragment.threads[0], 0),
            "synchronize /opt/venv/lib/python3.10/site-packages/torch/cuda/__init__.py:801");
  EXPECT_EQ(Show(fragment, fragment.threads[0], 1), "<module> /srv/train/tr\xc3\xa4in \"a\".py:12");
  EXPECT_EQ(fragment.threads[1].state, "gil");
  EXPECT_EQ(fragment.speakers[0].pid, 52001);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{4});
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksPySpy, SeveralJsonArraysInOneFileAreAllRead) {
  std::string text = Sample("py_spy_json_rank4.json");
  std::string second = text;
  for (size_t at = 0; (at = second.find("52001", at)) != std::string::npos; ++at) second.replace(at, 5, "52009");
  const Fragment fragment = Read(text + second, "all.json");
  EXPECT_EQ(fragment.threads.size(), 4u);
  EXPECT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
  EXPECT_GT(fragment.threads[2].source.line, 30u);
  EXPECT_EQ(text.size() + second.find('{'), fragment.threads[2].source.offset);
}

TEST(StacksPySpy, CutJsonKeepsWholeThreadsAndSaysSo) {
  const std::string text = Sample("py_spy_json_rank4.json");
  const Fragment fragment = Read(std::string_view(text).substr(0, text.size() - 60), "x.json");
  EXPECT_EQ(fragment.threads.size(), 1u);
  ASSERT_EQ(fragment.diagnostics.size(), 1u);
  EXPECT_EQ(fragment.diagnostics[0].code, "truncated");
  EXPECT_GT(fragment.bytes.not_understood, 0u);
}

TEST(StacksDebugServer, RanksAndHostsComeFromTheSections) {
  for (const char* name : {"debug_server_stacks.txt", "debug_server_pyspy.txt"}) {
    const Fragment fragment = ReadSample(name);
    ASSERT_GE(fragment.speakers.size(), 2u) << name;
    EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
    EXPECT_EQ(fragment.speakers[1].rank, Rank{1});
    EXPECT_EQ(fragment.speakers[1].rank_certainty, Certainty::stated);
    EXPECT_EQ(fragment.speakers[1].host, "node7");
    const ThreadStack* main = Main(fragment);
    ASSERT_NE(main, nullptr);
    EXPECT_EQ(main->speaker, 1u);
    EXPECT_EQ(fragment.strings.Get(fragment.stacks.Get(main->stack)[0].function), "score");
    EXPECT_EQ(fragment.bytes.not_understood, 0u) << name;
  }
  EXPECT_EQ(ReadSample("debug_server_pyspy.txt").speakers[1].pid, 912);
}

TEST(StacksCollections, FilesShownOneAfterAnotherKeepTheirNames) {
  const Fragment fragment = Read(
      "==> stack_rank3.txt <==\nTimeout (0:00:28)!\nThread 0x1 (most recent call first):\n"
      "  File \"a.py\", line 1 in <module>\n\n==> stack_rank4.txt <==\nTimeout (0:00:28)!\n"
      "Thread 0x1 (most recent call first):\n  File \"a.py\", line 2 in <module>\n",
      "all.txt");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[1].rank, Rank{4});
  EXPECT_EQ(fragment.threads[1].dump, 0u);
}

TEST(StacksGdb, ReadsThreadsFramesAndThePid) {
  const Fragment fragment = ReadSample("gdb_nccl_hang.txt");
  ASSERT_EQ(fragment.threads.size(), 3u);
  EXPECT_EQ(fragment.threads[0].thread_name, "pt_nccl_watchdg");
  EXPECT_EQ(fragment.threads[0].thread_id, "4321");
  EXPECT_EQ(Show(fragment, fragment.threads[0], 1),
            "std::condition_variable::__wait_until_impl<std::chrono::duration<long, std::ratio<1l, 1000000000l> > > "
            "/usr/include/c++/11/condition_variable:201");
  EXPECT_EQ(
      Show(fragment, fragment.threads[0], 2),
      "c10d::ProcessGroupNCCL::watchdogHandler() /opt/venv/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so:0");
  const ThreadStack& main = fragment.threads[2];
  EXPECT_TRUE(main.is_main);
  EXPECT_FALSE(main.has_python);
  EXPECT_EQ(Show(fragment, main, 1), "socketProgressOpt misc/socket.cc:54") << "the line was wrapped";
  EXPECT_EQ(Show(fragment, main, 2), "bootstrapNetRecv bootstrap.cc:98");
  EXPECT_EQ(Show(fragment, main, 4),
            "c10d::ProcessGroupNCCL::getNCCLComm(std::string const&, c10::Device&, c10d::OpType, int, bool) "
            "/opt/venv/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so:0");
  EXPECT_EQ(fragment.speakers[0].pid, 4242);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksGdb, ReadsARealDumpOfAPythonProcess) {
  const Fragment fragment = ReadSample("gdb_python_threads.txt");
  ASSERT_EQ(fragment.threads.size(), 3u);
  EXPECT_TRUE(fragment.threads[2].is_main);
  EXPECT_EQ(Depth(fragment, fragment.threads[2]), 24u);
  EXPECT_EQ(Show(fragment, fragment.threads[2], 2), "time_sleep ./Modules/timemodule.c:383");
  EXPECT_EQ(fragment.speakers[0].pid, 19802);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksGdb, ReadsPythonFramesOfPyBt) {
  const Fragment fragment = ReadSample("gdb_py_bt.txt");
  ASSERT_EQ(fragment.threads.size(), 3u);
  EXPECT_TRUE(fragment.threads[2].is_main);
  EXPECT_TRUE(fragment.threads[2].has_python);
  EXPECT_EQ(Show(fragment, fragment.threads[2], 0), "sleep <built-in>:0");
  EXPECT_EQ(Show(fragment, fragment.threads[2], 1), "step /srv/train/train.py:6");
  EXPECT_EQ(Depth(fragment, fragment.threads[0]), 0u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksGdb, DumpsOfSeveralProcessesOneAfterAnotherAreSeveralProcesses) {
  const std::string tail = "#0  0x01 in poll () from /lib/libc.so.6\n";
  const Fragment fragment =
      Read("Thread 2 (Thread 0x7f1 (LWP 11) \"a\"):\n" + tail + "\nThread 1 (Thread 0x7f0 (LWP 10) \"python\"):\n" +
               tail + "\nThread 2 (Thread 0x7f1 (LWP 21) \"a\"):\n" + tail +
               "\nThread 1 (Thread 0x7f0 (LWP 20) \"python\"):\n" + tail,
           "all.txt");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].pid, 10);
  EXPECT_EQ(fragment.speakers[1].pid, 20);
}

TEST(StacksGdb, FrameForms) {
  FrameLine frame;
  ASSERT_TRUE(ParseGdbFrame("#2  <signal handler called>", &frame));
  EXPECT_EQ(frame.function, "<signal handler called>");
  ASSERT_TRUE(ParseGdbFrame("#3  0x0000000000000000 in ?? ()", &frame));
  EXPECT_EQ(frame.function, "??");
  ASSERT_TRUE(ParseGdbFrame("#4  (anonymous namespace)::Reader::next(int) (this=0x0, n=<optimized out>) at r.cc:7",
                            &(frame = {})));
  EXPECT_EQ(frame.function, "(anonymous namespace)::Reader::next(int)");
  EXPECT_EQ(frame.file, "r.cc");
  EXPECT_EQ(frame.code_line, 7u);
  ASSERT_TRUE(ParseGdbFrame("#5  std::ostream::operator<< (this=0x0) at o.cc:9", &(frame = {})));
  EXPECT_EQ(frame.function, "std::ostream::operator<<");
  ASSERT_TRUE(ParseGdbFrame("#4 c10d::Watchdog::run() from ProcessGroupNCCL.cpp:2200", &(frame = {})));
  EXPECT_EQ(frame.function, "c10d::Watchdog::run()");
  EXPECT_EQ(frame.code_line, 2200u);
  EXPECT_FALSE(ParseGdbFrame("#1 priority of the day", &frame));
  EXPECT_FALSE(ParseGdbFrame("#", &frame));
}

TEST(StacksTorch, ReadsCppFramesThatStandAlone) {
  const Fragment fragment = ReadSample("torch_cpp_frames.txt");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(Depth(fragment, fragment.threads[0]), 5u);
  EXPECT_EQ(Show(fragment, fragment.threads[0], 2),
            "c10d::ProcessGroupNCCL::Watchdog::runLoop() "
            "/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so:0");
  EXPECT_EQ(Show(fragment, fragment.threads[0], 3), "<unknown function> /lib/x86_64-linux-gnu/libstdc++.so.6:0");
  EXPECT_FALSE(fragment.threads[0].is_main);
}

TEST(StacksRecognise, EverySampleIsRecognisedAndReadWithoutRest) {
  int seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TACET_SOURCE_DIR) + "/src/evidence/stacks/samples")) {
    const std::string name = entry.path().filename();
    const std::string text = Sample(name);
    EXPECT_EQ(kStacksFormat.recognise(std::string_view(text).substr(0, kPrefixBytes), "x"), Recognition::yes) << name;
    EXPECT_EQ(Read(text, name).bytes.not_understood, 0u) << name;
    ++seen;
  }
  EXPECT_GE(seen, 15);
}

TEST(StacksRecognise, SaysNoToOtherTools) {
  const std::string_view others[] = {
      "",
      "[rank0]:[E1115 00:10:26.1 ProcessGroupNCCL.cpp:688] [Rank 0] Watchdog caught collective operation timeout\n"
      "Exception raised from checkTimeout at ProcessGroupNCCL.cpp:690 (most recent call first):\n"
      "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f2a in /x/libc10.so)\n"
      "frame #1: c10d::ProcessGroupNCCL::Watchdog::runLoop() + 0x14c (0x7f2a in /x/libtorch_cuda.so)\n"
      "frame #2: clone + 0x44 (0x7f2a in /lib/libc.so.6)\n"
      "terminate called after throwing an instance of 'c10::DistBackendError'\n",
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 3, in <module>\n    main()\nValueError: x\n",
      "node7:123:456 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n",
      "=== Rank 0: http://node7:34011 ===\n{\"a\": 1}\n",
      "[{\"name\": \"x\", \"ph\": \"X\", \"ts\": 1}]",
      "[  146.183052] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL)\n",
      "#       size         count      type   redop    root     time   algbw\n     1024           256     float     "
      "sum      -1    9.31    0.11\n",
      "Process 3: started\nThread pool ready\n",
      "\x80\x02}q\x01(X\x07\x00\x00\x00"
      "entries",
  };
  for (const auto text : others)
    EXPECT_EQ(kStacksFormat.recognise(text, "stack_rank0.txt"), Recognition::no) << text.substr(0, 80);
}

TEST(StacksRecognise, ADumpInsideALongLogIsOnlyMaybeAStackFile) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "step " + std::to_string(i) + " loss 0.1\n";
  text += "Timeout (0:00:28)!\nThread 0x01 (most recent call first):\n  File \"a.py\", line 1 in f\n";
  EXPECT_EQ(kStacksFormat.recognise(text, "stderr.log"), Recognition::maybe);
  const Fragment fragment = Read(text, "rank_1/stderr.log");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(fragment.threads[0].source.line, 52u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{1});
}

TEST(StacksImport, ANumberBesideTheToolsNameIsARankWhereItIsNotThePid) {
  const std::string text = "Process 20005: a\n\nThread 20005 (idle): \"MainThread\"\n    f (a.py:1)\n";
  for (const char* name : {"pyspy_5.txt", "py-spy-5.txt", "dumps/pyspy_5.txt"}) {
    EXPECT_EQ(Read(text, name).speakers[0].rank, Rank{5}) << name;
  }
  for (const char* name : {"pyspy_20005.txt", "pyspy_31337.txt", "pyspy.txt"})
    EXPECT_FALSE(Read(text, name).speakers[0].rank.known()) << name;
}

TEST(StacksHostile, EveryPrefixOfEverySampleAddsUp) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TACET_SOURCE_DIR) + "/src/evidence/stacks/samples")) {
    const std::string text = Sample(entry.path().filename());
    for (size_t cut = 0; cut <= text.size(); cut += text.size() > 4000 ? 37 : 1) {
      Read(std::string_view(text).substr(0, cut), "x");
      kStacksFormat.recognise(std::string_view(text).substr(0, cut), "x");
    }
  }
}

TEST(StacksHostile, EndlessRecursionKeepsOnlyTheInnermostFrames) {
  std::string text = "Process 1: a\n\nThread 1 (idle): \"MainThread\"\n";
  for (int i = 0; i < 5000; ++i) text += "    f" + std::to_string(i) + " (a.py:1)\n";
  const Fragment fragment = Read(text, "x");
  ASSERT_EQ(fragment.threads.size(), 1u);
  EXPECT_EQ(Depth(fragment, fragment.threads[0]), kMaxFramesKept);
  EXPECT_EQ(Show(fragment, fragment.threads[0], 0), "f0 a.py:1");
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(StacksHostile, NumbersTooLargeAreNoRanksOrPids) {
  const Fragment fragment = Read(
      "=== Rank 99999999999999999999: http://a:1 ===\nProcess 99999999999999999999: a\n"
      "Thread 0x1 (most recent call first):\n  File \"a.py\", line 1 in f\n",
      "x");
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_FALSE(fragment.speakers[0].rank.known());
  EXPECT_EQ(fragment.speakers[0].pid, -1);
}

// Four processes write into one file; a blank line stands between the threads of one dump, none between two dumps.
TEST(StacksFaulthandler, DumpsOfSeveralProcessesInOneFileAreToldApart) {
  const Fragment fragment = Read(
      "Thread 0x00007f0000000001 (most recent call first):\n"
      "  <no Python frame>\n"
      "\n"
      "Current thread 0x00007f0000000002 (most recent call first):\n"
      "  File \"/job/a.py\", line 5 in step\n"
      "  File \"/job/a.py\", line 9 in <module>\n"
      "Thread 0x00007f1000000001 (most recent call first):\n"
      "  <no Python frame>\n"
      "\n"
      "Current thread 0x00007f1000000002 (most recent call first):\n"
      "  File \"/job/a.py\", line 7 in save\n"
      "  File \"/job/a.py\", line 9 in <module>\n",
      "train.log");
  ASSERT_EQ(fragment.threads.size(), 4u);
  EXPECT_EQ(fragment.threads[1].dump, 0u);
  EXPECT_EQ(fragment.threads[2].dump, 1u);
  EXPECT_EQ(fragment.threads[3].dump, 1u);
}

}  // namespace
}  // namespace tacet
