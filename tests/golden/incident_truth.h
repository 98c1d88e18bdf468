// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "report/report.h"

namespace tacet {

// What really happened in a recorded incident; one entry of tests/corpus/truth.json.
struct IncidentTruth {
  std::string name;
  std::set<std::string> statuses, causes;  // any of them is right
  std::set<int> ranks;                     // the guilty
  bool some_ranks_suffice = false;         // a non-empty part of them is right as well
  std::optional<int64_t> seq;              // of the operation in the first finding

  bool IsHealthy() const { return statuses == std::set<std::string>{"healthy"}; }
  bool IsSlow() const { return statuses.contains("slow"); }
};

inline void PrintTo(const IncidentTruth& truth, std::ostream* out) { *out << truth.name; }

// Throws when the text is not the expected JSON.
std::vector<IncidentTruth> ParseTruth(std::string_view json);

// What is wrong with an answer; empty: nothing.
std::vector<std::string> Judge(const IncidentTruth& truth, const Report& report);

// Ranks the verdict blames that did nothing.
std::set<int> InnocentRanks(const IncidentTruth& truth, const Report& report);

// How an answer from a part of the evidence stands to the truth: it may stay right, or be withdrawn, and blame nobody
// innocent. A slow job may also look healthy: nothing in the rest may tell.
struct ReducedAnswer {
  bool acceptable = false;
  std::string words;  // "ok", "undetermined[2]", "WRONG hang rank-dead[1]"
};
ReducedAnswer JudgeReduced(const IncidentTruth& truth, const Report& report);

}  // namespace tacet
