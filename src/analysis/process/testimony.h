// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/process/scene.h"

namespace tacet {

// What every witness says about the state of a rank at which the waiting ends.
std::vector<Claim> ClaimsAbout(const Scene& scene, Rank rank, const WaitRoot& root);

// The standstill that the claims add up to.
Standstill ReadStandstill(const Scene& scene, Rank rank, const WaitRoot& root);

// Where its own words, or the kernel's, say what ended it.
void ClaimByOwnOutput(const RankLife& life, std::vector<Claim>& claims);

// Its stack is in the program's own code while others wait.
void ClaimByHostStack(const StackReading& stack, std::vector<Claim>& claims);
// The kernel's report of a blocked task.
void ClaimByKernel(const Event& hung_task, std::vector<Claim>& claims);
// Scene::IsOnlySilentRank holds.
void ClaimByMissingStack(std::vector<Claim>& claims);

}  // namespace tacet
