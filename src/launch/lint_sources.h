// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/load.h"
#include "lint/environment_lint.h"
#include "render/lint_render.h"

namespace tacet {

// The environment of this process.
GivenEnvironment ReadOwnEnvironment();
// The files that NCCL adds to an environment: NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf.
std::vector<GivenEnvironment> ReadNcclConfs(const GivenEnvironment& environment);
// Of these processes and of what they started.
Result<std::vector<GivenEnvironment>> ReadProcessEnvironments(const std::vector<int64_t>& pids);

struct LintedPaths {
  std::vector<GivenEnvironment> environments;
  std::vector<std::string> not_understood;
  bool understood = false;           // some file was known, even without a variable in it
  std::vector<std::string> missing;  // paths that do not exist
  bool nothing_read = false;         // no file, or none that may be read
};
// NCCL logs as the evidence readers know them, everything else by its assignments.
Result<LintedPaths> ReadLintPaths(const std::vector<std::string>& paths, const LoadOptions& options);

// How many hosts the environments are of; 0: not known.
int CountHosts(const std::vector<GivenEnvironment>& environments);

}  // namespace tacet
