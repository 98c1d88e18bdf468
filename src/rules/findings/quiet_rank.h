// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// The only rank that reports no error while all others lost a connection to a peer, and the last line it printed into
// the same output. That is a place to look at, and no proof: a launcher may have ended it before it could report.
struct QuietRank {
  Rank rank;
  const LineOfRank* line = nullptr;
};
std::optional<QuietRank> FindQuietRank(const Case& facts, const Event& told);

// "rank 2 is the only one that reports no error; the last line it printed is 'shard is done'"
std::string QuietRankWords(const QuietRank& quiet);

}  // namespace tacet
