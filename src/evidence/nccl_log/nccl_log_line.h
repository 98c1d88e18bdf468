// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/line_reader.h"
#include "evidence/nccl_log/nccl_log_stamp.h"

namespace tacet {

enum class NcclLineKind : uint8_t {
  message,       // NCCL wrote it, with its prefix
  version,       // "NCCL version 2.27.7+cuda12.9": the VERSION level has no prefix
  continuation,  // the rest of a message of several lines
  blank,         // also the line that every WARN starts with
  framework,     // PyTorch, Python or an NCCL plugin wrote it: another reader's business
  foreign,       // somebody else's output
};

enum class NcclLevel : uint8_t { info, warn, trace, call, version };

// A process as the prefix names it. Lines without any prefix, as documents quote them, have neither host nor pid.
struct NcclWriter {
  std::string_view host;
  int64_t pid = -1;
  LauncherLabel label;         // of its first line
  bool label_changed = false;  // later lines carry another one, so it does not number this process
  int32_t device = -1;         // the highest of its lines
};

struct NcclLogLine {
  NcclLineKind kind = NcclLineKind::foreign;
  NcclLevel level = NcclLevel::info;
  uint32_t writer = 0;  // index into NcclLogWalker::writers(), only for kind `message`
  int32_t device = -1;  // the calling thread's current device, which need not be the rank's
  int64_t tid = -1;
  int64_t wall_ns = kNoStamp;
  std::string_view source;  // of a warning: "misc/socket.cc:72"
  std::string_view message;
  uint32_t number = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // newline included
};

// The processes that write a log, each once.
class NcclWriterTable {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  // The index of this process, a new one where it is new; kNone where there are too many.
  uint32_t Take(const NcclWriter& writer);
  const std::vector<NcclWriter>& all() const { return all_; }

 private:
  std::vector<NcclWriter> all_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

// True for the text of a line that may go on a message of several lines: the row of a matrix, the end of a warning.
bool MayContinueMessage(std::string_view text);

// Walks a log line by line and takes off what stands before each message: launcher labels, terminal escapes, times,
// "host:pid:tid [device]" and the level. Views point into the text given.
class NcclLogWalker {
 public:
  explicit NcclLogWalker(std::string_view text) : reader_(text) {}
  // The next line, good until the next call; nullptr at the end.
  const NcclLogLine* Next();
  const std::vector<NcclWriter>& writers() const { return writers_.all(); }
  // Whether the lines that follow may go on the last message.
  bool in_several_lines() const { return in_several_lines_; }

 private:
  // Most lines start like one of the last lines did, but for the time: a node's ranks and their proxy threads take
  // turns. So a prefix is only taken apart when it is new.
  struct Prefix {
    std::string_view text;  // up to and with "NCCL INFO "
    size_t label = 0;       // bytes of the launcher's label at its front
    size_t host = 0;        // where the host's name starts: a label and a time stand before it
    Stamp stamp;
    NcclLogLine line;
    bool IsExactly(std::string_view text) const;
    bool Fits(std::string_view text) const;
  };
  Prefix* FindPrefix(std::string_view text);
  bool ReadPrefix(std::string_view text, Prefix* prefix);
  static void TakeTime(std::string_view line, Prefix* prefix);
  void ReadBareLine(std::string_view text, NcclLogLine* line) const;
  const NcclLogLine* Finish(NcclLogLine& line) const;

  LineReader reader_;
  NcclWriterTable writers_;
  static constexpr size_t kKnown = 16;
  Prefix known_[kKnown];
  size_t newest_ = 0;              // of the last line
  size_t replaced_ = 0;            // the prefix last given up for another one
  Prefix other_;                   // of lines that are not INFO, and the line itself where there is no prefix
  bool in_several_lines_ = false;  // the rows of a matrix or the rest of a long warning may follow without prefix
};

}  // namespace tacet
