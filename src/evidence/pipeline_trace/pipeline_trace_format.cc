// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"
#include "evidence/format.h"
#include "pipeline_trace_import.h"

namespace tacet {
namespace {

// A bare array of Chrome events whose names are those of a pipeline step, with the step's number in their arguments.
Recognition Recognise(std::string_view prefix, std::string_view) {
  size_t at = 0;
  while (at < prefix.size() && (prefix[at] == ' ' || prefix[at] == '\n' || prefix[at] == '\r' || prefix[at] == '\t'))
    ++at;
  if (at >= prefix.size() || prefix[at] != '[') return Recognition::no;
  if (!Contains(prefix, "\"ph\"") || !Contains(prefix, "\"step\"") || !Contains(prefix, "\"seq_id\""))
    return Recognition::no;
  int known = 0;
  for (const std::string_view name :
       {"\"forward-compute\"", "\"backward-compute\"", "\"forward-send\"", "\"forward-recv\"", "\"backward-send\"",
        "\"backward-recv\"", "\"grads-reduce-scatter\"", "\"params-all-gather\""})
    known += Contains(prefix, name);
  return known >= 2 ? Recognition::yes : known == 1 ? Recognition::maybe : Recognition::no;
}

}  // namespace

extern const Format kPipelineTraceFormat;
const Format kPipelineTraceFormat = {"pipeline_trace",
                                     "timeline of pipeline-parallel training steps (Chrome trace of forward-compute, "
                                     "backward-send, ...), all workers in one file",
                                     Recognise, ReadPipelineTrace};

}  // namespace tacet
