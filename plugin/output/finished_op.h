// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/open_box.h"

namespace tacet::plugin {

// A finished operation in the terms of NCCL Inspector, so that tools made for its output read ours.
struct FinishedOp {
  box::Op op;
  char comm_name[64];  // "unknown" where there is none
  int32_t rank, size, nodes, device;
  const char* function;  // "AllReduce"
  bool transfer;         // send or receive
  uint64_t bytes;
  uint64_t duration_ns;
  const char* timing_source;  // "kernel_gpu", "kernel_cpu"
  double algorithm_gbs, bus_gbs;
};

// False for what Inspector would not write: captures, and operations whose time nobody knows.
bool DescribeOp(const OpenBox& box, const box::Op& op, FinishedOp* finished);

const char* NameOf(box::Kind kind);
const char* NameOf(box::Algorithm algorithm);
const char* NameOf(box::Protocol protocol);

// Reads the ring behind its writers, each record once.
class RingReader {
 public:
  // Calls use(op) for each whole record published since the last time.
  template <typename Use>
  void Drain(OpenBox& box, Use use) {
    for (box::Op op; Next(box, &op);) use(op);
  }

 private:
  bool Next(OpenBox& box, box::Op* op);

  uint64_t next_ = 0;
  uint64_t stalled_at_ = UINT64_MAX;  // was not published yet when last looked at
};

}  // namespace tacet::plugin
