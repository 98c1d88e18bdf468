// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacet {

// One complete event ("ph": "X") of a pipeline timeline.
struct PipelineTraceRecord {
  std::string_view name;  // "forward-compute"
  int64_t pid = -1, tid = -1;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t step = -1, chunk = -1, microbatch = -1, seq = -1;
};

// What a thread's name says: the place of a worker in the grid of stages and tensor-parallel ranks.
struct PipelineThread {
  int32_t stage = -1, tp_rank = -1;
};

struct PipelineTraceRecords {
  std::vector<PipelineTraceRecord> events;
  std::map<std::pair<int64_t, int64_t>, PipelineThread> threads;  // (pid, tid)
  std::map<int64_t, int32_t> dp_ranks;                            // pid -> data-parallel rank
  uint64_t understood = 0, not_understood = 0;                    // bytes
  bool complete = false;                                          // the closing bracket was seen
};

// Reads the array of events; views point into the text.
//   [{"name":"backward-compute","cat":"backward-compute","pid":0,"tid":0,"ts":848671.6747283936,"dur":138679.68320846558,"ph":"X",
//     "args":{"step":23,"model_chunk":0,"mb_id":0,"seq_id":0}},
//    {"name":"thread_name","pid":0,"tid":10,"ph":"M","args":{"name":"PP rank 1, TP rank 0, compute"}},
//    {"name":"process_name","pid":0,"ph":"M","args":{"name":"DP rank [0]"}}]
PipelineTraceRecords ParsePipelineTrace(std::string_view text);

}  // namespace tacet
