// SPDX-License-Identifier: Apache-2.0
// Profiles of the recorded cases for tests.
#pragma once

#include <string>
#include <vector>

#include "evidence/load.h"
#include "model/assembly/assembly.h"
#include "report/profile/profile_report.h"

namespace tacet {

// The jobs of a case in tests/corpus.
inline std::vector<Incident> LoadCase(const std::string& name) {
  auto loaded = LoadEvidence({std::string(TACET_SOURCE_DIR) + "/tests/corpus/" + name}, {});
  return loaded ? Assemble(std::move(loaded->fragments)) : std::vector<Incident>();
}

inline ProfileReport ProfileCase(const std::string& name, const ProfileOptions& options = {}) {
  const std::vector<Incident> jobs = LoadCase(name);
  return jobs.empty() ? ProfileReport() : BuildProfile(jobs.front(), options);
}

}  // namespace tacet
