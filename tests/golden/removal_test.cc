// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>

#include "base/parallel.h"
#include "incident_truth.h"
#include "recorded_files.h"
#include "recorded_variant.h"

// Part of the evidence of every recorded incident is taken away. The answer may then be withdrawn, but never turn into
// another one, and nobody innocent may be blamed.

namespace tacet {
namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsTrace(std::string_view path) { return FileName(path).starts_with("trace_rank"); }

struct Removal {
  std::string_view name;
  std::function<bool(std::string_view path, const IncidentTruth& truth)> is_kept;
  bool needs_few_guilty = false;
};

std::vector<Removal> AllRemovals() {
  const auto starts = [](std::string_view path, std::string_view with) { return FileName(path).starts_with(with); };
  const auto rest = [](std::string_view path, int parity) {
    const int rank = RankInName(path);
    return rank < 0 || rank % 2 == parity;
  };
  return {
      {"records only", [=](auto path, auto&) { return starts(path, "nccl_trace_rank"); }},
      {"NCCL logs only", [=](auto path, auto&) { return starts(path, "nccl_rank"); }},
      {"stacks and output", [=](auto path, auto&) { return starts(path, "stack") || starts(path, "stdout"); }},
      {"without the guilty", [](auto path, auto& truth) { return !truth.ranks.contains(RankInName(path)); }, true},
      {"even ranks", [=](auto path, auto&) { return rest(path, 0); }},
      {"odd ranks", [=](auto path, auto&) { return rest(path, 1); }},
  };
}

// The answers of one incident, a column a removal; empty where it does not apply.
std::vector<ReducedAnswer> JudgeRemovals(const IncidentTruth& truth, const std::vector<Removal>& removals) {
  // Traces are large and only tell of slowness.
  const auto files = ReadRecording(TestFolder("corpus") / truth.name,
                                   [&](std::string_view path) { return truth.IsSlow() || !IsTrace(path); });
  RecordingReader reader(files);
  std::vector<ReducedAnswer> answers;
  for (const Removal& removal : removals) {
    const auto is_kept = [&](std::string_view path) { return removal.is_kept(path, truth); };
    const bool applies = !removal.needs_few_guilty || truth.ranks.size() == 1 || truth.ranks.size() == 2;
    const bool leaves_something =
        std::any_of(files.begin(), files.end(), [&](const RecordedFile& file) { return is_kept(file.path); });
    if (applies && leaves_something) {
      answers.push_back(JudgeReduced(truth, reader.DiagnoseKept(is_kept)));
    } else {
      answers.push_back({true, "-"});
    }
  }
  return answers;
}

// A tool that always withdraws its answer would pass too. So many cells of the table are answered in spite of all; when
// a change costs some, it should be known why.
constexpr int kLeastAnswered = 55;

TEST(Removal, WithdrawsAnAnswerRatherThanChangingIt) {
  const std::vector<IncidentTruth> truths = ParseTruth(ReadWhole(TestFolder("corpus/truth.json")));
  const std::vector<Removal> removals = AllRemovals();
  std::vector<std::vector<ReducedAnswer>> table(truths.size());
  ParallelFor(truths.size(), 0, [&](size_t i) { table[i] = JudgeRemovals(truths[i], removals); });

  int answered = 0;
  std::printf("%-16s", "");
  for (const Removal& removal : removals)
    std::printf(" %-21.*s", static_cast<int>(removal.name.size()), removal.name.data());
  std::printf("\n");
  for (size_t i = 0; i < truths.size(); ++i) {
    std::printf("%-16s", truths[i].name.c_str());
    for (const ReducedAnswer& answer : table[i]) std::printf(" %-21s", answer.words.c_str());
    std::printf("\n");
    for (const ReducedAnswer& answer : table[i]) answered += answer.words == "ok";
    for (size_t k = 0; k < removals.size(); ++k)
      EXPECT_TRUE(table[i][k].acceptable) << truths[i].name << ", " << removals[k].name << ": " << table[i][k].words;
  }
  EXPECT_GE(answered, kLeastAnswered);
}

// Kinds that tell of hangs and crashes; traces are left out, they tell of slowness only.
constexpr FileKind kKinds[] = {FileKind::record, FileKind::nccl_log, FileKind::output,
                               FileKind::stacks, FileKind::ras,      FileKind::kernel_log};

std::set<int> InnocentsOfAllPairsAndRanks(const IncidentTruth& truth, std::string& where) {
  const auto files =
      ReadRecording(TestFolder("corpus") / truth.name, [&](std::string_view path) { return !IsTrace(path); });
  RecordingReader reader(files);
  std::set<int> innocents, ranks;
  const auto judge = [&](const std::string& name, const std::function<bool(std::string_view)>& is_kept) {
    if (std::none_of(files.begin(), files.end(), [&](const RecordedFile& file) { return is_kept(file.path); })) return;
    for (const int rank : InnocentRanks(truth, reader.DiagnoseKept(is_kept))) {
      innocents.insert(rank);
      where += " " + std::to_string(rank) + " " + name + ";";
    }
  };
  for (const RecordedFile& file : files) ranks.insert(RankInName(file.path));
  ranks.erase(-1);
  for (const int rank : ranks)
    judge("without rank " + std::to_string(rank), [=](std::string_view path) { return RankInName(path) != rank; });
  for (auto a = std::begin(kKinds); a != std::end(kKinds); ++a) {
    for (auto b = a + 1; b != std::end(kKinds); ++b) {
      judge("from " + std::string(Name(*a)) + " and " + std::string(Name(*b)),
            [=](std::string_view path) { return KindOf(path) == *a || KindOf(path) == *b; });
    }
  }
  return innocents;
}

TEST(Removal, BlamesNobodyInnocentWhicheverRankOrPairOfKindsIsLeft) {
  const std::vector<IncidentTruth> truths = ParseTruth(ReadWhole(TestFolder("corpus/truth.json")));
  std::vector<std::string> wheres(truths.size());
  std::vector<std::set<int>> innocents(truths.size());
  ParallelFor(truths.size(), 0, [&](size_t i) { innocents[i] = InnocentsOfAllPairsAndRanks(truths[i], wheres[i]); });
  for (size_t i = 0; i < truths.size(); ++i) EXPECT_TRUE(innocents[i].empty()) << truths[i].name << ":" << wheres[i];
}

}  // namespace
}  // namespace tacet
