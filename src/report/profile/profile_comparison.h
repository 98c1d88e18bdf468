// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/profile/profile_report.h"

namespace tacet {

enum class ChangeKind : uint8_t {
  none,          // no significant difference
  slower,        // b takes longer
  faster,        // b takes less
  more_overlap,  // of communication that computing hides: more of it is no loss
  less_overlap,
  untested,      // fewer than two values on a side
  other_amount,  // the runs move different amounts there: times say nothing, times per MiB do
  only_a,        // the line exists in one run only
  only_b,
};
std::string_view Name(ChangeKind kind);  // "no significant difference"

struct ComparisonLine {
  std::string name;
  size_t count_a = 0, count_b = 0;
  double mean_a = 0, mean_b = 0;  // ns
  double change = 0;              // mean_b / mean_a - 1; NaN where mean_a is 0
  double low = 0, high = 0;       // bootstrap interval of that, at 1 - alpha
  double p = 1, adjusted_p = 1;   // Welch; Benjamini-Hochberg over all lines but the step time, which stands by itself
  ChangeKind kind = ChangeKind::untested;
  double bus_gbs_a = -1, bus_gbs_b = -1;  // of benchmarks: the mean bus bandwidth
  bool summary = false;                   // stands for others and is always shown
};

struct ComparisonOptions {
  double alpha = 0.05;
  // A change smaller than this is of no interest, however sure.
  double min_change = 0.01;
};

// Two runs of anything that was timed: profiles or benchmarks.
struct ProfileComparison {
  std::string name_a, name_b;
  std::string headline;  // where there is no step time to speak of; may be empty
  std::string proviso;   // what a change may be owed to: "; but ranks (8 and 2) differ"
  ComparisonOptions options;
  std::vector<ComparisonLine> lines;  // the step time first where both runs have steps
  size_t tested = 0, slower = 0, faster = 0;
  std::vector<std::string> remarks;
  std::vector<std::string> stragglers;  // who makes the others wait in which of the runs; a sentence each
  std::vector<std::string> faults;      // what is wrong with B, however fast it is: wrong results, an error

  const ComparisonLine* StepTime() const;
  bool nothing_in_common() const;  // every line is of one run only
  bool differs() const { return slower + faster > 0; }
  // The step is slower; where no steps are known, or with `any_line`, any line; or B has a fault.
  bool Regressed(bool any_line) const;
};

// One line from the samples of both sides, not judged yet: `kind` is none where it can be.
ComparisonLine CompareSeries(const ProfileSeries& a, const ProfileSeries& b, const ComparisonOptions& options);
// A line that only one side has.
ComparisonLine LineOfOneSide(const ProfileSeries& series, bool in_a);
// Adjusts the p-values of all lines and judges them.
void JudgeLines(ProfileComparison& comparison);

// Compares every series that both runs have. A line differs when Welch's test, adjusted for the number of lines (the
// step time alone is not), and the bootstrap interval both say so and the change is not too small to matter.
ProfileComparison CompareProfiles(const ProfileReport& a, const ProfileReport& b, const ComparisonOptions& options);

}  // namespace tacet
