// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launch/postmortem/document.h"
#include "launch/run_facts.h"
#include "launch/run_manifest.h"
#include "report/report.h"

namespace tacet {

// A run as its folder shows it: the report of everything in it, and what `tacet run` wrote down, if it was one.
struct RunRecord {
  std::string path;  // as given
  Report report;
  std::optional<RunManifest> manifest;
  RunFacts facts;
};

Result<RunRecord> ReadRunRecord(const std::string& path);

// One page that can be mailed as it is. Secrets are taken out of it.
Document WritePostmortem(const RunRecord& run, const RunRecord* baseline);

}  // namespace tacet
