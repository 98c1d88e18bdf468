// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What Ray says where it saw no more than a lost connection.
inline constexpr std::string_view kRaySawItClose = "Ray only saw its connection close";

// Ray's memory monitor kills a worker when its node runs low on memory, and several processes of Ray tell of it.
bool IsRaysMemoryKill(std::string_view text);
LineUse AddRaysMemoryKill(const LogLine& line, RecordList& out);
// True for a line by which Ray counts crashed workers of a node, and none that it killed for memory.
bool NoteRaysCount(const LogLine& line, RecordList& out);

// The lines that Ray lists below the error of a lost actor, and which follow each other: class_name, pid, name, ip.
class RayActorReader {
 public:
  void Read(const LogLine& line, RecordList& out);

 private:
  std::string class_, ip_;
  int64_t pid_ = -1;
  uint32_t last_line_ = 0;
};

// Where Ray itself killed for want of memory, its lost connection to that worker tells nothing more.
void JoinRaysMemoryKills(TorchLog& log);

}  // namespace tacet
