// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/parallel.h"
#include "cut_variant.h"
#include "envelope_variant.h"
#include "recorded_variant.h"

// Every recorded incident as another site would have kept it: other names, labels, line ends, clocks and ranks, other
// files beside it, only some kinds of evidence. The answer stays right, or is withdrawn; it never turns into another
// one.

namespace tacet {
namespace {

struct VariantAnswer {
  bool applies = false, acceptable = true;
  std::string words;
};

// What is true as well when a part is missing. A rank that an error or the kernel ended is dead, which is all that can
// be said without its output or the kernel's log.
IncidentTruth WithLesserTruths(IncidentTruth truth, const std::vector<RecordedFile>& files,
                               const std::set<FileKind>& cut) {
  const auto has = [&](FileKind kind) {
    return !cut.contains(kind) &&
           std::any_of(files.begin(), files.end(), [&](const auto& file) { return KindOf(file.path) == kind; });
  };
  const bool killed = truth.causes.contains("rank-out-of-memory") && !has(FileKind::kernel_log);
  const auto ended_by = [&](const char* cause) { return truth.causes.contains(cause) && !has(FileKind::output); };
  if (killed || ended_by("application-exception") || ended_by("ddp-unused-parameters") || ended_by("gpu-fault")) {
    truth.causes.insert("rank-dead");
    truth.statuses.insert({"hang", "crash"});
  }
  // Of several that fell, some may have lost what tells of it.
  truth.some_ranks_suffice |= !cut.empty();
  // What kept a rank from its next call stands in its output.
  if (truth.causes.contains("ddp-unused-parameters") && cut.contains(FileKind::output))
    truth.causes.insert("rank-stuck-on-host");
  // "invalid usage" is an error of the ranks that get it, until NCCL says which.
  if (truth.causes.contains("init-mismatch") && cut.contains(FileKind::output))
    truth.causes.insert("application-exception");
  // A rank that ended although somebody still expects a message of it is gone.
  if (truth.causes.contains("p2p-unmatched") && cut.contains(FileKind::output)) {
    truth.causes.insert("rank-dead");
    truth.statuses.insert("crash");
  }
  // One call in place of another is one too few and one too many until more calls tell.
  if (cut.contains(FileKind::record) && truth.causes.contains("collective-mismatch-operation"))
    truth.causes.insert({"collective-extra", "collective-skipped"});
  // Whether a wrong call stalled the job, ended it or was never noticed stands at the end of the files.
  if (!cut.empty() && std::any_of(truth.causes.begin(), truth.causes.end(),
                                  [](const std::string& cause) { return cause.starts_with("collective-"); }))
    truth.statuses.insert({"hang", "crash", "corrupt"});
  return truth;
}

// Six thousand readings are a quarter of the time that all tests take. Recordings and variants take turns, so that each
// variant meets every second recording and each recording every second variant; TACET_ALL_VARIANTS=1 takes all.
bool IsItsTurn(size_t recording, size_t variant) {
  static const bool all = std::getenv("TACET_ALL_VARIANTS") != nullptr;
  return all || (recording + variant) % 2 == 0;
}

std::vector<VariantAnswer> JudgeVariants(const IncidentTruth& truth, size_t recording,
                                         const std::vector<Variant>& variants) {
  const std::vector<RecordedFile> files = ReadUnpacked(TestFolder("corpus") / truth.name);
  RecordingReader reader(files);
  std::vector<VariantAnswer> answers;
  for (const Variant& variant : variants) {
    VariantAnswer& answer = answers.emplace_back();
    if (!IsItsTurn(recording, answers.size())) continue;
    IncidentTruth changed = truth;
    const auto made = variant.make(files, changed);
    if (!made) continue;
    answer.applies = true;
    const Report report = reader.Diagnose(*made, [](std::string_view) { return true; });
    const ReducedAnswer judged = JudgeReduced(WithLesserTruths(changed, *made, variant.cut), report);
    answer.acceptable = judged.acceptable && (!variant.lossless || truth.IsSlow() || judged.words == "ok");
    answer.words = judged.words;
  }
  return answers;
}

// A tool that always withdraws its answer would pass too: so many of a hundred stay answered.
constexpr int kLeastAnsweredOfHundred = 50;

// Judges every variant of every recording and prints the table.
void ExpectNoWrongAnswer(const std::vector<Variant>& variants) {
  const std::vector<IncidentTruth> truths = ParseTruth(ReadWhole(TestFolder("corpus/truth.json")));
  std::vector<std::vector<VariantAnswer>> table(truths.size());
  ParallelFor(truths.size(), 0, [&](size_t i) {
    if (!truths[i].IsSlow()) table[i] = JudgeVariants(truths[i], i, variants);
  });
  int all = 0, answered = 0;
  for (size_t v = 0; v < variants.size(); ++v) {
    int applies = 0, right = 0;
    for (size_t i = 0; i < truths.size(); ++i) {
      if (table[i].empty() || !table[i][v].applies) continue;
      ++applies;
      right += table[i][v].words == "ok";
      EXPECT_TRUE(table[i][v].acceptable) << truths[i].name << ", " << variants[v].name << ": " << table[i][v].words;
    }
    std::printf("%-50s %3d of %3d answered\n", variants[v].name.c_str(), right, applies);
    all += applies;
    answered += right;
  }
  EXPECT_GE(answered * 100, all * kLeastAnsweredOfHundred);
}

TEST(Variants, WithdrawAnAnswerRatherThanChangingIt) {
  const auto healthy = ReadUnpacked(TestFolder("corpus/clean_ddp"));
  ExpectNoWrongAnswer(AllVariants(healthy, healthy));
}

TEST(Variants, EnvelopesAroundTheLinesChangeNothing) { ExpectNoWrongAnswer(EnvelopeVariants()); }

TEST(Variants, FilesThatEndEarlyTurnNobodyGuilty) { ExpectNoWrongAnswer(CutVariants()); }

}  // namespace
}  // namespace tacet
