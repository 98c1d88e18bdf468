// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// NCCL_HOSTID of each process whose log prints it.
std::map<uint32_t, std::string> HostIdsOf(const Incident& incident);

// The ranks of each GPU that several ranks use, in order. A black box states its GPU's UUID. A log states the bus id:
// NCCL takes two ranks on one GPU only where NCCL_HOSTID makes different hosts of them, so that equal bus ids on hosts
// of one name are no more than two hosts of that name without it.
std::vector<std::vector<Rank>> FindSharedGpus(const Incident& incident);

}  // namespace tacet
