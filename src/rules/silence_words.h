// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The first silence among the ranks that stand still for this reason; null when other evidence decided.
const Silence* FirstSilence(const Case& facts, StandstillKind kind);

// "its process was seen gone by rank 0", "its heartbeat stopped while its peers went on".
std::string SilenceWords(const Case& facts, const Silence& silence);

// The last beat, and what the siblings saw after it.
void CiteSilences(const Case& facts, StandstillKind kind, std::vector<EvidenceItem>& evidence);

}  // namespace tacet
