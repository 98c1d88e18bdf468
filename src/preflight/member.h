// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "preflight/host_facts.h"
#include "preflight/job_place.h"

namespace tacet {

struct MemberOptions {
  JobPlace place;
  FactsOptions facts;
  int first_port = 0, last_port = 0;  // of measurements; 0: any
  int64_t meet_ms = 20'000;           // rank 0 must be reached within this
};

// What every process of a preflight does: tells its facts to rank 0, measures what it is told to, and ends with the
// verdict's exit code. An Error where rank 0 cannot be reached, which is a no-go of its own.
Result<int> TakePart(const MemberOptions& options);

}  // namespace tacet
