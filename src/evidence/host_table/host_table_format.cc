// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/host_table/host_table_parse.h"

namespace tacet {
namespace {

// Such rows stand in texts of all kinds, beside what their own format reads: never a claim on the whole file.
Recognition RecogniseHostTable(std::string_view prefix, std::string_view) {
  if (!ContainsAny(prefix, {"% /", "MiB /", " MB |", "NODELIST", "rolog fail", "NVIDIA-SMI", "temperature.gpu",
                            "clocks.", "utilization.gpu", "power.draw", "| Diagnostic ", "-----  ", "Fabric",
                            "DCGM_FI_", " Slowdown ", "SW Power Cap", "PID "}))
    return Recognition::no;
  if (prefix.find('\0') != std::string_view::npos) return Recognition::no;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);)
    if (IsHostLine(line)) return Recognition::maybe;
  return Recognition::no;
}

TaskState StateOf(char letter) {
  switch (letter) {
    case 'T': return TaskState::stopped;
    case 'D': return TaskState::uninterruptible;
    case 'Z': return TaskState::zombie;
    case 'R': return TaskState::running;
    default: return TaskState::unknown;
  }
}

template <class Detail>
void AddRow(EventKind kind, RowPlace& place, Detail&& detail, Fragment& out) {
  Event& event = out.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source = {FileId{}, place.line, place.offset};
  event.text = std::move(place.text);
  event.detail = std::forward<Detail>(detail);
}

void ReadHostTable(const FileView& file, Fragment& out) {
  HostTable table = ParseHostTable(file.bytes);
  out.bytes = {file.bytes.size(), table.understood, table.ignored, table.not_understood};
  for (GpuRow& row : table.gpus) AddRow(EventKind::gpu_load, row, std::move(row.load), out);
  for (BrokenGpuRow& row : table.broken) {
    Xid lost;  // as the kernel reports a GPU that does not answer
    lost.number = 79;
    lost.pci = std::move(row.pci);
    AddRow(EventKind::xid, row, std::move(lost), out);
  }
  for (XidRow& row : table.xids) {
    Xid xid;
    xid.number = row.number;
    xid.pci = std::move(row.pci);
    AddRow(EventKind::xid, row, std::move(xid), out);
  }
  for (const ProcessRow& row : table.processes) {
    Sight& sight = out.sights.emplace_back();
    sight.speaker = kNobody;
    sight.rank = {row.rank};
    sight.pid = row.pid;
    sight.state = StateOf(row.state);
    sight.source = {FileId{}, row.line, row.offset};
  }
  for (FabricRow& row : table.fabrics)
    AddRow(EventKind::fabric_down, row, CudaRefusal{std::move(row.status), FabricFault::bad_status}, out);
  for (CheckRow& row : table.checks) AddRow(EventKind::gpu_check, row, std::move(row.check), out);
  for (SpaceRow& row : table.spaces) AddRow(EventKind::space_use, row, std::move(row.use), out);
  for (NodeRow& row : table.nodes) AddRow(EventKind::node_state, row, std::move(row.state), out);
}

}  // namespace

extern const Format kHostTableFormat;
const Format kHostTableFormat = {
    .name = "host_table",
    .description =
        "tables about a host or cluster: nvidia-smi (also the Fabric section of -q), gpustat and dcgmi diag tables, "
        "metrics of "
        "dcgm-exporter, df, sinfo, failed prologs of Slurm, states of processes (ps, top)",
    .recognise = RecogniseHostTable,
    .read = ReadHostTable,
    .shares_lines = true,
};

}  // namespace tacet
