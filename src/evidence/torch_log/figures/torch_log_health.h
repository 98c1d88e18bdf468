// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What tools beside the training print of its health: scores of slow ranks, how full the memory of the host is.
LineUse ReadHealthLine(const LogLine& line, RecordList& out);

// A score of which no warning follows is no report.
void DropUntoldScores(TorchLog& log);

// Keeps the line that says that the host's memory is nearly full where somebody is killed by SIGKILL soon after it.
void JoinMemoryWithKills(TorchLog& log, const HostMemoryNote& note);

// A bar of work before the training ("Running tokenizer on dataset: 36%") that goes on when others time out.
class WorkBarReader {
 public:
  // Says whether the line is one.
  bool Read(const LogLine& line);
  // Gives it to the timeouts that came while it ran.
  void Finish(TorchLog& log) const;

 private:
  // The last one that a voice draws. Lines without any label are one voice, whoever writes them.
  struct Bar {
    uint32_t voice = 0;
    std::string name;  // without its share
    int percent = -1;
    int64_t left_s = -1;
    uint32_t first_line = 0, last_line = 0;
  };
  std::vector<Bar> bars_;
};

}  // namespace tacet
