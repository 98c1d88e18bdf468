// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_dcgm.h"

#include <algorithm>
#include <array>

#include "base/text_scan.h"

namespace tacet {
namespace {

// Tests of the device itself; the others are of the installation (denylist, libraries, permissions).
constexpr std::array<std::string_view, 21> kDeviceTests{"GPU Memory",
                                                        "Memory",
                                                        "memory",
                                                        "PCIe",
                                                        "pcie",
                                                        "Page Retirement/Row Remap",
                                                        "Targeted Stress",
                                                        "targeted_stress",
                                                        "Targeted Power",
                                                        "targeted_power",
                                                        "Memtest",
                                                        "memtest",
                                                        "Memory Bandwidth",
                                                        "memory_bandwidth",
                                                        "SM Stress",
                                                        "sm_stress",
                                                        "Pulse Test",
                                                        "pulse_test",
                                                        "NVBandwidth",
                                                        "nvbandwidth",
                                                        "Diagnostic"};

// "| GPU Memory    | Fail - GPU: 6    |" -> two cells
bool TakeTwoCells(std::string_view line, std::string_view& name, std::string_view& result) {
  if (!TakeLiteral(line, "|")) return false;
  const size_t bar = line.find('|');
  if (bar == std::string_view::npos) return false;
  name = Trim(line.substr(0, bar));
  const std::string_view rest = line.substr(bar + 1);
  result = Trim(rest.substr(0, rest.find('|')));
  return true;
}

}  // namespace

bool DcgmTable::IsHead(std::string_view line) {
  std::string_view name, result;
  return TakeTwoCells(line, name, result) && name == "Diagnostic" && result == "Result";
}

bool DcgmTable::TakeRow(std::string_view line) {
  failed_.clear();
  if (IsHead(line)) return inside_ = true;
  if (!inside_ || line.empty() || (line[0] != '|' && line[0] != '+')) return inside_ = false;
  std::string_view name, result;
  if (line.starts_with("|-") || !TakeTwoCells(line, name, result)) return true;  // a rule between two parts
  // "Warning", "Warning: GPU1"
  const bool note = name.starts_with("Warning") || name.starts_with("Error") || name.starts_with("Info");
  if (!name.empty() && !note)
    test_ = std::find(kDeviceTests.begin(), kDeviceTests.end(), name) == kDeviceTests.end() ? "" : name;
  // "Fail", "Fail - GPU: 6", and of DCGM 4 in rows of their own "GPU6: Fail"
  const bool of_gpu = name.empty() && result.starts_with("GPU") && result.ends_with(": Fail");
  if (!test_.empty() && !note && (result.starts_with("Fail") || of_gpu)) failed_ = test_ + ": " + std::string(result);
  return true;
}

}  // namespace tacet
