// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "evidence/nccl_tests/nccl_tests_parse.h"

namespace tacet {

// The columns of a table, as its heading names them.
struct NcclTestsColumns {
  size_t per_side = 4;    // 8 with per-iteration times
  size_t sides = 2;       // rccl-tests may head only one
  bool in_place = false;  // of one side: which it is
  bool timestamp = false;
  // Which of a side's columns hold the least, the greatest and the 99th percentile; 0: none.
  size_t least = 0, greatest = 0, p99 = 0;
  bool differences = false, host_times = false;
};

// #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
bool ParseNcclTestsHeading(std::string_view line, NcclTestsColumns* out);

// Puts rows together. A row is printed in three pieces, and NCCL's own lines may come between them:
//         1024           256     float     sum      -1node7:42:42 [0] NCCL INFO AllReduce: opCount 1f ...
//      86.70    0.01    0.02       0    68.48    0.01    0.02       0
class NcclTestsRowReader {
 public:
  enum class Answer { nothing, part, row };

  void SetColumns(const NcclTestsColumns& columns);
  // `row` is only filled where the answer is row.
  Answer Take(std::string_view line, NcclTestsRow* row);

 private:
  static constexpr size_t kMostWords = 24;
  bool Begin(std::string_view line);
  bool IsRoot(std::string_view word, std::string_view behind) const;
  bool Add(std::string_view words);
  bool Finish(NcclTestsRow* row);

  NcclTestsColumns columns_;
  std::array<std::string_view, kMostWords> words_;
  size_t count_ = 0;
  size_t head_ = 0;  // words before the figures
};

}  // namespace tacet
