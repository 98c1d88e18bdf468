// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_smi_csv.h"

#include <algorithm>
#include <cstddef>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostColumns = 64;

// Columns are parted by ", ", and no name or value has one in it.
std::vector<std::string_view> SplitCsvRow(std::string_view line) {
  std::vector<std::string_view> cells;
  cells.reserve(8);
  while (cells.size() < kMostColumns) {
    const size_t comma = line.find(',');
    cells.push_back(Trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
  return {};
}

// "clocks.sm [MHz]" -> "clocks.sm"
std::string_view WithoutUnit(std::string_view name) { return Trim(name.substr(0, name.find(" ["))); }

bool IsSmiColumn(std::string_view name) {
  for (const std::string_view known :
       {"temperature.gpu", "clocks.sm", "clocks.current.sm", "clocks.gr", "clocks.current.graphics", "clocks.max.sm",
        "utilization.gpu", "power.draw", "power.limit", "enforced.power.limit", "memory.used", "memory.total", "pstate",
        "pci.bus_id"})
    if (name == known) return true;
  return name.starts_with("clocks_event_reasons.") || name.starts_with("clocks_throttle_reasons.");
}

float NumberOf(std::string_view cell) {
  double value = 0;
  return TakeDouble(cell, &value) && value >= 0 && value < 1e6 ? static_cast<float>(value) : -1;
}

}  // namespace

bool SmiCsv::IsHead(std::string_view line) {
  const std::vector<std::string_view> cells = SplitCsvRow(line);
  return std::count_if(cells.begin(), cells.end(),
                       [](std::string_view cell) { return IsSmiColumn(WithoutUnit(cell)); }) >= 2;
}

bool SmiCsv::TakeHead(std::string_view line) {
  if (!IsHead(line)) return false;
  columns_.clear();
  for (const std::string_view cell : SplitCsvRow(line)) columns_.emplace_back(WithoutUnit(cell));
  return true;
}

bool SmiCsv::TakeRow(std::string_view line, GpuLoad& load, std::string& text) const {
  if (columns_.empty()) return false;
  const std::vector<std::string_view> cells = SplitCsvRow(line);
  if (cells.size() != columns_.size()) return false;
  std::string words;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string& name = columns_[i];
    const float value = NumberOf(cells[i]);
    if (name == "index" && value >= 0 && value <= 1024) load.index = static_cast<int32_t>(value);
    if (name == "utilization.gpu" && value <= 100) load.percent = value;
    if (name == "power.draw") load.watts = value;
    if (name == "power.limit" || name == "enforced.power.limit") load.most_watts = value;
    if (name == "memory.used" && value >= 0) load.memory_mib = static_cast<int32_t>(value);
    if (name != "index" && !IsSmiColumn(name)) continue;
    if (!words.empty()) words += ", ";
    words += name;
    words += '=';
    words += cells[i];
  }
  if (load.index < 0) return false;
  constexpr size_t kLongestText = 600;
  text = words.substr(0, kLongestText);
  return true;
}

}  // namespace tacet
