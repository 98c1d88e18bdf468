// SPDX-License-Identifier: Apache-2.0
#include "pipeline_trace_import.h"

#include <algorithm>
#include <tuple>

#include "pipeline_trace_parse.h"

namespace tacet {
namespace {

int32_t ToInt32(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX)); }

// Grids beyond these are no real job.
constexpr int32_t kMaxPlaces = 1 << 16;

}  // namespace

void ReadPipelineTrace(const FileView& file, Fragment& out) {
  const PipelineTraceRecords records = ParsePipelineTrace(file.bytes);
  PipelineTrace trace;
  size_t unknown = 0, nowhere = 0;
  for (const PipelineTraceRecord& event : records.events) {
    const auto thread = records.threads.find({event.pid, event.tid});
    const auto dp = records.dp_ranks.find(event.pid);
    PipelineOperation operation;
    operation.op = ParsePipelineOp(event.name);
    operation.stage = thread == records.threads.end() ? -1 : thread->second.stage;
    operation.dp_rank = dp == records.dp_ranks.end() ? ToInt32(event.pid) : dp->second;
    if (operation.stage < 0 || operation.dp_rank < 0 || operation.stage >= kMaxPlaces ||
        operation.dp_rank >= kMaxPlaces) {
      ++nowhere;
      continue;
    }
    // Tensor-parallel ranks do the same at the same time; one of them stands for all.
    trace.tp_size = std::max(trace.tp_size, thread->second.tp_rank < kMaxPlaces ? thread->second.tp_rank + 1 : 1);
    if (thread->second.tp_rank > 0) continue;
    unknown += operation.op == PipelineOp::other;
    operation.start_ns = event.start_ns;
    operation.end_ns = event.start_ns + event.duration_ns;
    operation.step = ToInt32(event.step);
    operation.chunk = ToInt32(event.chunk);
    operation.microbatch = ToInt32(event.microbatch);
    operation.seq = ToInt32(event.seq);
    trace.dp_size = std::max(trace.dp_size, operation.dp_rank + 1);
    trace.stages = std::max(trace.stages, operation.stage + 1);
    trace.operations.push_back(operation);
  }
  std::stable_sort(trace.operations.begin(), trace.operations.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.step, a.dp_rank, a.stage, a.start_ns) < std::tuple(b.step, b.dp_rank, b.stage, b.start_ns);
  });
  trace.cut = file.cut || !records.complete;
  out.bytes.total = file.bytes.size();
  out.bytes.understood = records.understood;
  out.bytes.not_understood = records.not_understood;
  out.bytes.ignored = out.bytes.total - out.bytes.understood - out.bytes.not_understood;
  if (trace.cut)
    out.Note(DiagnosticSeverity::warning, "truncated", "the timeline ends early; the events before the end were read");
  if (nowhere > 0)
    out.Note(DiagnosticSeverity::note, "worker-unknown",
             std::to_string(nowhere) + " events belong to threads whose names lack stage and data-parallel rank");
  if (unknown > 0)
    out.Note(DiagnosticSeverity::note, "operation-unknown",
             std::to_string(unknown) + " operations are of unknown kinds");
  out.pipeline_traces.push_back(std::move(trace));
}

}  // namespace tacet
