// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

struct Diagnosis;

// Something that speaks for or against one reading of a process.
struct WhyClaim {
  Rank rank;
  bool supports = true;  // the verdict
  std::string reading;   // "stuck on the host", "process gone"
  std::string strength;  // "proof", "strong", "weak"
  std::string witness;   // by Witness; empty for evidence of the finding itself
  EvidenceItem because;  // `says` holds the reason; the source may be unknown
};

// A cause that was not named, and why.
struct Rival {
  std::string cause;
  std::vector<Rank> ranks;
  bool found = false;  // a rule found it, and it lost; else nothing shows it
  std::string because;
};

// How the verdict came about: why this status, what speaks for and against each reading of the ranks concerned, and why
// each rival lost.
struct Why {
  EvidenceItem status;
  std::vector<WhyClaim> claims;
  std::vector<Rival> rivals;
};

Why ExplainVerdict(const Case& facts, const Diagnosis& diagnosis);

}  // namespace tacet
