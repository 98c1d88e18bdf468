// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"
#include "evidence/format.h"
#include "torch_trace_import.h"

namespace tacet {
namespace {

// The outer object of a Chrome trace with members or categories that only torch.profiler writes. The events may begin
// beyond the prefix: eight devices and a long distributedInfo come first.
Recognition Recognise(std::string_view prefix, std::string_view) {
  if (prefix.starts_with("\xef\xbb\xbf")) prefix.remove_prefix(3);
  size_t at = 0;
  while (at < prefix.size() && (prefix[at] == ' ' || prefix[at] == '\n' || prefix[at] == '\r' || prefix[at] == '\t'))
    ++at;
  if (at >= prefix.size() || prefix[at] != '{') return Recognition::no;
  const bool events = Contains(prefix, "\"traceEvents\"");
  const bool schema = Contains(prefix, "\"schemaVersion\"");
  if (schema && (Contains(prefix, "\"deviceProperties\"") || Contains(prefix, "\"baseTimeNanoseconds\"") || events))
    return Recognition::yes;
  if (!events) return Recognition::no;
  for (const std::string_view sign : {"\"distributedInfo\"", "\"deviceProperties\"", "\"cpu_op\"", "\"cuda_runtime\"",
                                      "\"kernel\"", "\"gpu_memcpy\"", "\"user_annotation\"", "ProfilerStep#"})
    if (Contains(prefix, sign)) return Recognition::yes;
  return Recognition::maybe;
}

}  // namespace

extern const Format kTorchTraceFormat;
const Format kTorchTraceFormat = {
    "torch_trace",
    "torch.profiler Chrome trace: profile(...).export_chrome_trace(\"trace.json.gz\") or tensorboard_trace_handler",
    Recognise,
    ReadTorchTrace,
    false,
    ReadTorchTraceStream};

}  // namespace tacet
