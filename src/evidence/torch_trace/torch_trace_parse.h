// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// The kinds of events that are of use; all others are skipped after their category is known.
enum class TraceEventKind : uint8_t {
  other,
  kernel,
  copy,
  memset,         // GPU work
  runtime,        // a CUDA or HIP call on the host
  communication,  // cpu_op record_param_comms: the framework issues an operation
  matrix,         // cpu_op of a matrix product or convolution
  gradient,       // cpu_op AccumulateGrad: a parameter's gradient is ready
  annotation,     // record_function
  memory,         // [memory], [OutOfMemory]
};

// The arguments of a collective, as record_param_comms and NCCL kernels carry them. -1 and empty: not recorded.
struct CollectiveArguments {
  std::string_view name;  // "allreduce", "_allgather_base", "wait"
  std::string_view group_name, group_description, group_ranks;
  std::string_view type;  // "BFloat16"
  int64_t in_elements = -1, out_elements = -1, group_size = -1, seq = -1;
  int64_t source = -1, destination = -1;
  bool any() const { return !name.empty(); }
};

// One event. Views point into the text; escapes are unresolved.
struct TraceEventRecord {
  TraceEventKind kind = TraceEventKind::other;
  std::string_view name;
  int64_t pid = -1, tid = -1;
  int64_t start_ns = 0, duration_ns = 0;  // ts is relative to baseTimeNanoseconds, which may stand behind the events
  int64_t correlation = -1, external_id = -1, stream = -1, device = -1, bytes = -1;
  int64_t device_type = -1, allocated = -1, reserved = -1;
  std::string_view input_dims, input_types;  // "[[2048, 8192], [2048]]" and "[\"float\"]" as written
  CollectiveArguments collective;
};

// Reads one element of traceEvents. False when it is no event at all. An event of no interest has kind `other`, and its
// fields are not filled.
//   {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)", "pid": 0, "tid": 16,
//    "ts": 3846202263307.447, "dur": 22904.079, "args": {"External id": 645, "device": 0, "stream": 16, "correlation":
//    6109, "Collective name": "allreduce", "In msg nelems": 16782336, "Group size": 4, "dtype": "BFloat16", ...}}
//   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 983, "tid": 983, "ts": 1694128201427784,
//   "dur": 3,
//    "args": {"External id": 40728, "cbid": 151, "correlation": 40728}}
//   {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "ts": 1.2, "args": {"Total Allocated":
//   1013004800}}
bool ParseTraceEvent(std::string_view text, TraceEventRecord* out);

// "3846202263307.447" microseconds to ns, exactly; NaN, overflow and rubbish give `otherwise`.
int64_t MicrosecondsToNs(std::string_view text, int64_t otherwise);

// Sizes of a JSON array of arrays: "[[2048, 8192], [], [[3, 4]]]" gives {2048, 8192}, {}, {3, 4}.
std::vector<std::vector<int64_t>> ParseDims(std::string_view text);

// "[0, 1, 2, 3]", "[0, 1, ..., 28, ..., 63]" (cut, gives nothing) and "[]".
std::vector<int32_t> ParseGroupRanks(std::string_view text);

}  // namespace tacet
