// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/profile/profile_report.h"

namespace tacet {

// {"schema":"tacet.profile.v1","jobs":[...]}. Times are ns, sizes bytes, bandwidths GB/s = 1e9, shares 0..1.
std::string RenderProfileJson(const std::vector<ProfileReport>& profiles);

}  // namespace tacet
