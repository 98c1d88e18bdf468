// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/timeouts/timeout_census.h"
#include "rules/rule.h"

namespace tacet {

// What was saved last before this line, in the same output; null where no line tells.
const Milestone* SavedBefore(const Incident& incident, const SourceRef& line);
// What was saved last, where that was behind this line.
const Milestone* SavedAfter(const Incident& incident, const SourceRef& line);
// The program itself tells of the signal in this line.
bool IsOwnWord(const Incident& incident, const SourceRef& line);

// "training had finished and checkpoint-486 was saved": where the job stood before this line; empty where no line says
// that the training was done.
std::string StoodWords(const Incident& incident, const SourceRef& line);
// What to do about a job that hangs when its work is done.
std::vector<std::string> StepsAfterTheWork(bool gone);

// The one rank that all others waited for until they timed out, and that went on working meanwhile: by a line of its
// own it is further than before, behind the first timeout of the same output. A checkpoint that is saved there can only
// be its own: the others wait.
struct RankAtWork {
  Rank rank;
  SourceRef source;
  std::string text;
  bool by_checkpoint = false;  // no line names its rank
  TimeoutCensus census;
};
std::optional<RankAtWork> FindRankAtWork(const Case& facts);

}  // namespace tacet
