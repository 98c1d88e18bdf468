// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <string>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/osu/osu_parse.h"

namespace tacet {
namespace {

Recognition RecogniseOsu(std::string_view prefix, std::string_view) {
  if (!Contains(prefix, "# OSU ")) return Recognition::no;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);)
    if (line.size() < 300 && IsOsuTitle(line)) return Recognition::yes;
  return Recognition::no;
}

// "MPI-CUDA Allreduce Latency" -> "all_reduce"; "MPI Bi-Directional Bandwidth" -> "osu_bibw".
std::string OperationOf(std::string_view title) {
  TakeWord(title);  // MPI, MPI-CUDA, NCCL, OpenSHMEM
  std::string words;
  for (const char c : title)
    if (std::isalnum(static_cast<unsigned char>(c)))
      words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  struct Known {
    std::string_view word, operation;
  };
  constexpr Known kKnown[] = {{"reducescatter", "reduce_scatter"},
                              {"allreduce", "all_reduce"},
                              {"allgather", "all_gather"},
                              {"alltoall", "all_to_all"},
                              {"broadcast", "broadcast"},
                              {"bcast", "broadcast"},
                              {"scatter", "scatter"},
                              {"gather", "gather"},
                              {"reduce", "reduce"},
                              {"bidirectionalbandwidth", "osu_bibw"},
                              {"multiplebandwidth", "osu_mbw_mr"},
                              {"bandwidth", "osu_bw"},
                              {"latency", "osu_latency"}};
  for (const Known& known : kKnown)
    if (Contains(words, known.word)) return std::string(known.operation);
  return words;
}

void ReadOsu(const FileView& file, Fragment& out) {
  const OsuOutput parsed = ParseOsu(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  for (const OsuTable& table : parsed.tables) {
    if (table.rows.empty()) continue;
    BenchmarkRun& run = out.benchmark_runs.emplace_back();
    run.tool = "OSU micro-benchmarks";
    run.version = table.version;
    run.operation = OperationOf(table.title);
    if (run.operation.starts_with("osu_")) run.ranks = run.operation == "osu_mbw_mr" ? -1 : 2;
    run.checks_results = table.validated;
    run.concluded = true;  // nothing closes a table
    run.source = {FileId{}, table.line, table.offset};
    for (const OsuRow& row : table.rows) {
      BenchmarkLine& line = run.lines.emplace_back();
      line.bytes = row.bytes;
      line.source = {FileId{}, row.line, row.offset};
      BenchmarkFigure& figure = line.out_of_place;
      figure.time_us = row.time_us;
      figure.min_us = row.min_us;
      figure.max_us = row.max_us;
      figure.algorithm_gbs = row.gbs;
      if (run.operation.starts_with("osu_")) figure.bus_gbs = row.gbs;
      if (table.validated) figure.wrong = row.failed ? 1 : 0;
    }
  }
}

}  // namespace

extern const Format kOsuFormat;
const Format kOsuFormat = {
    .name = "osu",
    .description = "tables of the OSU micro-benchmarks (osu_bw, osu_latency, osu_allreduce, ...)",
    .recognise = RecogniseOsu,
    .read = ReadOsu,
    .shares_lines = true,
};

}  // namespace tacet
