// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lint/environment_lint.h"

namespace tacet {

// What `tacet lint` read and found.
struct LintReport {
  LintResult result;
  std::vector<GivenEnvironment> environments;
  std::vector<std::string> not_understood;  // files without a variable in them
};

struct LintTextOptions {
  bool colour = false;
  int width = 100;
};
std::string RenderLintText(const LintReport& report, const LintTextOptions& options);
std::string RenderLintJson(const LintReport& report);  // tacet.lint.v1

// Findings only, a few lines: what `tacet run` and preflight show.
std::string RenderLintLines(std::span<const LintFinding> findings);

}  // namespace tacet
