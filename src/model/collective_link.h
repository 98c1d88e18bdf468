// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/timeline.h"

namespace tacet {

// The framework issued an operation: record_param_comms, or an annotation "nccl:all_reduce" of versions whose
// record_param_comms has no arguments.
struct CommunicationCall {
  TraceCollective operation;  // enter_ns is its start
  int64_t end_ns = 0;
  int64_t external_id = -1;
  uint32_t thread = 0;
  bool from_annotation = false;  // only says what another call is about; no operation of its own
  bool used = false;
};

// A communication kernel before it is known which operations it carries out.
struct CommunicationKernel {
  TraceCollective operation;  // by its own arguments, else by its name
  int64_t external_id = -1;
  bool has_arguments = false;
};

// Says for every communication kernel which operations it carries out, and fills timeline.collectives. In order: the
// kernel's own arguments (from 2.4); the call with the same External id; the call during which the kernel was launched;
// for a coalesced group, which is launched when it ends, the calls of that thread since the launch before. Calls
// without a kernel (copy engines, graphs, gloo) become operations without a GPU event. Expects timeline.gpu sorted,
// launches joined, and GpuEvent::collective to be an index into `kernels`.
void LinkCollectives(std::vector<CommunicationCall> calls, const std::vector<CommunicationKernel>& kernels,
                     Timeline& timeline);

}  // namespace tacet
