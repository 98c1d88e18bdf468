// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"
#include "evidence/format.h"
#include "torch_trace_import.h"

namespace tacet {
namespace {

// The outer object of a Chrome trace with members or categories that only torch.profiler writes. The events may begin
// beyond the prefix: eight devices and a long distributedInfo come first, and other tools write members in any order.
// Some tools keep nothing but the array of events.
Recognition Recognise(std::string_view prefix, std::string_view) {
  if (prefix.starts_with("\xef\xbb\xbf")) prefix.remove_prefix(3);
  size_t at = 0;
  while (at < prefix.size() && (prefix[at] == ' ' || prefix[at] == '\n' || prefix[at] == '\r' || prefix[at] == '\t'))
    ++at;
  if (at >= prefix.size() || (prefix[at] != '{' && prefix[at] != '[')) return Recognition::no;
  const bool bare = prefix[at] == '[';
  int categories = 0, members = 0;
  for (const std::string_view sign :
       {"\"cpu_op\"", "\"cuda_runtime\"", "\"cuda_driver\"", "\"hip_runtime\"", "\"kernel\"", "\"gpu_memcpy\"",
        "\"gpu_memset\"", "\"user_annotation\"", "\"python_function\"", "\"ac2g\"", "ProfilerStep#"})
    categories += Contains(prefix, sign);
  if (bare)
    return !Contains(prefix, "\"ph\"") || categories == 0 ? Recognition::no
           : categories > 1                               ? Recognition::yes
                                                          : Recognition::maybe;
  for (const std::string_view sign :
       {"\"schemaVersion\"", "\"deviceProperties\"", "\"baseTimeNanoseconds\"", "\"distributedInfo\""})
    members += Contains(prefix, sign);
  const bool events = Contains(prefix, "\"traceEvents\"");
  if (members >= 2 || (events && members + categories > 0)) return Recognition::yes;
  return events ? Recognition::maybe : Recognition::no;
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
