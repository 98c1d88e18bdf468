// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "preflight/preflight_evidence.h"

namespace tacet {

// "gpu01", "gpu01 and gpu07", "gpu01, gpu02 and 14 more".
std::string HostList(const std::vector<std::string>& hosts);

// value -> hosts. The largest group is usual; all others are odd, and of two equal groups everybody is.
struct OddOnes {
  std::vector<std::string> hosts;
  std::string says;  // "gpu07 has 550.54, 3 others have 570.86"
  bool found() const { return !hosts.empty(); }
};
OddOnes FindOddOnes(const std::map<std::string, std::vector<std::string>>& by_value);

void JudgeArrival(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks);
void JudgeVersions(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks);
void JudgeResources(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks);
void JudgeNames(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks);
void JudgeLinks(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks);
void JudgeSpeed(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks);

}  // namespace tacet
