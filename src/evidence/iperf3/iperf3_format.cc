// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/iperf3/iperf3_parse.h"

namespace tacet {
namespace {

Recognition RecogniseIperf3(std::string_view prefix, std::string_view) {
  if (IsIperf3Json(prefix)) return Recognition::yes;
  if (!Contains(prefix, "/sec")) return Recognition::no;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);)
    if (line.size() < 300 && IsIperf3Line(line)) return Recognition::yes;
  return Recognition::no;
}

BenchmarkRun RunOf(const Iperf3Output& from, const Iperf3Test& test) {
  BenchmarkRun run;
  run.tool = "iperf3";
  run.version = from.version;
  run.link = test.protocol.empty() ? "TCP" : test.protocol;
  run.operation = run.link == "UDP" ? "udp_stream" : "tcp_stream";
  run.checks_results = false;
  // In reverse mode, and for the rows that a client of --bidir receives, data comes from the other side.
  const bool inward = test.reverse || test.role.starts_with("RX");
  run.from = inward ? test.remote : test.local;
  run.to = inward ? test.local : test.remote;
  run.ranks = 2;
  run.concluded = test.concluded;
  run.failure = test.error;
  run.sent_gbs = test.sent_gbs;
  run.received_gbs = test.received_gbs >= 0 ? test.received_gbs : test.sent_gbs;
  run.retransmits = test.retransmits;
  run.lost_share = test.lost_share;
  run.source = run.failed_at = {FileId{}, test.line, test.offset};
  for (const Iperf3Rate& rate : test.rates) run.rates.push_back({rate.start_s, rate.end_s, rate.gbs, rate.retransmits});
  return run;
}

void ReadIperf3(const FileView& file, Fragment& out) {
  const Iperf3Output parsed = IsIperf3Json(file.bytes) ? ParseIperf3Json(file.bytes) : ParseIperf3Text(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  for (const Iperf3Test& test : parsed.tests) {
    if (test.rates.empty() && !test.concluded && test.error.empty()) continue;
    out.benchmark_runs.push_back(RunOf(parsed, test));
    if (!test.concluded && test.error.empty())
      out.Note(DiagnosticSeverity::warning, "truncated",
               "the test's totals are missing: it was stopped, or the file is cut; the complete intervals were read",
               out.benchmark_runs.back().source);
  }
}

}  // namespace

extern const Format kIperf3Format;
const Format kIperf3Format = {
    .name = "iperf3",
    .description = "output of iperf3: what it prints, the file of -J, the lines of --json-stream",
    .recognise = RecogniseIperf3,
    .read = ReadIperf3,
    .shares_lines = true,
};

}  // namespace tacet
