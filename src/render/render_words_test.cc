// SPDX-License-Identifier: Apache-2.0
#include "render/render_words.h"

#include <gtest/gtest.h>

#include "render/render_names.h"

namespace tacet {
namespace {

TEST(RenderWords, FoldsNeighboursIntoRanges) {
  EXPECT_EQ(FoldRanks({}), "");
  EXPECT_EQ(FoldRanks({7}), "7");
  EXPECT_EQ(FoldRanks({3, 0, 1, 1}), "0-1,3");
  EXPECT_EQ(FoldRanks({2147483646, 2147483647}), "2147483646-2147483647");
}

TEST(RenderWords, CutsALongListAtAComma) {
  EXPECT_EQ(FoldRanks({0, 2, 4, 6, 8, 10}, 8), "0,2,...");
  EXPECT_EQ(FoldRanks({0, 2, 4}, 5), "0,2,4");  // no room is kept for dots that are not needed
  EXPECT_EQ(FoldRanks({100000, 200000}, 3), "100000,...");
  EXPECT_EQ(DescribeRanks({0, 2, 4, 6, 8, 10}, 8), "6 ranks (0,2,...)");
}

TEST(RenderWords, SaysRankOrRanks) {
  EXPECT_EQ(DescribeRanks({}), "");
  EXPECT_EQ(DescribeRanks({5}), "rank 5");
  EXPECT_EQ(DescribeRanks({5, 5}), "rank 5");
  EXPECT_EQ(DescribeRanks({0, 1}), "ranks 0-1");
}

TEST(RenderWords, LeavesOutWhatIsUnknownOfAnOperation) {
  EXPECT_EQ(DescribeOperation({OpKind::all_reduce, 33, 4198400}), "all_reduce #33 (4.2 MB)");
  EXPECT_EQ(DescribeOperation({OpKind::barrier, -1, -1}), "barrier");
  EXPECT_EQ(DescribeOperation({OpKind::unknown, 4, -1}), "operation #4");
}

TEST(RenderWords, PrefersTheGroupNamePeopleKnow) {
  EXPECT_EQ(DescribeGroup({"5", "mesh_tp", {}}), "mesh_tp (group 5)");
  EXPECT_EQ(DescribeGroup({"default_pg", "default_pg", {}}), "default_pg");
  EXPECT_EQ(DescribeGroup({"0", "", {}}), "group 0");
  EXPECT_EQ(DescribeGroup({"", "mesh_dp", {}}), "mesh_dp");
  EXPECT_EQ(DescribeGroup({"1", "undefined", {}}), "group 1") << "PyTorch's placeholder is no name";
}

TEST(RenderWords, NamesAPlaceByLineOrOffset) {
  EXPECT_EQ(DescribeSource({"a.log", 12, 800, "", ""}), "a.log:12");
  EXPECT_EQ(DescribeSource({"dump", 0, 0x1f0, "", ""}), "dump@0x1f0");
  EXPECT_EQ(DescribeSource({"dump", 0, 0, "", ""}), "dump");
  EXPECT_EQ(DescribeSource({"", 12, 800, "", ""}), "");
}

TEST(RenderWords, RoundsBytesWithoutShowingAThousand) {
  EXPECT_EQ(DescribeBytes(0), "0 B");
  EXPECT_EQ(DescribeBytes(999), "999 B");
  EXPECT_EQ(DescribeBytes(1000), "1.0 kB");
  EXPECT_EQ(DescribeBytes(999999), "1.0 MB");
  EXPECT_EQ(DescribeBytes(999600), "1.0 MB");
  EXPECT_EQ(DescribeBytes(999400), "999 kB");
  EXPECT_EQ(DescribeBytes(200000), "200 kB");
  EXPECT_EQ(DescribeBytes(UINT64_MAX), "18.4 EB");
}

TEST(RenderWords, ShowsCharactersThatHideOrReorder) {
  EXPECT_EQ(CleanLine("a\x1b[31mb\tc\xff"), "a\\x1b[31mb c\\xff");
  EXPECT_EQ(CleanLine("flip\xe2\x80\xae.gpj"), "flip\\u202e.gpj");
  EXPECT_EQ(CleanLine("\xe2\x80\x8e\xe2\x80\xa8\xe2\x81\xa6\xe2\x81\xa9"), "\\u200e\\u2028\\u2066\\u2069");
  EXPECT_EQ(CleanLine("caf\xc3\xa9 \xe2\x80\x94 \xe2\x82\xac"), "caf\xc3\xa9 \xe2\x80\x94 \xe2\x82\xac");
  EXPECT_EQ(CleanLine("cut \xe2\x80"), "cut \\xe2\\x80");
  EXPECT_EQ(CleanLine("line\nbreak"), "line\\x0abreak");
  EXPECT_EQ(CleanText("one\r\ntwo\x07\n"), "one\ntwo\\x07\n");
}

TEST(RenderNames, AreReadAsTheyAreWritten) {
  for (const std::string_view name : kOutputFormatNames) EXPECT_EQ(Name(ParseOutputFormat(name).value()), name);
  EXPECT_FALSE(ParseOutputFormat("yaml"));
  EXPECT_FALSE(ParseOutputFormat(""));
  EXPECT_EQ(ParseOutputFormat("sarif"), OutputFormat::sarif);
}

TEST(RenderWords, AMessageOfSeveralLinesIsToldInOne) {
  CitedEvidence evidence{"a.log", 3, 0, "error of CUDA: this is bad.\n  Last error: no interface\nhint",
                         "why it failed"};
  evidence.quote = "something else";
  EXPECT_EQ(SaysOf(evidence), "why it failed: error of CUDA: this is bad. Last error: no interface; hint");
}

}  // namespace
}  // namespace tacet
