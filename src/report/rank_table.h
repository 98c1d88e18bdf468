// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/analyses.h"
#include "report/report.h"
#include "rules/diagnosis.h"

namespace tacet {

// The records of calls, that one first whose numbers the verdict uses: a flight record and an NCCL log count the same
// operations from different beginnings, and a report must not mix the two.
std::vector<const SourceAnalysis*> SourcesOfVerdict(const Incident& incident, const Analyses& analyses,
                                                    const Diagnosis& diagnosis);

// One row for every rank: who it is, what it last did, what it is doing, and what it is in this case.
std::vector<ReportRank> RankTable(const Incident& incident, const Analyses& analyses, const StandstillView& standstill,
                                  const Diagnosis& diagnosis);

}  // namespace tacet
