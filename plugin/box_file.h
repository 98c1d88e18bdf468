// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plugin/record/open_box.h"
#include "plugin/settings.h"

namespace tacet::plugin {

// mkdir -p
void MakeFolders(const char* dir);

// Where each table lies in a box of a given size. The ring gets what the others leave.
struct BoxGeometry {
  box::Table comms, groups, ops, proxies, peers, ring;
};
BoxGeometry GeometryFor(uint64_t bytes);

struct BoxMemory {
  void* memory = nullptr;  // zeroed; null when there is none
  uint64_t bytes = 0;
  bool in_file = false;
  char path[768] = {};     // of the file
  char trouble[256] = {};  // why there is no file, or a smaller one
};
// The file <box_dir>/<job>/<host>-<pid>.box, mode 0600 in a folder of mode 0700, with all its pages reserved: a full
// /dev/shm shows here as an error and never later as SIGBUS. A smaller box is tried before none.
BoxMemory MakeBoxFile(const Settings& settings, const char* host, int pid);
// Memory of this process only, for the outputs when no file can be had.
BoxMemory MakeBoxMemory(uint64_t bytes);
// Fills in the header's tables and the pointers.
void LayOut(const BoxMemory& memory, OpenBox& box);

// Removes boxes under `box_dir` whose process ended by exit() more than `age_s` seconds ago: they are no longer
// evidence and /dev/shm is memory. Boxes of killed processes stay.
void SweepEndedBoxes(const char* box_dir, int64_t age_s);

}  // namespace tacet::plugin
