// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/pasted_text.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/load.h"

namespace tacet {
namespace {

std::string Clean(std::string_view text) { return UndoPaste(text, FindPaste(text)); }

TEST(PastedText, TakesQuoteMarksOff) {
  EXPECT_EQ(FindPaste("> a\n>\n> b\n"), Paste::quoted);
  EXPECT_EQ(Clean("> a\n>\n> b\n"), "a\n\nb\n");
  EXPECT_EQ(Clean("> > a\n>> b\n"), "a\nb\n");
  EXPECT_EQ(FindPaste(">>> import torch\n>>> torch.cuda.is_available()\n"), Paste::none) << "Python's prompt";
}

TEST(PastedText, TakesEntitiesBackOnlyWhereNoMarkIsLeftAsItIs) {
  EXPECT_EQ(Clean("<pre><code>n:1:2 [0] NCCL INFO init.cc:9 -&gt; 2\n10.0.0.1&lt;0&gt; &quot;x&quot; "
                  "&amp;&amp;\n</code></pre>\n"),
            "n:1:2 [0] NCCL INFO init.cc:9 -> 2\n10.0.0.1<0> \"x\" &&\n\n");
  EXPECT_EQ(FindPaste("loss &lt; 3 and a -> b\n"), Paste::none);
}

TEST(PastedText, TakesLinksToNothingElseOff) {
  EXPECT_EQ(Clean("File \"[train.py](http://train.py/)\", on [10.0.3.7](https://10.0.3.7)\n"),
            "File \"train.py\", on 10.0.3.7\n");
  EXPECT_EQ(FindPaste("see [the guide](http://example.org/guide)\n"), Paste::none) << "it leads somewhere";
}

TEST(PastedText, TakesBlocksOutOfMarkdown) {
  EXPECT_EQ(Clean("It says:\n\n    [rank0]: step 1\n    [rank0]:     indented\n\nand ends.\n"),
            "It says:\n\n[rank0]: step 1\n[rank0]:     indented\n\nand ends.\n");
  EXPECT_EQ(Clean("| log |\n|---|\n| `srun: error: n1: task 0: Killed` |\n"),
            "| log |\n|---|\nsrun: error: n1: task 0: Killed\n");
}

TEST(PastedText, TakesTicksOffCodeThatRunsOverLines) {
  EXPECT_EQ(Clean("`UserWarning: strides do not match\n  return run_backward(x)`\n"),
            "UserWarning: strides do not match\n  return run_backward(x)\n");
  const std::string other = "it says ` somewhere in the middle of this line\n";
  EXPECT_EQ(Clean(other), other);
}

TEST(PastedText, TakesBoldOff) {
  EXPECT_EQ(Clean("[rank3]: **RuntimeError: bad shape**. This error is caused by x\n"),
            "[rank3]: RuntimeError: bad shape. This error is caused by x\n");
  for (const std::string code : {"    f(**kwargs, **more)\n", "x = 2**3 + a**2\n", "** a ** b\n"})
    EXPECT_EQ(Clean("srun: x\n" + code), "srun: x\n" + code);
}

TEST(PastedText, BlanksThatFillAScreenAreNotPrinted) {
  const std::string a(62, 'a'), b(62, 'b'), blanks(66, ' ');
  const std::string text = "  File \"" + a + "\n\", line 8, in f          \n    step()" + blanks + "\n  File \"" + b +
                           "\n\", line 9, in g      \n    go()" + blanks + "\n";
  EXPECT_EQ(FindPaste(text), Paste::wrapped);
  EXPECT_NE(Clean(text).find("bbb\", line 9, in g\n"), std::string::npos) << Clean(text);
}

TEST(PastedText, TakesAFenceOffTheLineItStandsOn) {
  EXPECT_EQ(Clean("```n:1:2 [0] NCCL WARN x```\n"), "n:1:2 [0] NCCL WARN x\n");
  EXPECT_EQ(FindPaste("```console\n$ ls\n```\n"), Paste::none);
}

TEST(PastedText, DropsColoursThatLostTheirEscape) {
  EXPECT_EQ(Clean("[36m(Worker pid=1)[0m [1;31mbad[0m\n"), "(Worker pid=1) bad\n");
  EXPECT_EQ(Clean("\\u001b[31m[rank1]: bad\\u001b[0m\n^[[31mx^[[0m\n"), "[rank1]: bad\nx\n");
  EXPECT_EQ(FindPaste("\x1b[31mbad\x1b[0m\n"), Paste::none) << "the readers drop these";
  EXPECT_EQ(FindPaste("took [10m of 20m]\n"), Paste::none);
}

TEST(PastedText, DropsLineNumbers) {
  EXPECT_EQ(Clean("     9\ta\n    10\tb\n    11\tc\n    12\td\n"), "a\nb\nc\nd\n");
  EXPECT_EQ(FindPaste("0: a\n1: a\n0: b\n1: b\n0: c\n1: c\n"), Paste::none) << "srun's tasks";
}

TEST(PastedText, LeavesATracebackItsIndentation) {
  const std::string traceback =
      "Traceback (most recent call last):\n"
      "  File \"/srv/train.py\", line 12, in main\n"
      "    loss.backward()\n"
      "ValueError: no\n";
  EXPECT_EQ(FindPaste(traceback), Paste::none);
}

TEST(PastedText, JoinsWhatATerminalCut) {
  const std::string line =
      "[rank4]:[E1015 13:02:07.771190320 ProcessGroupNCCL.cpp:633] [Rank 4] Watchdog caught "
      "collective operation timeout: WorkNCCL(SeqNum=3121, OpType=ALLREDUCE, NumelIn=6553600) x.";
  std::string cut;
  for (size_t at = 0; at < line.size(); at += 80) cut += line.substr(at, 80) + "\n";
  cut += "[rank4]: next\n";
  EXPECT_EQ(FindPaste(cut), Paste::wrapped);
  EXPECT_EQ(Clean(cut), line + "\n\n\n[rank4]: next\n") << "the next line keeps its number";
}

TEST(PastedText, JoinsWhatAMailCutBetweenWords) {
  const std::string mail =
      "[rank3]:[E1120 02:02:02.020000000 ProcessGroupNCCL.cpp:632] [Rank 3]\n"
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=777,\n"
      "OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran\n"
      "for 600012 milliseconds before timing out.\n";
  EXPECT_EQ(Clean(mail).find('\n'), mail.size() - 1);
}

TEST(PastedText, JoinsAWatchdogsLineWhereverItWasCut) {
  const std::string text =
      "[default2]:[E ProcessGroupNCCL.cpp:467] [Rank 2] Watchdog caught \n"
      "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) \n"
      "ran for 600341 milliseconds before timing out.\n";
  EXPECT_EQ(Clean(text),
            "[default2]:[E ProcessGroupNCCL.cpp:467] [Rank 2] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600341 milliseconds before timing out."
            "\n\n\n");
}

TEST(PastedText, LinesOfOneLengthAreNotJoined) {
  std::string log;
  for (int i = 100; i < 140; ++i)
    log += "[2026-11-15 00:20:00] iteration " + std::to_string(i) + " loss 3.14159 lr 0.0001 grad 1.0 time 0.500 s\n";
  EXPECT_EQ(FindPaste(log), Paste::none);
  std::string steps;
  for (int i = 100; i < 140; ++i)
    steps +=
        "step " + std::to_string(i) + " of the training run, loss 3.14159, learning rate 0.0001, gradient norm 1.0\n";
  EXPECT_EQ(FindPaste(steps), Paste::none);
  std::string frames = "Traceback (most recent call last):\n";
  for (int i = 0; i < 5; ++i)
    frames +=
        "  File \"/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1751, in _call_impl\n"
        "    return forward_call(*args, **kwargs)\n";
  EXPECT_EQ(FindPaste(frames + "ValueError: no\n"), Paste::none);
}

TEST(PastedText, NeitherEndsNorLosesAnythingOnOddInput) {
  for (const std::string_view text : {"", "\n", ">", "&", "&gt", "<", "    ", "|`", "\t\t\n\t"}) Clean(text);
  EXPECT_EQ(FindPaste(std::string(kMostPasted + 1, '>')), Paste::none);
  const std::string half = "> [rank2]: Traceback (most recent call last):\n> [rank2]: Value";
  EXPECT_FALSE(Clean(half).ends_with('\n')) << "a line that was cut stays cut";
}

TEST(PastedText, WhatIsReadCitesTheFileItself) {
  const std::string log =
      "> [rank2]: Traceback (most recent call last):\n"
      "> [rank2]:   File \"train.py\", line 7, in main\n"
      "> [rank2]: ValueError: bad\n";
  const Fragment fragment = ReadFragment("paste.txt", log, {});
  ASSERT_EQ(fragment.format, "torch_log");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::exception);
  EXPECT_EQ(fragment.events[0].source.line, 3u);
  EXPECT_EQ(fragment.events[0].source.offset, log.rfind("> [rank2]"));
  EXPECT_EQ(fragment.bytes.total, log.size());
}

TEST(PastedText, WhatIsReadBelowACodeSpanCitesItsOwnLine) {
  const std::string text =
      "The command is\n`mpirun -np 2 ./all_reduce_perf -g 1`\nand then:\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n#\n"
      "# Using devices\n"
      "#   Rank  0 Pid  40211 on gpu17 device  0 [0x17] NVIDIA H200\n"
      "#   Rank  0 Pid  40377 on gpu18 device  0 [0x17] NVIDIA H200\n#\n"
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n";
  const Fragment fragment = ReadFragment("paste.txt", text, {});
  ASSERT_EQ(fragment.benchmark_runs.size(), 1u);
  ASSERT_EQ(fragment.benchmark_runs[0].devices.size(), 2u);
  const SourceRef& source = fragment.benchmark_runs[0].devices[0].source;
  EXPECT_EQ(source.line, 7u);
  EXPECT_EQ(text.substr(source.offset, 9), "#   Rank ");
}

TEST(PastedText, TheLabelOfATaskIsNoSentence) {
  for (const char* label : {"2: ", "[1,2]<stderr>:"})
    EXPECT_EQ(FindPaste(std::string(label) + "[rank2]:[E1118 16:00:24.789 ProcessGroupNCCL.cpp:612] [Rank 2] failed\n" +
                        label + "ncclRemoteError: A call failed\n"),
              Paste::none)
        << label;
}

TEST(PastedText, FindsTheLineInASentence) {
  const std::string line = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***";
  EXPECT_EQ(Clean("It stopped with \"" + line + "\" after two days.\n"), line + "\n");
  EXPECT_EQ(Clean("second: it failed ( RuntimeError: Timed out waiting 600000ms ) again\n"),
            "RuntimeError: Timed out waiting 600000ms\n");
  const std::string advice = "To avoid \"" + line + "\" ask for more time.\n";
  EXPECT_EQ(Clean(advice), advice);
  // Where the log itself is there, sentences around it are left alone.
  const std::string with_log = "It said \"" + line + "\":\n" + line + "\n";
  EXPECT_EQ(Clean(with_log), with_log);
}

TEST(PastedText, JoinsWhatIsWrappedInABlockOfCode) {
  const std::string before =
      "Describe the bug, as it happens to me every day when I start the second job on this host\n";
  const std::string after =
      "I set `--master_port 29600` and tried it again with another one, which did not help at all.\n";
  const std::string block =
      "RuntimeError: The server socket has failed to listen on any local network\n"
      "address. The server socket has failed to bind to [::]:29600 (errno: 98 - Address\n"
      "already in use). The server socket has failed to bind to 0.0.0.0:29600 (errno:\n"
      "98 - Address already in use).\n";
  const std::string text = Clean(before + "```\n" + block + "```\n\n" + after);
  EXPECT_NE(text.find("bind to [::]:29600 (errno: 98 - Address already in use)"), std::string::npos) << text;
  EXPECT_NE(text.find(before), std::string::npos) << "what stands around it stays as it is";
}

TEST(PastedText, JoinsMessagesThatEndInTheirMiddle) {
  const std::string head =
      "[rank9]:[E711 03:22:50.307629539 P.cpp:607] [Rank 9] Watchdog caught collective operation timeout:";
  const std::string work = "WorkNCCL(SeqNum=880, OpType=ALLREDUCE, NumelIn=64, Timeout(ms)=600000) ran for 600071";
  EXPECT_EQ(Clean(head + "\n" + work + "\nnext\n"), head + " " + work + "\n\nnext\n");
  EXPECT_EQ(Clean(head + "\n[rank9]: " + work + "\n"), head + " " + work + "\n\n");
  const std::string other = head + "\nstep 3 loss 2\n";
  EXPECT_EQ(Clean(other), other) << "nothing of the message follows";
  EXPECT_EQ(
      Clean(
          "Rank 0 is running collective: A(1),\n\nbut Rank 1 is running collective:\nCollectiveFingerPrint(x,\n y)\n"),
      "Rank 0 is running collective: A(1), but Rank 1 is running collective: CollectiveFingerPrint(x, y)\n\n\n\n\n");
}

TEST(PastedText, ABlockThatIsPastedTwiceCountsOnce) {
  const std::string block = "[rank: 0] Seed set to 7\nInitializing distributed: GLOBAL_RANK: 0, MEMBER: 1/6\n";
  const std::string again = "# [rank: 0] Seed set to 7\n# Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/6\n";
  EXPECT_EQ(Clean("a form\n```\n" + block + "```\nlogs\n```\n" + again + "```\n"),
            "a form\n```\n" + block + "```\nlogs\n```\n\n\n```\n");
  const std::string other = "```\n" + block + "```\n```\n" + block + "and more\n```\n";
  EXPECT_EQ(Clean(other), other) << "two nodes print different lines";
}

}  // namespace
}  // namespace tacet
