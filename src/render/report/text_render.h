// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.h"

namespace tacet {

struct TextOptions {
  bool colour = false;  // escape sequences; only for a terminal
  int width = 100;
  bool verbose = false;  // everything, nothing folded or cut
};

// The report for a person at a terminal: the verdict in the first five lines, then evidence, what to do, and the rest.
std::string RenderText(const Report& report, const TextOptions& options);

}  // namespace tacet
