// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What Ascend's torch_npu tells of one failed call, some lines long:
//   RuntimeError: npuSynchronizeDevice:...:479 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is
//   507048
//   [ERROR] 2025-06-25-10:45:23 (PID:13075, Device:0, RankID:8) ERR00100 PTA call acl api failed
//   EI0002: [PID: 13075] ... The wait execution of the Notify register times out. ... from remote rank: [3]. ...
// The second line tells whose the first is, and whose those below it are.
struct AscendBlock {
  TorchLogRecord* wait = nullptr;
  TorchLogRecord* device_error = nullptr;
  TorchLogRecord* call_error = nullptr;  // of a call of HCCL
  int64_t pid = -1, device = -1;
  int32_t rank = -1;
  uint32_t last_line = 0;  // that told something of it
  TorchLogRecord* coded = nullptr;  // what its last code was told of: the cure follows
  uint32_t coded_line = 0;
};

// Whether a timeout is told in these words. Nothing ends a process for it: a program may catch it and go on.
bool IsAscendWait(std::string_view text);

// Waits for other ranks that ended by a timeout, and cores that failed. The errors of HCCL's own calls are left to
// ReadOtherLibrary.
LineUse ReadAscend(const LogLine& line, AscendBlock& block, RecordList& out);
// Who did not connect when a communicator was set up.
LineUse ReadAscendSetup(const LogLine& line, AscendBlock& block, RecordList& out);
// Its codes, with the reason and the cure that Ascend prints beside them.
LineUse ReadAscendAdvice(const LogLine& line, AscendBlock& block, RecordList& out);

}  // namespace tacet
