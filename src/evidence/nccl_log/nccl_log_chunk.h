// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "evidence/nccl_log/nccl_log_line.h"
#include "evidence/nccl_log/nccl_log_parse.h"
#include "evidence/nccl_log/nccl_log_topic.h"
#include "model/topology.h"

namespace tacet {

// A line of NCCL's with what it says, as far as that can be told from the line alone.
struct NcclChunkLine {
  NcclLogLine line;  // number, offset and writer count from the chunk's start
  NcclTopic topic = NcclTopic::ignored;
  bool call_fits = false;
  uint32_t connection = kNoConnection;  // for the topic connection: index into NcclLogChunk::connections
  NcclCall call;                        // for the topics call and api_call

  static constexpr uint32_t kNoConnection = 0xffffffffu;
};

// Lines that differ in nothing but their channel, as NCCL prints them for one way between two ranks. Set-up logs of
// large jobs consist of these. The line kept is the first of them; its `bytes` are those of all.
struct NcclConnectionLines {
  NcclConnection connection;  // of the first
  ChannelSet channels;
  uint32_t lines = 1;
};

// A part of a log, read without knowing the rest of it: several cores read several parts at once. Lines that change
// nothing are only counted.
struct NcclLogChunk {
  void Read(std::string_view text);

  std::vector<NcclChunkLine> lines;  // kinds message and version
  std::vector<NcclConnectionLines> connections;
  std::vector<NcclWriter> writers;
  uint32_t line_count = 0;
  uint64_t bytes = 0;
  uint64_t ignored_bytes = 0, foreign_bytes = 0;  // of lines that are not kept
  uint64_t perhaps_continued_bytes = 0;  // foreign, unless the part before ended within a message of several lines
  bool has_messages = false, in_several_lines = false;

 private:
  bool ChangesNothing(const NcclLogLine& line, NcclTopic topic) const;
  void Keep(const NcclLogLine& line, NcclCallReader& call_reader);
  bool KeepConnection(const NcclLogLine& line);
};

// Parts of about `part_bytes`, each of whole lines.
std::vector<std::string_view> SplitLines(std::string_view text, size_t part_bytes);

}  // namespace tacet
