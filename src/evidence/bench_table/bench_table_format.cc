// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/text_scan.h"
#include "evidence/bench_table/bench_table_parse.h"
#include "evidence/format.h"

namespace tacet {
namespace {

// Anything may hold columns of numbers: never more than "maybe", and only where hardly anything else stands there.
Recognition RecogniseTable(std::string_view prefix, std::string_view) {
  if (prefix.size() < 16 || prefix[0] == '{' || prefix[0] == '<' ||
      Contains(prefix.substr(0, 4096), std::string_view("\0", 1)))
    return Recognition::no;
  const std::string_view head = prefix.substr(0, 8192);
  if (std::count(head.begin(), head.end(), '\n') < 3) return Recognition::no;
  const BenchTableOutput parsed = ParseBenchTables(head.substr(0, head.rfind('\n') + 1));
  size_t rows = 0;
  for (const BenchTable& table : parsed.tables) rows += table.rows.size();
  return rows >= 3 && parsed.not_understood * 10 <= parsed.understood ? Recognition::maybe : Recognition::no;
}

// Bus over algorithm bandwidth where both are told.
void ReadTables(const FileView& file, Fragment& out) {
  const BenchTableOutput parsed = ParseBenchTables(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  for (const BenchTable& table : parsed.tables) {
    BenchmarkRun& run = out.benchmark_runs.emplace_back();
    run.tool = "table";
    run.operation = table.operation;
    run.ranks = static_cast<int32_t>(std::clamp<int64_t>(table.ranks, -1, INT32_MAX));
    run.checks_results = false;
    run.concluded = true;
    run.source = {FileId{}, table.line, table.offset};
    for (const BenchTableRow& row : table.rows) {
      BenchmarkLine& line = run.lines.emplace_back();
      line.bytes = row.bytes;
      line.source = {FileId{}, row.line, row.offset};
      line.out_of_place.time_us = row.time_us;
      line.out_of_place.algorithm_gbs = row.algorithm_gbs;
      line.out_of_place.bus_gbs = row.bus_gbs;
    }
    if (!table.headed)
      out.Note(DiagnosticSeverity::note, "units-assumed",
               "the table has no heading; read as size in bytes, time in µs and GB/s, since these agree", run.source,
               "write a heading: # size(B) time(us) busbw(GB/s)");
  }
}

}  // namespace

extern const Format kBenchTableFormat;
const Format kBenchTableFormat = {
    .name = "bench_table",
    .description = "a plain table of sizes, times and bandwidths, with or without a heading",
    .recognise = RecogniseTable,
    .read = ReadTables,
};

}  // namespace tacet
