// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/perftest/perftest_parse.h"

namespace tacet {
namespace {

Recognition RecognisePerftest(std::string_view prefix, std::string_view) {
  if (IsPerftestJson(prefix)) return Recognition::yes;
  // The head of a test, of which the row of figures is not shown.
  if (ContainsAny(prefix, {" Dual-port       : O"}) && Contains(prefix, "Transport type : ")) return Recognition::yes;
  if (!Contains(prefix, "#bytes")) return Recognition::no;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);)
    if (line.size() < 500 && IsPerftestHeading(line)) return Recognition::yes;
  return Recognition::no;
}

// "RDMA_Write Bidirectional BW" -> "ib_write_bi_bw", "Send Latency" -> "ib_send_lat".
std::string OperationOf(std::string_view title) {
  std::string verb = "test";
  for (const std::string_view one : {"write", "read", "send", "atomic"}) {
    std::string lower(title);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (Contains(lower, one)) verb = one;
  }
  return "ib_" + verb + (Contains(title, "Bidirectional") ? "_bi" : "") + (Contains(title, "BW") ? "_bw" : "_lat");
}

BenchmarkRun RunOf(const PerftestTable& table) {
  BenchmarkRun run;
  run.tool = "perftest";
  run.operation = OperationOf(table.title);
  run.ranks = 2;
  run.checks_results = false;
  run.concluded = table.concluded;
  run.failure = table.failure;
  run.network_device = table.device.substr(0, 100);
  run.link = table.link.substr(0, 20);
  run.from = table.client;
  run.to = table.server;
  run.source = run.failed_at = {FileId{}, table.line, table.offset};
  for (const PerftestRow& row : table.rows) {
    BenchmarkLine& line = run.lines.emplace_back();
    line.bytes = row.bytes;
    line.source = {FileId{}, row.line, row.offset};
    BenchmarkFigure& figure = line.out_of_place;
    figure.algorithm_gbs = figure.bus_gbs = row.average_gbs;
    figure.time_us = row.average_us >= 0 ? row.average_us : row.typical_us;
    figure.min_us = row.min_us;
    figure.median_us = row.typical_us;
    figure.p99_us = row.p99_us;
    figure.max_us = row.max_us;
  }
  return run;
}

void ReadPerftest(const FileView& file, Fragment& out) {
  const PerftestOutput parsed =
      IsPerftestJson(file.bytes) ? ParsePerftestJson(file.bytes) : ParsePerftestText(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  for (const PerftestTable& table : parsed.tables) {
    if (table.rows.empty() && table.failure.empty() && table.device.empty()) continue;
    out.benchmark_runs.push_back(RunOf(table));
    const BenchmarkRun& run = out.benchmark_runs.back();
    if (!table.concluded && table.failure.empty())
      out.Note(
          DiagnosticSeverity::warning, "truncated",
          "the test's closing line is missing: the test was stopped, or the file is cut; the rows before it were read",
          run.source);
    // 4096 is what InfiniBand carries; RoCE takes what its Ethernet leaves it.
    if (table.link == "IB" && table.mtu > 0 && table.mtu < 4096)
      out.Note(DiagnosticSeverity::note, "small-mtu",
               "the link runs with an MTU of " + std::to_string(table.mtu) + " bytes; InfiniBand can carry 4096",
               run.source, "check the partition's MTU in the subnet manager's settings");
  }
}

}  // namespace

extern const Format kPerftestFormat;
const Format kPerftestFormat = {
    .name = "perftest",
    .description = "RDMA bandwidth and latency (ib_write_bw, ib_send_lat, ...), as printed or from --out_json",
    .recognise = RecognisePerftest,
    .read = ReadPerftest,
    .shares_lines = true,
};

}  // namespace tacet
