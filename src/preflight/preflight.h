// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "preflight/member.h"
#include "preflight/preflight_evidence.h"

namespace tacet {

struct PreflightOptions {
  MemberOptions member;      // with the place of this process
  int64_t wait_ms = 20'000;  // for all ranks to come
  bool measure = true;
  bool redact = true;  // in the report
  std::function<void(const std::string&)> progress;
};

struct PreflightOutcome {
  int exit_code = 2;                      // 0 go, 1 no-go, 2 could not be told
  std::optional<PreflightReport> report;  // on rank 0 alone
  std::string problem, hint;              // of a rank that could not take part
};

// Rank 0 judges; all others serve it and end with its verdict.
PreflightOutcome RunPreflight(const PreflightOptions& options);

}  // namespace tacet
