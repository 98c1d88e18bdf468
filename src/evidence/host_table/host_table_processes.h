// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "evidence/host_table/host_table_parse.h"

namespace tacet {

// What ps and top list, by the names of the columns:
//     PID STAT CMD
//     561 T    python3 train.py --rank 2
class ProcessTable {
 public:
  static bool IsHead(std::string_view text);
  bool TakeHead(std::string_view text);
  bool TakeRow(std::string_view text, ProcessRow& row);

 private:
  size_t pid_ = 0, state_ = 0, command_ = 0;
  bool open_ = false;  // below a head
};

// "--rank=2", "RANK=2", "# rank 2"; else "--local_rank=2" of a job's first node. -1 where the command names none.
int32_t RankOfCommand(std::string_view command);

}  // namespace tacet
