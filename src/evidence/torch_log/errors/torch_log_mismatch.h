// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// "CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[10, 20], TensorDtypes=Float,
// TensorDeviceTypes=...)"
struct FingerPrint {
  int64_t seq = -1;
  std::string_view op, shape, dtype, device;
  bool has_tensors = false;
  int64_t Elements() const;  // product of the shape; -1 where unknown or too large
};
FingerPrint ParseFingerPrint(std::string_view text);

// TORCH_DISTRIBUTED_DEBUG=DETAIL found two ranks in different collectives.
LineUse ReadMismatch(const LogLine& line, RecordList& out);

}  // namespace tacet
