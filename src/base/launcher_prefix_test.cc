// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_prefix.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

using Kind = LauncherPrefix::Kind;

struct Taken {
  Kind kind;
  int64_t number;
  std::string rest;
  bool operator==(const Taken&) const = default;
};
void PrintTo(const Taken& taken, std::ostream* out) {
  *out << int(taken.kind) << " " << taken.number << " '" << taken.rest << "'";
}

Taken Take(std::string_view line) {
  const LauncherPrefix prefix = TakeLauncherPrefix(line);
  return {prefix.kind, prefix.number, std::string(line)};
}

TEST(LauncherPrefix, TakesWhatLaunchersWrite) {
  EXPECT_EQ(Take("3: hello"), (Taken{Kind::task, 3, "hello"}));
  EXPECT_EQ(Take(" 3: hello"), (Taken{Kind::task, 3, "hello"}));
  EXPECT_EQ(Take("03:   File \"x\""), (Taken{Kind::task, 3, "  File \"x\""}));
  EXPECT_EQ(Take("3:"), (Taken{Kind::task, 3, ""}));
  EXPECT_EQ(Take("[1,12]<stdout>:hello"), (Taken{Kind::task, 12, "hello"}));
  EXPECT_EQ(Take("[1,12]<stderr>: hello"), (Taken{Kind::task, 12, "hello"}));
  EXPECT_EQ(Take("[rank7]: Traceback"), (Taken{Kind::rank, 7, "Traceback"}));
  EXPECT_EQ(Take("[rank7]:[E1115 x]"), (Taken{Kind::rank, 7, "[E1115 x]"}));
  EXPECT_EQ(Take("[default3]:    f (a.py:1)"), (Taken{Kind::local, 3, "    f (a.py:1)"}));
  EXPECT_EQ(Take("(train pid=99, ip=10.0.0.1) x"), (Taken{Kind::process, 99, "x"}));
  EXPECT_EQ(Take("[pod/trainer-3/main] x"), (Taken{Kind::pod, -1, "x"}));
}

TEST(LauncherPrefix, TheGlobalRankWinsOverOtherPrefixesOfALine) {
  EXPECT_EQ(Take("0: [rank5]: x"), (Taken{Kind::rank, 5, "x"}));
  std::string_view line = "0: [rank5]: x";
  EXPECT_EQ(TakeLauncherPrefix(line).label, "0: [rank5]: ");
}

TEST(LauncherPrefix, LeavesOrdinaryLinesAlone) {
  for (const char* text : {"", "hello", "00:15:37 up", "12345678: too long", "3:4", "[  12.345] kernel",
                           "[Tue Nov 15 00:15:37 2026] x", "(gdb) bt", "[New LWP 3]", "[rank]: x", "2026-11-15 x"})
    EXPECT_EQ(Take(text), (Taken{Kind::none, -1, text})) << text;
}

TEST(LauncherPrefix, PodWordsNeedADash) {
  std::string_view line = "trainer-3 hello", pod;
  ASSERT_TRUE(TakePodWord(line, &pod));
  EXPECT_EQ(pod, "trainer-3");
  EXPECT_EQ(line, "hello");
  line = "hello world";
  EXPECT_FALSE(TakePodWord(line, &pod));
  for (std::string_view item : {"- {rank: 1, step: 3}", "-- done", "-1 is padding"})
    EXPECT_FALSE(TakePodWord(item, &pod)) << item;
}

TEST(LauncherPrefix, DropsColoursAndSurvivesCutCodes) {
  EXPECT_EQ(DropTerminalCodes("\x1b[1m\x1b[33mred\x1b[0m x"), "red x");
  EXPECT_EQ(DropTerminalCodes("a\x1b["), "a");
  EXPECT_EQ(DropTerminalCodes("a\x1b"), "a");
}

TEST(LauncherPrefix, ANumberBehindTheTagOfAProcessIsItsOwnText) {
  EXPECT_EQ(Take("[1,0]<stderr>:3: [grads_17, grads_18 ...]"), (Taken{Kind::task, 0, "3: [grads_17, grads_18 ...]"}));
  EXPECT_EQ(Take("[rank2]: 7: x"), (Taken{Kind::rank, 2, "7: x"}));
  EXPECT_EQ(Take("[pod/trainer-0/main] 3: x").rest, "x");  // srun inside a pod
}

TEST(LauncherPrefix, TagsInsideALineAreTakenOut) {
  EXPECT_FALSE(HasInnerTags("[1,0]<stderr>:whole"));
  const std::string torn = "09:14 node -- [1,0]<stderr>:[[1,0]<stderr>:2020[1,0]<stdout>:: W[1,0]<stderr>:";
  EXPECT_TRUE(HasInnerTags(torn));
  EXPECT_EQ(SplitAtInnerTags(torn), std::vector<std::string>{"09:14 node -- [1,0]<stderr>:[2020: W"});
  // Another process begins a line of its own.
  EXPECT_EQ(SplitAtInnerTags("[1,0]<stderr>:a[1,3]<stderr>:b"),
            (std::vector<std::string>{"[1,0]<stderr>:a", "[1,3]<stderr>:b"}));
  EXPECT_EQ(SplitAtInnerTags("x]<stdout>:y]<stderr>:z"), std::vector<std::string>{"x]<stdout>:y]<stderr>:z"});
}

TEST(LauncherPrefix, LinesOfPyTorchThatLostTheirEndsAreSplit) {
  EXPECT_FALSE(HasInnerTags("[rank3]:[E723 01:58:45 x.cpp:1] timed out"));
  EXPECT_FALSE(HasInnerTags("[rank3]: see [rank4]: both"));
  const std::string glued =
      "12/90 [00:10<01:05, 1.2s/it][rank3]:[E723 01:58 x] a. [rank3]:[E723 01:59 y] b[rank1]:[W x]";
  EXPECT_TRUE(HasInnerTags(glued));
  EXPECT_EQ(SplitAtInnerTags(glued), (std::vector<std::string>{"12/90 [00:10<01:05, 1.2s/it][rank3]:[E723 01:58 x] a. ",
                                                               "[rank3]:[E723 01:59 y] b", "[rank1]:[W x]"}));
}

}  // namespace
}  // namespace tacet
