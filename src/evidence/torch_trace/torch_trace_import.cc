// SPDX-License-Identifier: Apache-2.0
#include "torch_trace_import.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/decompress.h"
#include "model/file_rank.h"
#include "timeline_builder.h"
#include "trace_stream.h"

namespace tacet {
namespace {

// A trace of this many bytes is a bomb, not a recording.
constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 42;

// A large file is gone through in windows, so that no more of a mapping than this stays in memory.
constexpr size_t kWindow = size_t{16} << 20;

// Lets go of the whole pages of a mapping that was read: they come back from the file if they are asked for again.
void GiveBack(std::string_view window) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(window.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(window.data() + window.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

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
  for (size_t at = 0; at < file.bytes.size(); at += kWindow) {
    const std::string_view window = file.bytes.substr(at, kWindow);
    stream.Feed(window);
    if (file.mapped) GiveBack(window);
  }
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
