// SPDX-License-Identifier: Apache-2.0
#include "torch_trace_import.h"

#include <algorithm>
#include <cstdint>

#include "base/decompress.h"
#include "base/mapped_file.h"
#include "model/assembly/file_rank.h"
#include "timeline_builder.h"
#include "trace_stream.h"

namespace tacet {
namespace {

// A recording shrinks to a tenth or a thirtieth. What unpacks to more than this many times its size, and to more than
// any file is unpacked to otherwise, is a bomb: reading it would take hours.
constexpr uint64_t kUsualRatio = 20, kMaxRatio = 200, kAlwaysUnpacked = uint64_t{512} << 20;

// A large file is gone through in windows, so that no more of a mapping than this stays in memory.
constexpr size_t kWindow = size_t{4} << 20;

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
                 " places are not valid JSON; all other events were read");
  const Speaker& speaker = out.speakers.back();
  if (speaker.rank_certainty == Certainty::assumed)
    out.Note(
        DiagnosticSeverity::note, "rank-assumed",
        "the trace does not state its rank; " + std::to_string(speaker.rank.value) + " is taken from the file name");
  if (out.timelines.back().gpu.empty())
    out.Note(DiagnosticSeverity::note, "no-gpu-events", "the trace has no GPU events", {},
             "profile with ProfilerActivity.CUDA to record GPU work");
}

}  // namespace

void ReadTorchTrace(const FileView& file, Fragment& out) {
  TimelineBuilder builder(out, file.bytes.size());
  TraceStream stream(builder);
  for (size_t at = 0; at < file.bytes.size(); at += kWindow) {
    const std::string_view window = file.bytes.substr(at, kWindow);
    stream.Feed(window);
    if (file.mapped) GiveBackPages(window);
  }
  Complete(file, stream, builder, file.cut, out);
}

void ReadTorchTraceStream(const FileView& file, Fragment& out) {
  TimelineBuilder builder(out, kUsualRatio * file.bytes.size());
  TraceStream stream(builder);
  const uint64_t limit = std::max(kAlwaysUnpacked, kMaxRatio * file.bytes.size());
  size_t given_back = 0;
  const DecompressOutcome outcome = Decompress(
      file.bytes, DetectCompression(file.bytes), limit,
      [&](std::string_view chunk) {
        stream.Feed(chunk);
        return true;
      },
      [&](size_t passed) {
        if (!file.mapped || passed < given_back + kWindow) return;
        GiveBackPages(file.bytes.substr(given_back, passed - given_back));
        given_back = passed;
      });
  if (outcome.limited)
    out.Note(DiagnosticSeverity::warning, "too-large",
             "unpacks to more than " + std::to_string(kMaxRatio) + " times its size; only the first " +
                 std::to_string(limit >> 20) + " MiB were read",
             {}, "no trace compresses that well: check what wrote the file");
  if (outcome.corrupt)
    out.Note(DiagnosticSeverity::warning, "compressed-corrupt",
             "the compressed data is damaged; what came before was read");
  Complete(file, stream, builder, file.cut || outcome.cut || outcome.corrupt || outcome.limited, out);
}

}  // namespace tacet
