// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "report/profile/profile_report.h"
#include "report/profile/profile_table.h"

namespace tacet {

// 33554432 -> "32 MiB". Size classes are powers of two.
std::string DescribeSizeClass(int64_t size_class);
// "all_reduce on default_pg, up to 32 MiB".
std::string DescribeTableLine(OpKind kind, std::string_view group, int64_t size_class);

// Behind the name of a line's transfer time: the same by the call and for its size.
inline constexpr std::string_view kPerMiB = " per MiB";
inline constexpr std::string_view kComputeWithoutCommunication = "compute without communication";
inline constexpr std::string_view kHiddenCommunication = "hidden communication";
inline constexpr std::string_view kExposedCommunication = "exposed communication";

// The parts of a budget in the order in which they are shown; they sum to the step.
struct BudgetPart {
  std::string_view name;  // of its series
  int64_t TimeBudget::*value;
};
std::span<const BudgetPart> BudgetParts();

// Step time and budget parts by step (over ranks: median, mean), then wait and transfer of every line of the
// communication table, summed by step (operations without a step count each as one value), and the transfer time per
// MiB of each call.
std::vector<ProfileSeries> CollectSeries(const Incident& incident, const GroupNames& names,
                                         const std::vector<RankBudget>& budgets,
                                         const std::vector<CollectiveRound>& rounds);

}  // namespace tacet
