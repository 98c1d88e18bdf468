// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/nvidia_smi/nvidia_smi_parse.h"

namespace tacet {
namespace {

Recognition RecogniseSmi(std::string_view prefix, std::string_view) {
  if (prefix.find("GPU0") == std::string_view::npos) return Recognition::no;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);)
    if (IsSmiHead(line)) return Recognition::yes;
  return Recognition::no;
}

NcclPath PathOfCell(std::string_view cell) {
  if (cell.starts_with("NV")) return NcclPath::nvl;
  if (cell == "NODE") return NcclPath::phb;  // NCCL counts host bridges of one NUMA node as one
  return cell == "X" ? NcclPath::loc : ParseNcclPath(cell);
}

void ImportMatrix(const SmiMatrix& matrix, Fragment& out) {
  Hardware hardware;
  hardware.source = {FileId{0}, matrix.line, matrix.offset};
  for (const std::string& column : matrix.columns) {
    HardwareDevice device;
    std::string_view number = column;
    const bool gpu = TakeLiteral(number, "GPU");
    device.kind = gpu ? DeviceKind::gpu : DeviceKind::net;
    if (!gpu) TakeLiteral(number, "NIC");
    if (!TakeNumber(number, &device.number)) device.number = static_cast<int32_t>(hardware.devices.size());
    device.id = static_cast<uint64_t>(std::max(device.number, 0));
    device.name = column;
    for (const auto& [nic, name] : matrix.names)
      if (nic == column) device.name = name;
    hardware.devices.push_back(std::move(device));
  }
  for (size_t r = 0; r < matrix.rows.size(); ++r) {
    const auto from = static_cast<uint32_t>(std::find(matrix.columns.begin(), matrix.columns.end(), matrix.rows[r]) -
                                            matrix.columns.begin());
    if (hardware.devices[from].kind != DeviceKind::gpu) continue;
    for (uint32_t to = 0; to < matrix.columns.size(); ++to) {
      const NcclPath type = PathOfCell(matrix.cells[r][to]);
      if (to == from || type == NcclPath::unknown || type == NcclPath::loc) continue;
      hardware.paths.push_back({from, to, 0, type});
    }
  }
  out.hardware.push_back(std::move(hardware));
}

void ReadSmi(const FileView& file, Fragment& out) {
  const SmiOutput parsed = ParseSmiTopology(file.bytes);
  out.bytes = {file.bytes.size(), parsed.understood, parsed.ignored, parsed.not_understood};
  for (const SmiMatrix& matrix : parsed.matrices) ImportMatrix(matrix, out);
}

}  // namespace

extern const Format kNvidiaSmiFormat;
const Format kNvidiaSmiFormat = {
    .name = "nvidia_smi",
    .description = "GPUs and NICs of a host and what lies between them (nvidia-smi topo -m)",
    .recognise = RecogniseSmi,
    .read = ReadSmi,
};

}  // namespace tacet
