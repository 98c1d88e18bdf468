// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/nvbandwidth/nvbandwidth_parse.h"

namespace tacet {
namespace {

Recognition RecogniseNvbandwidth(std::string_view prefix, std::string_view) {
  if (IsNvbandwidthJson(prefix)) return Recognition::yes;
  // One search decides for most files. The version stands on top; further down only the tables are seen.
  if (!Contains(prefix, "(column)")) return Recognition::no;
  const bool ours = Contains(prefix, "nvbandwidth Version:") || Contains(prefix, "\nSUM ");
  return ours ? Recognition::yes : Recognition::no;
}

// "memcpy CE CPU(row) <- GPU(column) bandwidth": what rows and columns are.
std::string KindBefore(std::string_view title, std::string_view mark) {
  const size_t at = title.find(mark);
  if (at == std::string_view::npos) return "";
  size_t begin = at;
  while (begin > 0 && title[begin - 1] != ' ') --begin;
  return std::string(title.substr(begin, at - begin));
}

BenchmarkRun RunOf(const NvbandwidthOutput& from, const NvbandwidthTest& test) {
  BenchmarkRun run;
  run.tool = "nvbandwidth";
  run.version = from.version;
  run.operation = test.name;
  run.checks_results = false;
  run.concluded = test.concluded;
  run.failure = test.failure;
  run.source = run.failed_at = {FileId{}, test.line, test.offset};
  for (size_t i = 0; i < from.devices.size(); ++i)
    run.devices.push_back({Rank{}, from.host, from.devices[i], -1, static_cast<int32_t>(i)});
  for (const NvbandwidthTable& table : test.tables) {
    BenchmarkMatrix& matrix = run.matrices.emplace_back();
    matrix.title = table.title;
    matrix.row_kind = KindBefore(table.title, "(row)");
    matrix.column_kind = KindBefore(table.title, "(column)");
    matrix.rows = table.rows;
    matrix.columns = table.columns;
    matrix.cells = table.cells;
    matrix.is_latency = table.nanoseconds;
    matrix.source = {FileId{}, table.line, table.offset};
    const double scale = table.nanoseconds ? 1e-3 : 1;
    for (std::vector<double>& row : matrix.cells)
      for (double& cell : row) cell *= scale;
    if (&table == &test.tables.back() && test.sum >= 0) matrix.told_sum = test.sum * scale;
  }
  return run;
}

void ReadNvbandwidth(const FileView& file, Fragment& out) {
  const NvbandwidthOutput parsed =
      IsNvbandwidthJson(file.bytes) ? ParseNvbandwidthJson(file.bytes) : ParseNvbandwidthText(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  const auto waived =
      std::count_if(parsed.tests.begin(), parsed.tests.end(), [](const NvbandwidthTest& test) { return test.waived; });
  if (waived > 0)
    out.Note(DiagnosticSeverity::note, "tests-waived",
             std::to_string(waived) + (waived == 1 ? " test was" : " tests were") + " waived: nvbandwidth cannot run " +
                 (waived == 1 ? "it" : "them") + " on this machine");
  for (const NvbandwidthTest& test : parsed.tests) {
    if (test.waived || (test.tables.empty() && test.failure.empty())) continue;
    out.benchmark_runs.push_back(RunOf(parsed, test));
    if (!test.concluded && test.failure.empty())
      out.Note(DiagnosticSeverity::warning, "truncated",
               "the sum of " + test.name + " is missing: the benchmark was stopped, or the file is cut",
               out.benchmark_runs.back().source);
  }
}

}  // namespace

extern const Format kNvbandwidthFormat;
const Format kNvbandwidthFormat = {
    .name = "nvbandwidth",
    .description =
        "copies between GPUs, and between GPUs and host memory, as nvbandwidth measures them: its tables, or the "
        "output of -j",
    .recognise = RecogniseNvbandwidth,
    .read = ReadNvbandwidth,
    .shares_lines = true,
};

}  // namespace tacet
