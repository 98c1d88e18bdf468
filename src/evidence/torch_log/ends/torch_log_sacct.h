// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// Rows of `sacct`:
//   15926486        train-a         lin  cn213  gpu  NODE_FAIL 2024-07-24T09:30:44 2024-07-24T11:30:44   02:00:00
//   15926486.batch  batch                cn213       CANCELLED ...
// A table of several jobs is a history, and does not say which of them is meant.
class SacctReader {
 public:
  LineUse Read(const LogLine& line);
  void Finish(RecordList& out) const;

 private:
  std::string job_, state_, text_;
  LogLine line_;
  bool several_ = false;
};

// Whether the line is such a row.
bool IsSacctRow(std::string_view text);

}  // namespace tacet
