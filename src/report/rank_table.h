// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "report/report.h"
#include "rules/diagnosis.h"

namespace tacet {

// One row for every rank: who it is, what it last did, what it is doing, and what it is in this case.
std::vector<ReportRank> RankTable(const Incident& incident, const Analyses& analyses, const StandstillView& standstill,
                                  const Diagnosis& diagnosis);

}  // namespace tacet
