// SPDX-License-Identifier: Apache-2.0
#include "render/report/text_render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "render/report/sample_report.h"
#include "render/text_layout.h"

namespace tacet {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool HasText(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

size_t LineOf(const std::vector<std::string>& lines, std::string_view begin) {
  for (size_t i = 0; i < lines.size(); ++i)
    if (lines[i].starts_with(begin)) return i;
  ADD_FAILURE() << "no line begins with " << begin;
  return 0;
}

TEST(TextRender, TellsTheCaseInTheFirstLines) {
  const std::string expected =
      "HANG  rank 5 on node-b\n"
      "  where   all_reduce #13 (4.2 MB) on mesh_tp (group 5)\n"
      "  why     Rank 5 never issued all_reduce #13 on mesh_tp, which ranks 4, 6 and 7 wait in: it is\n"
      "          reading data in load_next_batch (train.py:124).\n"
      "  waits   ranks 0-4,6-7\n"
      "  cause   rank-stuck-on-host (certain): A rank is stuck on the host, outside communication\n"
      "\n"
      "Evidence\n"
      "  1. The main thread of rank 5 is in load_next_batch, in user code.\n"
      "     stack_rank5.txt:6  File \"/srv/train/train.py\", line 124 in load_next_batch\n";
  EXPECT_EQ(RenderText(SampleHang(), {}).substr(0, expected.size()), expected);
}

TEST(TextRender, KeepsTheOrderInWhichThingsAreAsked) {
  const auto lines = Lines(RenderText(SampleHang(), {}));
  const char* order[] = {"HANG",           "Evidence",   "What to do now",
                         "Ranks (8 of 8)", "Also found", "Unknown; capture this next time",
                         "Assumed",        "Inputs",     "Took"};
  for (size_t i = 1; i < std::size(order); ++i) EXPECT_LT(LineOf(lines, order[i - 1]), LineOf(lines, order[i]));
  EXPECT_EQ(lines.back(), "Took 1.42 s. More on this cause: tacet explain rank-stuck-on-host");
}

TEST(TextRender, ACommandStaysInOneLineHoweverNarrowThePage) {
  TextOptions narrow;
  narrow.width = 40;
  const auto lines = Lines(RenderText(SampleHang(), narrow));
  EXPECT_EQ(lines.back(), "  tacet explain rank-stuck-on-host");
  EXPECT_EQ(lines[lines.size() - 2], "Took 1.42 s. More on this cause:");
}

TEST(TextRender, ShowsThreePiecesOfEvidenceAndAllWhenVerbose) {
  const std::string brief = RenderText(SampleHang(), {});
  EXPECT_TRUE(HasText(brief, "  3. The last collective of rank 5"));
  EXPECT_FALSE(HasText(brief, "It is a victim."));
  EXPECT_TRUE(HasText(brief, "and 2 more with --verbose"));
  TextOptions verbose;
  verbose.verbose = true;
  const std::string full = RenderText(SampleHang(), verbose);
  EXPECT_TRUE(HasText(full, "  5. No kernel log mentions rank 5"));
  EXPECT_TRUE(HasText(full, "What it means"));
  EXPECT_TRUE(HasText(full, "How to prevent it"));
  EXPECT_TRUE(HasText(full, "do: Remove NCCL_IB_DISABLE"));
  EXPECT_TRUE(HasText(full, "nccl_trace_rank_7  flight_recorder  7     201 kB"));
}

TEST(TextRender, FoldsRanksThatStandAlike) {
  const auto lines = Lines(RenderText(SampleHang(), {}));
  const size_t table = LineOf(lines, "Ranks");
  EXPECT_TRUE(lines[table + 2].starts_with("  5      node-b  at fault"));
  EXPECT_TRUE(lines[table + 3].starts_with("  0-3    node-a  waits"));
  EXPECT_TRUE(lines[table + 4].starts_with("  4,6-7  node-b  waits"));
  EXPECT_EQ(lines[table + 5], "");
}

TEST(TextRender, ColumnsThatTellLeastGoBeforeOthersAreCut) {
  Report report = SampleHang();
  const auto has = [&](int width, std::string_view head) {
    return RenderText(report, {.width = width}).find(head) != std::string::npos;
  };
  EXPECT_TRUE(has(200, "LAST SEEN"));
  EXPECT_TRUE(has(200, "  HOST  "));
  EXPECT_FALSE(has(70, "LAST SEEN"));
  EXPECT_TRUE(has(70, "  HOST  ")) << "two hosts tell something";
  for (ReportRank& rank : report.ranks) rank.host = "node-a";
  EXPECT_FALSE(has(70, "  HOST  "));
  EXPECT_FALSE(has(200, "  HOST  ")) << "the heading names it";
  report.verdict.ranks.clear();
  EXPECT_TRUE(has(200, "  HOST  "));
  for (ReportRank& rank : report.ranks) rank.last_sign = "12:04:31";
  EXPECT_FALSE(has(200, "LAST SEEN")) << "it is the same of all";
}

TEST(TextRender, EvidenceShowsTheEndOfALongCall) {
  Report report = SampleHang();
  report.findings[0].evidence = {{"nccl_trace_rank_0", 0, 4453,
                                  "all_reduce #22 on default_pg: all_reduce of 8388608 float64, completed, called in "
                                  "compute_loss (train.py:94)",
                                  "rank 0 issued this"}};
  const std::string text = RenderText(report, {});
  EXPECT_NE(text.find("called in compute_loss (train.py:94)\n"), std::string::npos) << text;
  report.findings[0].evidence[0].excerpt = std::string(400, 'x');
  EXPECT_NE(RenderText(report, {}).find("xxx...\n"), std::string::npos);
}

TEST(TextRender, CutsCellsInTheMiddleSoThatTheStateIsSeen) {
  const auto lines = Lines(RenderText(SampleHang(), {}));
  EXPECT_TRUE(HasText(lines[LineOf(lines, "  5 ")], "completed")) << lines[LineOf(lines, "  5 ")];
}

TEST(TextRender, AHealthyReportIsThreeOrFourLines) {
  EXPECT_EQ(RenderText(SampleHealthy(), {}),
            "HEALTHY  4 ranks\n"
            "  All 4 ranks finished the same 120 collectives; none waits.\n"
            "  Read 4 files, 256 kB: 4 NCCL logs.\n");
}

TEST(TextRender, WhatIsNotUsedBeginsASentence) {
  Report report = SampleHealthy();
  for (ReportInput& input : report.inputs) input.bytes = 1000000;
  report.inputs[0].not_understood = 10;
  const std::string text = RenderText(report, {});
  EXPECT_NE(text.find("NCCL logs. Under 0.1 % of the bytes were not recognized."), std::string::npos) << text;
  report.inputs[0].not_understood = 920000;
  EXPECT_NE(RenderText(report, {}).find("NCCL logs. 23 % of the bytes were not recognized."), std::string::npos);
}

TEST(TextRender, AHealthyReportStillNamesItsNotes) {
  Report report = SampleHealthy();
  report.findings = {SampleFallbackFinding()};
  report.findings[0].severity = Severity::note;
  report.cannot_tell = {{"q", "m"}};
  const std::string text = RenderText(report, {});
  EXPECT_TRUE(HasText(text, "  note  transport-fallback: node-a talks over sockets"));
  EXPECT_TRUE(HasText(text, "1 open question; --verbose lists it"));
  EXPECT_EQ(Lines(text).size(), 6u);
}

TEST(TextRender, AnUndeterminedReportAsksFirst) {
  Report report = SampleHang();
  report.findings.clear();
  report.verdict = {Status::undetermined, "", {}, Confidence::possible, "The evidence does not tell."};
  const auto lines = Lines(RenderText(report, {}));
  EXPECT_EQ(lines[0], "UNDETERMINED");
  EXPECT_LT(LineOf(lines, "Unknown; capture this next time"), LineOf(lines, "Ranks"));
  EXPECT_EQ(lines.back(), "Took 1.42 s.");
}

TEST(TextRender, StaysInsideTheWidth) {
  for (const int width : {40, 60, 80, 100, 160}) {
    TextOptions options;
    options.width = width;
    for (const Report& report : {SampleHang(), SampleHostile(), SampleLarge(64), SampleHealthy()}) {
      for (const std::string& line : Lines(RenderText(report, options))) {
        // Six columns cannot go below some sixty characters and still say something.
        const bool table = width < 80 && line.find("  ", 2) != std::string::npos;
        EXPECT_LE(DisplayWidth(line), static_cast<size_t>(table ? 90 : width)) << line;
      }
    }
  }
}

TEST(TextRender, UsesEscapeSequencesOnlyWhenAsked) {
  EXPECT_FALSE(HasText(RenderText(SampleHang(), {}), "\x1b"));
  TextOptions options;
  options.colour = true;
  const std::string text = RenderText(SampleHang(), options);
  EXPECT_TRUE(text.starts_with("\x1b[1;31mHANG\x1b[0m"));
  std::string bare;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      bare += text[i];
  }
  EXPECT_EQ(bare, RenderText(SampleHang(), {})) << "colour changes nothing but colour";
}

TEST(TextRender, HostileEvidenceCannotSpeakToTheTerminal) {
  for (const bool verbose : {false, true}) {
    TextOptions options;
    options.verbose = verbose;
    const std::string text = RenderText(SampleHostile(), options);
    for (const char c : text) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
    EXPECT_FALSE(HasText(text, "\xe2\x80\xae"));
    EXPECT_FALSE(HasText(text, "\xff"));
    EXPECT_TRUE(HasText(text, "\\x1b[31mred"));
  }
}

TEST(TextRender, SixteenThousandRanksStayShortAndQuick) {
  const Report report = SampleLarge(16384);
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = RenderText(report, {});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  const auto lines = Lines(text);
  EXPECT_LT(lines.size(), 60u);
  EXPECT_TRUE(text.starts_with("HANG  rank 5461 on node-682\n"));
  const size_t table = LineOf(lines, "Ranks (16384 of 16384)");
  EXPECT_TRUE(lines[table + 2].starts_with("  5461 ")) << "the guilty one comes first";
  EXPECT_TRUE(HasText(text, "0-4,6-101,... (16214)"));
}

TEST(TextRender, NeverShowsMoreThanTwoDozenRows) {
  Report report = SampleLarge(300);
  for (ReportRank& rank : report.ranks) rank.role = rank.rank % 2 ? "guilty" : "role " + std::to_string(rank.rank);
  const auto lines = Lines(RenderText(report, {}));
  const size_t table = LineOf(lines, "Ranks");
  EXPECT_EQ(lines[table + 2 + 24], "");
  EXPECT_EQ(lines[table + 2 + 23], "  ...");
}

TEST(TextRender, SaysWhichOfSeveralJobsIsMeant) {
  Report report = SampleHang();
  report.jobs.push_back(report.jobs[0]);
  report.jobs[0].label = "run of 00:15";
  EXPECT_TRUE(HasText(RenderText(report, {}), "  job     run of 00:15 (the worse of 2 jobs in this input)\n"));
}

TEST(TextRender, ListsSeveralJobsAndLeavesTheFindingsOfOthersToTheirLine) {
  Report report = SampleHang();
  report.jobs.push_back(report.jobs[0]);
  report.jobs[0].label = "first";
  report.jobs[0].status = Status::hang;
  report.jobs[0].cause = "rank-stuck-on-host";
  report.jobs[0].culprits = {5};
  report.jobs[1].label = "second";
  report.jobs[1].status = Status::healthy;
  for (ReportFinding& finding : report.findings) finding.job = "first";
  report.findings.push_back(SampleFallbackFinding());
  report.findings.back().job = "second";
  report.findings.back().headline = "said of the second";
  const std::string text = RenderText(report, {});
  EXPECT_TRUE(HasText(text, "Jobs (2)\n  JOB     STATUS   RANK  CAUSE\n  first   hang     5     rank-stuck-on-host\n"));
  EXPECT_TRUE(HasText(text, "  second  healthy\n"));
  EXPECT_FALSE(HasText(text, "said of the second"));
  EXPECT_TRUE(HasText(RenderText(report, {.verbose = true}), "said of the second"));
}

TEST(TextRender, LeavesOutATableOfRanksThatAreOnlyKnownToExist) {
  Report report = SampleHang();
  for (ReportRank& rank : report.ranks) {
    rank = {};
    rank.role = "silent";
  }
  EXPECT_FALSE(HasText(RenderText(report, {}), "Ranks ("));
  report.ranks[0].doing = "timed out";
  EXPECT_TRUE(HasText(RenderText(report, {}), "Ranks ("));
}

TEST(TextRender, NamesAConsequenceAsSuch) {
  Report report = SampleHang();
  report.findings.push_back(SampleFallbackFinding());
  report.findings.back().severity = Severity::critical;
  report.findings.back().explained_by = "rank-stuck-on-host";
  EXPECT_TRUE(HasText(RenderText(report, {.width = 160}), ", a consequence of rank-stuck-on-host\n"));
}

TEST(TextRender, AJobThatRunsWithoutAFaultIsNotCalledUndetermined) {
  Report report;
  report.verdict.headline = "Training made progress up to step 40 (4 progress lines).";
  EXPECT_TRUE(RenderText(report, {}).starts_with("UNDETERMINED\n")) << "nobody saw it run";
  report.verdict.progresses = true;
  EXPECT_TRUE(RenderText(report, {}).starts_with("NO FAULT FOUND\n"));
  report.findings.emplace_back().severity = Severity::warning;
  EXPECT_TRUE(RenderText(report, {}).starts_with("UNDETERMINED\n")) << "something is wrong";
}

TEST(TextRender, AJobThatWasEndedFromOutsideIsStopped) {
  Report report;
  report.verdict.status = Status::crash;
  report.verdict.cause = "killed-by-scheduler";
  EXPECT_TRUE(RenderText(report, {}).starts_with("STOPPED\n"));
  report.verdict.cause = "rank-dead";
  EXPECT_TRUE(RenderText(report, {}).starts_with("CRASH\n"));
}

TEST(TextRender, AJobThatWaitsForItsResourcesHasNotStarted) {
  Report report;
  report.verdict.status = Status::hang;
  report.verdict.cause = "resources-pending";
  EXPECT_TRUE(RenderText(report, {}).starts_with("NOT STARTED\n"));
  report.verdict.cause = "init-rank-missing";
  EXPECT_TRUE(RenderText(report, {}).starts_with("HANG\n"));
}

TEST(TextRender, WhatTheVerdictSaysIsNotSaidAgain) {
  Report report;
  ReportFinding& note = report.findings.emplace_back();
  note.severity = Severity::note;
  note.cause = "transport-fallback";
  note.headline = "NCCL uses TCP sockets";
  report.verdict.headline = "No fault found, and every rank closed its communicators. NCCL uses TCP sockets";
  EXPECT_FALSE(HasText(RenderText(report, {}), "Found\n"));
  report.verdict.headline = "No fault found, and every rank closed its communicators";
  EXPECT_TRUE(HasText(RenderText(report, {}), "Found\n"));
}

TEST(TextRender, OfAProgressBarTheCitedPartIsQuoted) {
  Report report = SampleHang();
  CitedEvidence& bar = report.findings[0].evidence[0];
  bar.quote = "1/9 loss=2.1\r2/9 loss=nan\r3/9 loss=nan\n";
  bar.excerpt = "2/9 loss=nan";
  EXPECT_TRUE(HasText(RenderText(report, {}), "  2/9 loss=nan\n")) << RenderText(report, {});
  bar.excerpt = "";
  EXPECT_TRUE(HasText(RenderText(report, {}), "  3/9 loss=nan\n")) << RenderText(report, {});
}

TEST(TextRender, OfALongOperationTheNumberStays) {
  Report report = SampleHang();
  for (ReportRank& rank : report.ranks) {
    rank.last_operation = "all_reduce #272 on communicator 0x8221f8415b2d95eb: completed";
    rank.doing = "in a_function_with_quite_a_long_name (module.py:96)";
  }
  EXPECT_TRUE(HasText(RenderText(report, {}), "#272 on communicator 0x8221f841...: completed"));
  for (ReportRank& rank : report.ranks) rank.last_operation = "all_reduce #48 on communicator of ranks 0, 2, 4, 6";
  EXPECT_TRUE(HasText(RenderText(report, {}), "all_reduce #48 on ranks 0, 2, 4, 6"));
}

TEST(TextRender, AFileOfSeveralFormatsIsNamedByTheirNouns) {
  Report report = SampleHang();
  report.inputs = {{.file = "a.txt", .format = "nccl_log+nccl_tests", .bytes = 10, .understood = 10}};
  EXPECT_TRUE(HasText(RenderText(report, {}), "1 NCCL log with nccl-tests output"));
}

TEST(TextRender, WhyDoesNotRepeatTheEvidence) {
  Report report = SampleHang();
  report.why.emplace();
  for (size_t i = 0; i < 2; ++i) {
    ReportClaim claim;
    claim.rank = 5;
    claim.reading = "rank-stuck-on-host";
    claim.because = report.findings[0].evidence[i];
    report.why->claims.push_back(claim);
  }
  ReportClaim open;
  open.rank = 5;
  open.reading = "undecided";
  open.strength = "weak";
  open.because.says = "it still printed";
  report.why->claims.push_back(open);
  const std::string text = RenderText(report, {});
  EXPECT_TRUE(HasText(text, "  for      rank 5, rank-stuck-on-host: the evidence above (1 and 2)\n"));
  EXPECT_TRUE(HasText(text, "  unclear  rank 5 (weak): it still printed\n"));
}

TEST(TextLayout, WrapsAtBlanksAndBreaksOnlyLongWords) {
  EXPECT_EQ(Wrap("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(Wrap("abcdefghijkl mn", 8), (std::vector<std::string>{"abcdefgh", "ijkl mn"}));
  EXPECT_EQ(Wrap("", 8), (std::vector<std::string>{""}));
  EXPECT_EQ(Wrap("a\n\nb", 8), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(Wrap("  code x", 20), (std::vector<std::string>{"  code x"})) << "an indent means something";
  EXPECT_EQ(Wrap("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\xc3\xa9", 8).size(), 1u) << "columns, not bytes";
}

TEST(TextLayout, CutsNeverInsideACharacter) {
  EXPECT_EQ(Cut("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
  EXPECT_EQ(CutFront("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "...\xc3\xa9");
  EXPECT_EQ(CutMiddle("abcdefghij", 7), "ab...ij");
  EXPECT_EQ(Cut("abcdef", 2), "..");
  EXPECT_EQ(Cut("abc", 3), "abc");
}

TEST(TextRender, AnUnknownHostIsNotAnotherOne) {
  Report report = SampleHang();
  for (ReportRank& rank : report.ranks)
    if (rank.rank < 4) rank.host = rank.rank == 1 ? "" : "node-a";
  const std::string text = RenderText(report, {.width = 200});
  EXPECT_EQ(text.find("2 hosts"), std::string::npos) << text;
}

TEST(TextRender, WhoWaitsIsToldAboveTheTableWhereTheFindingTellsNobody) {
  Report report = SampleHang();
  for (ReportFinding& finding : report.findings) finding.affected_ranks.clear();
  for (ReportRank& rank : report.ranks) rank.role = rank.rank < 3 ? "waits" : "";
  EXPECT_TRUE(HasText(RenderText(report, {}), "\n  waits   ranks 0-2\n"));
  report.verdict.status = Status::crash;
  EXPECT_FALSE(HasText(RenderText(report, {}), "\n  waits   ranks 0-2\n"));
}

}  // namespace
}  // namespace tacet
