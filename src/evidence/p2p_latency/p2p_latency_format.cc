// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <string>

#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/p2p_latency/p2p_latency_parse.h"

namespace tacet {
namespace {

Recognition RecogniseP2pTest(std::string_view prefix, std::string_view) {
  if (!ContainsAny(prefix, {"P2P", "Access Peer Device="})) return Recognition::no;
  // A part of the output is known wherever it begins.
  const bool ours = ContainsAny(
      prefix, {"P2P=Enabled Bandwidth", "P2P=Disabled Bandwidth Matrix", "P2P Connectivity Matrix",
               "CAN Access Peer Device=", "CANNOT Access Peer Device=", "P2P=Enabled Latency", "P2P=Disabled Latency"});
  return ours ? Recognition::yes : Recognition::no;
}

// Which GPUs reach each other, where no figures were measured, or none is shown.
void AddReach(const P2pOutput& parsed, Fragment& out) {
  if (parsed.reach.empty()) return;
  Event& event = out.events.emplace_back();
  event.kind = EventKind::gpu_check;
  event.speaker = kNobody;
  event.source = {FileId{}, parsed.reach.front().line, parsed.reach.front().offset};
  const auto apart =
      std::count_if(parsed.reach.begin(), parsed.reach.end(), [](const P2pReach& one) { return !one.can; });
  event.text =
      std::to_string(parsed.reach.size()) + " pairs of GPUs, " + std::to_string(apart) + " without direct access";
  GpuCheck check;
  check.test = apart == 0 ? "all pairs of GPUs reach each other directly"
               : apart == static_cast<std::ptrdiff_t>(parsed.reach.size())
                   ? "no two GPUs reach each other directly"
                   : "some pairs of GPUs reach each other directly, others do not";
  check.of_setup = check.remark = true;
  event.detail = std::move(check);
}

void ReadP2pTest(const FileView& file, Fragment& out) {
  const P2pOutput parsed = ParseP2pTest(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  if (parsed.tables.empty()) return AddReach(parsed, out);
  BenchmarkRun run;
  run.tool = "p2pBandwidthLatencyTest";
  run.operation = "peer_to_peer";
  run.checks_results = false;
  run.concluded = true;
  run.source = {FileId{}, parsed.tables.front().line, parsed.tables.front().offset};
  for (size_t i = 0; i < parsed.devices.size(); ++i)
    run.devices.push_back({Rank{}, "", parsed.devices[i], -1, static_cast<int32_t>(i)});
  for (const P2pTable& table : parsed.tables) {
    BenchmarkMatrix& matrix = run.matrices.emplace_back();
    matrix.title = table.title + (table.corner == "CPU" ? ", as the CPU sees it" : "");
    matrix.row_kind = matrix.column_kind = "GPU";
    matrix.rows = table.rows;
    matrix.columns = table.columns;
    matrix.cells = table.cells;
    matrix.is_latency = table.is_latency;
    matrix.source = {FileId{}, table.line, table.offset};
    run.concluded = run.concluded && table.whole;
  }
  if (!run.concluded)
    out.Note(DiagnosticSeverity::warning, "truncated",
             "a matrix has fewer rows than columns: the test was stopped, or the file is cut", run.source);
  out.benchmark_runs.push_back(std::move(run));
}

}  // namespace

extern const Format kP2pLatencyFormat;
const Format kP2pLatencyFormat = {
    .name = "p2p_latency",
    .description = "bandwidth and latency between GPUs, as CUDA's sample p2pBandwidthLatencyTest prints them",
    .recognise = RecogniseP2pTest,
    .read = ReadP2pTest,
    .shares_lines = true,
};

}  // namespace tacet
