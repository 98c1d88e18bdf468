// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"
#include "evidence/flight_recorder/flight_recorder_import.h"
#include "evidence/format.h"

namespace tacet {

extern const Format kFlightRecorderFormat;

namespace {

// The names PyTorch and NVRx give: nccl_trace_rank_3, comm_lib_trace_rank_3, _dump_3.
bool HasDumpName(std::string_view filename) {
  const size_t slash = filename.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? filename : filename.substr(slash + 1);
  return Contains(name, "nccl_trace_rank") || Contains(name, "comm_lib_trace_rank") || name.starts_with("_dump_");
}

// 80 02 7d ... or, from Python, 80 04 95 <8 bytes> 7d ...
bool HasPickleHead(std::string_view prefix) {
  return prefix.size() >= 2 && prefix[0] == '\x80' && prefix[1] >= 2 && prefix[1] <= 5;
}

Recognition RecognisePickle(std::string_view prefix) {
  const size_t root = prefix.size() > 2 && prefix[2] == '\x95' ? 11 : 2;
  if (root >= prefix.size() || (prefix[root] != '}' && prefix[root] != ']')) return Recognition::no;
  if (Contains(prefix, "profiling_name") || Contains(prefix, "pg_config") || Contains(prefix, "pg_status"))
    return Recognition::yes;
  if (prefix[root] == '}' && Contains(prefix, "version") && Contains(prefix, "entries")) return Recognition::maybe;
  return Recognition::no;
}

Recognition RecogniseJson(std::string_view prefix) {
  // torch.profiler's traces have a pg_config too.
  if (Contains(prefix, "\"traceEvents\"") || Contains(prefix, "\"distributedInfo\"")) return Recognition::no;
  if (Contains(prefix, "\"profiling_name\"") &&
      (Contains(prefix, "\"pg_id\"") || Contains(prefix, "\"record_id\"") || Contains(prefix, "seq_id\"")))
    return Recognition::yes;
  if (Contains(prefix, "\"pg_config\"") && (Contains(prefix, "\"pg_status\"") || Contains(prefix, "\"entries\"")))
    return Recognition::yes;
  if (Contains(prefix, "\"last_enqueued_collective\"")) return Recognition::yes;
  return Recognition::no;
}

Recognition Recognise(std::string_view prefix, std::string_view filename) {
  Recognition found = Recognition::no;
  const size_t first = prefix.find_first_not_of(" \t\r\n");
  const char head = first == std::string_view::npos ? '\0' : prefix[first];
  if (HasPickleHead(prefix)) {
    found = RecognisePickle(prefix);
  } else if (head == '{' || head == '[') {
    found = RecogniseJson(prefix);
  }
  if (found != Recognition::no || !HasDumpName(filename)) return found;
  // What has a dump's name and could be one deserves to be told what is wrong with it: empty, cut in the first bytes,
  // or a pickle that is something else, perhaps an attack ("cos\nsystem").
  const bool could_be = prefix.empty() || prefix[0] == '\x80' || head == '{' || head == '[' || head == '(' ||
                        head == 'c' || head == '}' || head == ']';
  return could_be ? Recognition::maybe : Recognition::no;
}

}  // namespace

const Format kFlightRecorderFormat = {
    .name = "flight_recorder",
    .description = "PyTorch Flight Recorder dump, pickle or JSON (set TORCH_FR_BUFFER_SIZE=2000; nccl_trace_rank_N)",
    .recognise = Recognise,
    .read = ImportFlightRecorder,
};

}  // namespace tacet
