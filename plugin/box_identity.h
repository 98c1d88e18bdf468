// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/black_box_layout.h"

namespace tacet::plugin {

// Who this process is: host, pid, rank, the ids its launcher and scheduler gave it. From environment and /proc only.
void FillIdentity(box::Header& header, const char* job);

// No launcher of ranks (torchrun, mpirun) named the rank, only Slurm did.
bool IsRankOfSlurm();

// The CUDA device of this thread, -1 where there is none. Asks the driver the process already has; loads nothing.
struct GpuDevice {
  int ordinal = -1;
  char uuid[48] = {};  // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
};
GpuDevice CurrentGpu();

}  // namespace tacet::plugin
