// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile/profile_report.h"

namespace tacet {

// What the records tell of the GPUs and hosts behind the ranks: who shares a GPU, and a host that NCCL counts as
// several. Says so in ProfileReport::setup.
void FillGpus(const Incident& incident, ProfileReport& profile);

// 1 where every rank has a GPU of its own, as far as is known.
double RanksPerGpu(const ProfileReport& profile);

// What to do about transfers over TCP sockets on this hardware.
std::string TransportAdvice(const ProfileReport& profile);

// Adds what an idle GPU costs: waits for the host, for data and for launches, and copies.
void AddIdleAdvice(const ProfileReport& profile, std::vector<Advice>& out);

}  // namespace tacet
