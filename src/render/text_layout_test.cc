// SPDX-License-Identifier: Apache-2.0
#include "render/text_layout.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace tacet {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string PrintTable(const std::vector<TextRow>& rows, size_t width, bool whole) {
  TextPage page(width, false);
  page.Table(rows, 2, whole);
  return page.Take();
}

const std::vector<TextRow> kWide = {{{"RANK"}, {"COMPUTE"}, {"EXPOSED"}, {"COPIES"}, {"HOST WAIT"}, {"LAUNCH"}},
                                    {{"0"}, {"1234.5 ms"}, {"2234.5 ms"}, {"3234.5 ms"}, {"4234.5 ms"}, {"5234.5 ms"}},
                                    {{"1"}, {"6234.5 ms"}, {"7234.5 ms"}, {"8234.5 ms"}, {"9234.5 ms"}, {"1334.5 ms"}}};

// Every line break of these would make a command that cannot be pasted.
TEST(TextLayout, KeepsACommandInOneLine) {
  const auto whole = [](const std::string& text, const std::string& command) {
    for (size_t width = command.size() + 4; width < text.size(); ++width) {
      bool found = false;
      for (const std::string& line : Wrap(text, width)) {
        EXPECT_LE(DisplayWidth(line), width);
        found |= line.find(command) != std::string::npos;
      }
      EXPECT_TRUE(found) << command << " at " << width;
    }
  };
  whole("no known format; `tacet formats` lists what is read", "`tacet formats`");
  whole("See 'tacet help COMMAND' and more. Start with: tacet diagnose FOLDER", "tacet diagnose FOLDER");
  whole("the output of every rank in a file (torchrun --redirects 3 --log-dir DIR, or another way)",
        "torchrun --redirects 3 --log-dir DIR");
  whole("Look at the record: sacct -j JOB -o State,Reason (Slurm) and so on", "sacct -j JOB -o State,Reason");
  whole("NCCL logs with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV of all ranks",
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV");
  whole("what lies between the GPUs of a host (nvidia-smi topo -m), and more of it", "nvidia-smi topo -m");
  // A program's name in a sentence is a word like others.
  EXPECT_EQ(Wrap("torchrun ends all ranks when one of them fails", 12).front(), "torchrun");
}

TEST(TextLayout, KeepsAnIntervalInOneLine) {
  for (size_t width = 24; width < 60; ++width) {
    bool found = false;
    for (const std::string& line : Wrap("the step is longer, interval -15.1 % to +20.2 %, p 0.705", width))
      found |= line.find("-15.1 % to +20.2 %") != std::string::npos;
    EXPECT_TRUE(found) << width;
  }
}

TEST(TextLayout, CutsTheMiddleBetweenWords) {
  EXPECT_EQ(CutMiddle("process group default of ranks 0 to 7 #17", 30), "process group ... 0 to 7 #17");
  EXPECT_EQ(CutMiddle("short", 30), "short");
  // One long word has no other place to be cut at.
  EXPECT_EQ(CutMiddle("libtorch_cuda_linalg.so", 13), "libto...lg.so");
}

TEST(TextLayout, PrintsATableInPartsWhereItsColumnsDoNotFitBesideEachOther) {
  for (const bool whole : {false, true}) {
    const std::string text = PrintTable(kWide, 40, whole);
    for (const std::string& line : LinesOf(text)) EXPECT_LE(DisplayWidth(line), 40U) << line;
    for (const TextRow& row : kWide)
      for (const TextCell& cell : row) EXPECT_NE(text.find(cell.text), std::string::npos) << cell.text << "\n" << text;
    size_t heads = 0;
    for (const std::string& line : LinesOf(text)) heads += line.starts_with("  RANK") ? 1 : 0;
    EXPECT_EQ(heads, 2U) << text;
  }
}

TEST(TextLayout, KeepsATableThatFitsInOnePart) {
  EXPECT_EQ(LinesOf(PrintTable(kWide, 80, false)).size(), 3U);
  EXPECT_EQ(LinesOf(PrintTable(kWide, 80, true)).size(), 3U);
}

TEST(TextLayout, LetsAWholeTableStandOutOfAFile) {
  std::vector<TextRow> rows = {{{"FILE"}, {"LINE"}}, {{std::string(90, 'f')}, {std::string(30, 'l')}}};
  const std::vector<std::string> lines = LinesOf(PrintTable(rows, 100, true));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(DisplayWidth(lines[1]), 2U + 90 + 2 + 30);
}

TEST(TextLayout, RepeatsTwoColumnsWhereTheFirstIsBlankUnderAnEqualOne) {
  const std::vector<TextRow> rows = {{{"operation"}, {"size"}, {"choice"}, {"time"}},
                                     {{"all_reduce"}, {"4 KiB"}, {"Tree LL, the fastest"}, {"55.8 microseconds"}},
                                     {{""}, {"1 MiB"}, {"Ring Simple, of all"}, {"99.5 microseconds"}}};
  const std::string text = PrintTable(rows, 46, true);
  size_t sizes = 0;
  for (size_t at = text.find("1 MiB"); at != std::string::npos; at = text.find("1 MiB", at + 1)) ++sizes;
  EXPECT_EQ(sizes, 2U) << text;
}

TEST(TextLayout, RepeatsAsManyColumnsAsTellTheRowsApart) {
  const std::vector<TextRow> rows = {
      {{"GROUP"}, {"OPERATION"}, {"UP TO"}, {"TRANSFER"}, {"BUSBW"}},
      {{"default_pg"}, {"all_reduce"}, {"2 MiB"}, {"87.0 microseconds"}, {"31.7 gigabytes"}},
      {{"default_pg"}, {"all_reduce"}, {"1 MiB"}, {"69.0 microseconds"}, {"23.0 gigabytes"}},
      {{"expert_pgs"}, {"all_reduce"}, {"1 MiB"}, {"8.00 microseconds"}, {"2.63 gigabytes"}}};
  const std::vector<std::string> lines = LinesOf(PrintTable(rows, 45, true));
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(lines[6], "  default_pg  2 MiB  31.7 gigabytes");
  EXPECT_EQ(lines[8], "  expert_pgs  1 MiB  2.63 gigabytes");
  EXPECT_EQ(lines[9], "  in all rows: OPERATION = all_reduce");
}

TEST(TextLayout, BreaksALongNameBehindItsParenthesis) {
  const std::vector<std::string> lines = Wrap("profile(...).export_chrome_trace(\"trace.json.gz\") or more", 42);
  EXPECT_EQ(lines[0], "profile(...).export_chrome_trace(");
  EXPECT_EQ(lines[1], "\"trace.json.gz\") or more");
}

TEST(TextLayout, PartsKeepNamesWholeAndLeaveOutRowsWithoutAValue) {
  const std::vector<TextRow> rows = {{{"step"}, {"lost"}, {"left"}, {"taken by"}},
                                     {{"the node with the fewest cards"}, {"0.00"}, {"1.25"}, {""}},
                                     {{"path"}, {"0.05"}, {"1.20"}, {"node0, the way to eth0"}}};
  TextPage page(60, false);
  EXPECT_FALSE(page.Fits(rows, 2));
  page.PartsTable(rows, 2);
  const std::string text = page.Take();
  EXPECT_EQ(text.find("..."), std::string::npos) << text;
  EXPECT_EQ(LinesOf(text).size(), 6U) << text;  // three rows, a blank line, and the one row that has more
  TextPage wide(100, false);
  EXPECT_TRUE(wide.Fits(rows, 2));
}

TEST(TextLayout, SaysOnceWhatAllRowsHaveInATableThatDoesNotFit) {
  const std::vector<TextRow> rows = {{{"GROUP"}, {"OPERATION"}, {"RANKS"}, {"PEAK"}},
                                     {{"default_pg"}, {"all_reduce"}, {"0-7"}, {"21.1 %"}},
                                     {{"default_pg"}, {"all_to_all"}, {"0-7"}, {"0.3 %"}}};
  EXPECT_EQ(PrintTable(rows, 33, false),
            "  GROUP       OPERATION   PEAK\n  default_pg  all_reduce  21.1 %\n  default_pg  all_to_all  0.3 %\n"
            "  in all rows: RANKS = 0-7\n");
  EXPECT_EQ(PrintTable(rows, 22, false),
            "  OPERATION   PEAK\n  all_reduce  21.1 %\n  all_to_all  0.3 %\n  in all rows: GROUP =\n  default_pg, "
            "RANKS =\n  0-7\n");
  EXPECT_EQ(PrintTable(rows, 60, false).find("all rows"), std::string::npos);
}

TEST(TextLayout, KeepsAUnitWithItsNumberAndAnOptionWithItsCommand) {
  EXPECT_EQ(Wrap("saves at most 84.4 % of it", 18), (std::vector<std::string>{"saves at most", "84.4 % of it"}));
  EXPECT_EQ(Wrap("it takes 12 to 13.5 ms, no more", 18),
            (std::vector<std::string>{"it takes", "12 to 13.5 ms, no", "more"}));
  EXPECT_EQ(Wrap("see (dmesg -T) for p 0.04", 11), (std::vector<std::string>{"see", "(dmesg -T)", "for p 0.04"}));
  EXPECT_EQ(Wrap("see kubectl describe pod: p = 0.04", 22),
            (std::vector<std::string>{"see", "kubectl describe pod:", "p = 0.04"}));
  EXPECT_EQ(Wrap("--heads N --sequence N", 20), (std::vector<std::string>{"--heads N", "--sequence N"}));
  EXPECT_EQ(Wrap("see also --strict with it", 22), (std::vector<std::string>{"see also --strict with", "it"}));
  // A sentence that ends in a number, and options that have no command before them.
  EXPECT_EQ(Wrap("there are 12 sends", 12), (std::vector<std::string>{"there are 12", "sends"}));
  EXPECT_EQ(Wrap("one; -x it is", 7), (std::vector<std::string>{"one; -x", "it is"}));
  EXPECT_EQ(Wrap("--long -T", 8), (std::vector<std::string>{"--long", "-T"}))
      << "too long for one line, whatever it is";
}

TEST(TextLayout, PrintsNothingOfATableWithoutContent) {
  EXPECT_EQ(PrintTable({{{"HEAD"}}}, 60, false), "");
  EXPECT_EQ(PrintTable({{{"HEAD"}, {"TOO"}}, {{""}, {""}}}, 60, true), "");
}

}  // namespace
}  // namespace tacet
