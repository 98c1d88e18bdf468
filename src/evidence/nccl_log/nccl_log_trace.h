// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tacet {

// One line of RCCL's trace of its kernels (RCCL_KERNEL_COLL_TRACE_ENABLE=1):
//   ## [170260.347287] [07:00] 000001 KL HWID 42300700 ncclDevFunc_AllReduce_RING_LL_Sum_double nw 4 ... nRanks 8
//   ## [951297.535389] [170:00-00:00] 000000 KE busId bf000 nRanks 256 comm 0x12345
struct NcclKernelLine {
  int32_t rank = -1;         // in its communicator
  std::string_view channel;  // block and channel, as written
  uint64_t op_count = 0;
  bool starts = false, ends = false;  // KL, KE; neither: something else of the same trace
};
bool ParseKernelLine(std::string_view message, NcclKernelLine* line);

// Which kernels of a process have started and not ended. A kernel that runs several operations ends with the number of
// the last one, so that an end without its own start ends the oldest kernel of its channel.
class NcclKernels {
 public:
  void Take(const NcclKernelLine& line);
  // The number of the operation whose kernel started last and has not ended; false where there is none.
  bool Open(uint64_t* op_count) const;
  // Of all lines; -1 where they differ or there are none.
  int32_t rank() const { return same_rank_ ? rank_ : -1; }

 private:
  struct Kernel {
    uint64_t channel = 0, op_count = 0;
  };
  std::vector<Kernel> open_;
  int32_t rank_ = -1;
  bool same_rank_ = true;
};

}  // namespace tacet
