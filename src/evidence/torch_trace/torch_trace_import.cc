// SPDX-License-Identifier: Apache-2.0
#include "torch_trace_import.h"

#include "base/decompress.h"
#include "model/file_rank.h"
#include "timeline_builder.h"
#include "trace_stream.h"

namespace tacet {
namespace {

// A trace of this many bytes is a bomb, not a recording.
constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 42;

void Complete(const FileView& file, TraceStream& stream, TimelineBuilder& builder, bool cut, Fragment& out) {
  stream.Finish();
  cut = cut || !stream.complete();
  const auto assumed = RankFromPath(file.path);
  builder.Finish(cut, assumed.value_or(Rank{}));
  out.bytes.total = stream.total_bytes();
  out.bytes.understood = stream.understood_bytes();
  out.bytes.not_understood = stream.not_understood_bytes();
  out.bytes.ignored = out.bytes.total - out.bytes.understood - out.bytes.not_understood;
  if (cut)
    out.Note(DiagnosticSeverity::warning, "truncated", "the trace ends early; the events before the end were read", {},
             "a process that is killed while it writes leaves a cut file: wait for the export to finish");
  if (stream.damaged_places() > (cut ? 1u : 0u))
    out.Note(DiagnosticSeverity::note, "damaged-json",
             std::to_string(stream.not_understood_bytes()) + " bytes at " + std::to_string(stream.damaged_places()) +
                 " places are not valid JSON; the events around them were read");
  const Speaker& speaker = out.speakers.back();
  if (speaker.rank_certainty == Certainty::assumed)
    out.Note(DiagnosticSeverity::note, "rank-assumed",
             "the trace does not say its rank; " + std::to_string(speaker.rank.value) + " is taken from the file name");
  if (out.timelines.back().gpu.empty())
    out.Note(DiagnosticSeverity::note, "no-gpu-events", "the trace has no GPU events", {},
             "profile with ProfilerActivity.CUDA to see what the GPU does");
}

}  // namespace

void ReadTorchTrace(const FileView& file, Fragment& out) {
  TimelineBuilder builder(out);
  TraceStream stream(builder);
  stream.Feed(file.bytes);
  Complete(file, stream, builder, file.cut, out);
}

void ReadTorchTraceStream(const FileView& file, Fragment& out) {
  TimelineBuilder builder(out);
  TraceStream stream(builder);
  const DecompressOutcome outcome =
      Decompress(file.bytes, DetectCompression(file.bytes), kMaxTraceBytes, [&](std::string_view chunk) {
        stream.Feed(chunk);
        return true;
      });
  if (outcome.corrupt)
    out.Note(DiagnosticSeverity::warning, "compressed-corrupt",
             "the compressed data is damaged; what came before was read");
  Complete(file, stream, builder, file.cut || outcome.cut || outcome.corrupt || outcome.limited, out);
}

}  // namespace tacet
