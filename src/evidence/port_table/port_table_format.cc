// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/line_reader.h"
#include "evidence/format.h"
#include "evidence/port_table/port_table_parse.h"

namespace tacet {
namespace {

Recognition RecognisePortTable(std::string_view prefix, std::string_view) {
  if (prefix.find('\0') != std::string_view::npos) return Recognition::no;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);)
    if (IsPortLine(line)) return Recognition::yes;
  return Recognition::no;
}

void ReadPortTable(const FileView& file, Fragment& out) {
  PortTable table = ParsePortTable(file.bytes);
  out.bytes = {file.bytes.size(), table.understood, table.ignored, table.not_understood};
  if (const size_t free = table.unlinked_switch_ports; free > 0)
    out.Note(DiagnosticSeverity::note, "switch-ports-without-link",
             std::to_string(free) + (free == 1 ? " port of " : " ports of ") +
                 (table.switches_with_unlinked == 1 ? "a switch"
                                                    : std::to_string(table.switches_with_unlinked) + " switches") +
                 (free == 1 ? " has" : " have") + " no link: nothing is plugged in, or the other end is off",
             {}, "compare with the cabling plan, or with an earlier iblinkinfo");
  for (PortErrorRow& row : table.errors) {
    Event& event = out.events.emplace_back();
    event.kind = EventKind::port_errors;
    event.speaker = kNobody;
    event.source = {FileId{}, row.line, row.offset};
    event.text = std::move(row.text);
    event.detail = std::move(row.errors);
  }
  for (PortRow& row : table.ports) {
    if (row.line == 0) continue;  // no line tells its state
    Event& event = out.events.emplace_back();
    event.kind = EventKind::port_state;
    event.speaker = kNobody;
    event.source = {FileId{}, row.line, row.offset};
    event.text = std::move(row.text);
    event.detail = std::move(row.port);
  }
}

}  // namespace

extern const Format kPortTableFormat;
const Format kPortTableFormat = {
    .name = "port_table",
    .description =
        "ports of network adapters: ibstat, ibstatus, ibv_devinfo, ibdev2netdev, iblinkinfo, perfquery, rdma link, ip "
        "-br link; nvidia-smi nvlink -s",
    .recognise = RecognisePortTable,
    .read = ReadPortTable,
    .shares_lines = true,
};

}  // namespace tacet
