// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// Where processes were when an NCCL log ends: the call whose kernel started and did not end, else the last one issued.
// A log ends somewhere in a healthy job, too: it answers "where" and nothing else.
struct OpenCalls {
  std::string words;                   // empty: no call is on record
  std::vector<Rank> ranks;             // those whose kernel did not end
  std::vector<EvidenceItem> evidence;  // the lines of these calls
  std::string number;                  // of the one call that all are in: "opCount 31c"; empty where they differ
};
OpenCalls FindOpenCalls(const Case& facts);

}  // namespace tacet
