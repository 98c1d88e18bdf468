// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "rules/rule.h"

namespace tacet {

struct OutputFinding {
  Finding finding;
  std::optional<CannotTell> open;  // none where the finding says what the ranks do
};

// One rank, or a few, that the others wait for, where neither calls nor stacks are recorded and only the lines that the
// program prints show it: all others printed what comes next, or gave up waiting by a limit of the program's own; or
// ranks wait for a file that another rank wrote elsewhere.
std::optional<OutputFinding> FindingByOutput(const Case& facts);

// All others gave up waiting in a collective, and the lines of this rank show that it went past the place.
std::optional<Finding> PassedByOutput(const Case& facts);

// Where the rank that is apart is, and where the others are, by the lines that the program prints.
void CiteOutputFront(const Case& facts, Finding& finding);
std::string OutputWords(const OutputFront& front);

}  // namespace tacet
