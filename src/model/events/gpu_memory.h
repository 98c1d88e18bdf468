// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tacet {

// Memory of a GPU that one process uses, as another one sees it.
struct GpuMemoryHolder {
  int64_t pid = -1;
  double gib = 0;
};

// What PyTorch tells of the memory of a GPU on which an allocation failed, in GiB; below 0: not told.
struct GpuMemoryUse {
  int32_t device = -1;  // as the process counts its visible GPUs
  double tried = -1, total = -1, free = -1;
  double own = -1;          // of the process that failed, with what is not PyTorch's
  double unallocated = -1;  // reserved by PyTorch's allocator and in use by no tensor
  double allowed = -1;      // the share that the process may use (set_per_process_memory_fraction)
  bool old_form = false;    // written before PyTorch 2.1
  bool of_driver = false;   // the driver refused it, to whatever library: no allocator tells what it asked for
  std::vector<GpuMemoryHolder> others;

  double OfOthers() const;
  // The others hold most of the memory, and what was asked for would have fitted without them.
  bool OthersFillIt() const;
  // What lies unused in the allocator's blocks would have sufficed.
  bool IsFragmented() const;
  // The GPU had room, and the process may not use it.
  bool HitsOwnLimit() const;
  // What was asked for in one piece does not fit into the empty GPU.
  bool IsBeyondTheGpu() const { return total > 0 && tried > total; }
  // No GPU is as large: the size itself is wrong.
  bool IsFarBeyondTheGpu() const {
    constexpr double kFar = 16, kLargest = 2048;  // GiB
    return tried > (total > 0 ? kFar * total : kLargest);
  }
};

GpuMemoryUse ReadGpuMemoryUse(std::string_view message);

}  // namespace tacet
