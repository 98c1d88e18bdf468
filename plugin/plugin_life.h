// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/nccl_profiler_abi.h"
#include "plugin/record/comm_table.h"

// Beginning and end: of communicators, of the box, of the process. Not the event path; locks and system calls are fine.
namespace tacet::plugin {

struct CommBirth {
  int api_version = 0;
  CommFacts comm;
  nccl::Logger logger = nullptr;
};
// Sets *context and *mask; on any trouble to nothing, so that NCCL runs on as if there were no profiler.
void BeginCommunicator(void** context, int* mask, const CommBirth& birth);
void EndCommunicator(void* context);

}  // namespace tacet::plugin
