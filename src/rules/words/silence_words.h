// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The first silence among the ranks that stand still for this reason; null when other evidence decided.
const Silence* FirstSilence(const Case& facts, StandstillKind kind);

// "rank 0 saw the process gone", "its heartbeat stopped while its peers continued"; of a rank that is one of several:
// "rank 0 saw the process of rank 3 gone", "the heartbeat of rank 3 stopped while its peers continued".
std::string SilenceWords(const Case& facts, const Silence& silence, bool one_of_several = false);

// The last beat, and what the siblings saw after it.
void CiteSilences(const Case& facts, StandstillKind kind, std::vector<EvidenceItem>& evidence);

}  // namespace tacet
