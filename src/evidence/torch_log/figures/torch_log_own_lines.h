// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "evidence/torch_log/figures/torch_log_values.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What the job itself prints: its pid, its steps, its end. Steps may be millions; the first and the last are kept.
class OwnLineReader {
 public:
  LineUse Read(const LogLine& line, TorchLogVoice& voice, RecordList& out);
  void Finish(RecordList& out);
  TrainingReader& training() { return training_; }
  // A line says that the job, or this process, came to its end; for sure: it can mean nothing else.
  void NoteFinish(const LogLine& line, bool for_sure);

 private:
  void NoteProgress(const LogLine& line, int64_t number, bool of_epoch, RecordList& out);

  TrainingReader training_;
  TorchLogRecord* first_step_ = nullptr;
  TorchLogRecord* last_step_ = nullptr;
  int64_t steps_ = 0;
  int64_t rising_ = 0, last_number_ = -1;     // lines on end, each with a higher step than the one before
  uint32_t last_line_ = 0, line_before_ = 0;  // of the last step, and of the last one that was lower than it
  bool finished_ = false, finished_for_sure_ = false;
  bool begins_more_ = false;  // behind the line that says so
  LogLine finish_line_;
  std::string finish_text_;
  std::set<int32_t> finish_ranks_;  // that say so in one voice, each in a line of its own
  int pids_ = 0;
  bool in_warning_ = false;  // the line of code that Python prints under a warning comes next
};

// Lines that every PyTorch job may print and that say nothing: C++ frames, advice, banners.
bool IsNoise(std::string_view text);

}  // namespace tacet
