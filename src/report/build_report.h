// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "report/report.h"
#include "rules/diagnosis.h"

namespace tacet {

// One job with everything that was found out about it.
struct JudgedJob {
  const Incident* incident = nullptr;
  const Analyses* analyses = nullptr;
  const StandstillView* standstill = nullptr;
  Diagnosis diagnosis;
};

// Puts the answers of all jobs into one ordered report. The job in the worst state carries the verdict.
// `why`: also how its verdict came about.
Report BuildReport(const std::vector<JudgedJob>& jobs, bool why = false);

}  // namespace tacet
