// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/scene.h"

namespace tacet {

// What every witness says about a rank at which the waiting ends. The first claim decides what state the process is in;
// the others agree with it, or lost against it.
std::vector<Claim> ClaimsAbout(const Scene& scene, Rank rank, const WaitRoot& root);

// The standstill that the claims add up to.
Standstill ReadStandstill(const Scene& scene, Rank rank, const WaitRoot& root);

}  // namespace tacet
