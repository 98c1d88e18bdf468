// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// The notes that Open MPI and PRRTE print between two rulers: a sentence over several lines, then rows of facts.
//   [[46667,1],2]: A high-performance Open MPI point-to-point messaging module
//   was unable to find any relevant network interfaces:
//     Module: OpenFabrics (openib)
//     Host: node5
//   Another transport will be used instead, although this may result in lower performance.
class MpiHelpReader {
 public:
  LineUse Read(const LogLine& line, RecordList& out);

 private:
  enum class Topic : uint8_t { none, unused, queue, memory, unreachable, tcp, refused, warning, failed, note };

  // One note, by words of its sentence. `what`: the id of a warning, the note in few words, or
  // the first step where there is a special one.
  struct Note {
    std::string_view words;
    Topic topic;
    std::string_view what = {};
  };
  static const Note kNotes[];

  LineUse Begin(const LogLine& line, const Note& note, RecordList& out);
  LineUse ReadRow(std::string_view text);

  Topic topic_ = Topic::none;
  TorchLogRecord* open_ = nullptr;  // whose rows follow
  TorchLogRecord spare_;            // of a note that tells of no failure
  int lines_left_ = 0;              // in which they must stand
};

}  // namespace tacet
