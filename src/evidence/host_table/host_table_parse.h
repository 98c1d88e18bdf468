// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_listing.h"

namespace tacet {

// Where a row stands, and its words.
struct RowPlace {
  uint32_t line = 0;
  uint64_t offset = 0;
  std::string text;
};

struct GpuRow : RowPlace {
  GpuLoad load;
};
// A GPU whose readings are errors: "ERR!".
struct BrokenGpuRow : RowPlace {
  int32_t index = -1;
  std::string pci;
};
struct SpaceRow : RowPlace {
  SpaceUse use;
};
struct NodeRow : RowPlace {
  ListedNodes state;
};

struct CheckRow : RowPlace {
  GpuCheck check;
};

// The fabric's status in nvidia-smi -q, where it is not "Success".
struct FabricRow : RowPlace {
  std::string status;
};

// The last Xid of a GPU, as dcgm-exporter counts it.
struct XidRow : RowPlace {
  int64_t number = -1;
  std::string pci;
};

// A process in the list of ps or top.
struct ProcessRow : RowPlace {
  int64_t pid = -1;
  char state = '\0';  // 'T', 'D', 'Z', or 'R' where it runs or waits
  int32_t rank = -1;  // where its command names one
};

struct HostTable {
  std::vector<ProcessRow> processes;
  std::vector<XidRow> xids;
  std::vector<FabricRow> fabrics;
  std::vector<GpuRow> gpus;
  std::vector<BrokenGpuRow> broken;
  std::vector<SpaceRow> spaces;
  std::vector<NodeRow> nodes;
  std::vector<CheckRow> checks;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

// A line that only such a tool writes.
bool IsHostLine(std::string_view line);

HostTable ParseHostTable(std::string_view bytes);

}  // namespace tacet
