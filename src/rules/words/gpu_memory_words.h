// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/events/gpu_memory.h"
#include "rules/rule.h"

namespace tacet {

// ": another process (51833) holds 41.08 of the 79.15 GiB of GPU 3"; empty where the others do not fill it. `named`:
// the GPU is named before it.
std::string MemoryHolderWords(const GpuMemoryUse& use, bool named = false);

// ": each may use only 4.00 of the 139.80 GiB of its GPU", of several ranks that reached their own limit
std::string OwnLimitWords(const GpuMemoryUse& use);

// ": it asked for 16.00 GiB where 13.17 of 139.80 GiB was free, and held 113.18 GiB itself"; empty: not told.
std::string MemoryRequestWords(const GpuMemoryUse& use);

enum class MemoryOwners : uint8_t { not_told, one, several };

// What the message tells of the memory decides which of these comes first, and which is of no use.
struct GpuMemoryCase {
  Activity during = Activity::not_told;
  bool server = false;
  Library library = Library::not_told;
  GpuMaker maker = GpuMaker::not_told;
  MemoryOwners owners = MemoryOwners::not_told;
  std::string who;  // the one rank that ran out of it
  GpuMemoryUse use;
};

// Against a lack of GPU memory.
std::vector<std::string> GpuMemorySteps(const GpuMemoryCase& facts);

}  // namespace tacet
