// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_dcgm.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "| PCIe | Pass - All |"
bool TakeTwoCells(std::string_view line, std::array<std::string_view, 2>& cells) {
  if (line.size() < 3 || !line.starts_with('|') || !line.ends_with('|')) return false;
  const size_t middle = line.find('|', 1);
  if (middle == line.size() - 1 || line.find('|', middle + 1) != line.size() - 1) return false;
  cells = {Trim(line.substr(1, middle - 1)), Trim(line.substr(middle + 1, line.size() - middle - 2))};
  return true;
}

// Tests of the section "Deployment" look at the software of the host; these look at the devices nevertheless.
bool IsOfDevice(std::string_view test) {
  constexpr std::string_view kTests[] = {"Page Retirement/Row Remap", "Inforom", "page_retirement/row_remap",
                                         "inforom"};
  return std::find(std::begin(kTests), std::end(kTests), test) != std::end(kTests);
}

// "1, 6" of "GPU0: Pass GPU1: Fail GPU6: Fail", and of "Fail - GPUs: 1, 6"; "all" of "Fail - All"; empty where none is
// named.
std::string FailedGpus(std::string_view result) {
  std::string gpus;
  if (result.starts_with("Fail - All")) return "all";
  if (auto list = After(result, "GPU: ")) return std::string(Trim(*list));
  if (auto list = After(result, "GPUs: ")) return std::string(Trim(*list));
  for (size_t at = result.find("GPU"); at != std::string_view::npos; at = result.find("GPU", at + 1)) {
    std::string_view rest = result.substr(at + 3);
    int32_t gpu = -1;
    if (TakeNumber(rest, &gpu) && gpu >= 0 && TakeLiteral(rest, ": Fail"))
      gpus += (gpus.empty() ? "" : ", ") + std::to_string(gpu);
  }
  return gpus;
}

// "6" of "GPU 6 had uncorrectable memory errors"
std::string GpuOfRemark(std::string_view text) {
  for (size_t at = text.find("GPU "); at != std::string_view::npos; at = text.find("GPU ", at + 1)) {
    std::string_view rest = text.substr(at + 4);
    int32_t gpu = -1;
    if (TakeNumber(rest, &gpu) && gpu >= 0) return std::to_string(gpu);
  }
  return "";
}

}  // namespace

// +-----  Integration  -------+------------------------------------------------+
// |-----  Deployment  --------+------------------------------------------------|
static bool IsSection(std::string_view line) {
  if (!line.starts_with("+-----  ") && !line.starts_with("|-----  ")) return false;
  return ContainsAny(line,
                     {"-  Metadata  -", "-  Deployment  -", "-  Integration  -", "-  Hardware  -", "-  Stress  -"});
}

bool DcgmTable::IsHead(std::string_view line) {
  if (IsSection(Trim(line))) return true;  // the head of the table was not pasted
  std::array<std::string_view, 2> cells;
  return TakeTwoCells(Trim(line), cells) && cells[0] == "Diagnostic" && cells[1] == "Result";
}

bool DcgmTable::TakeHead(std::string_view line) {
  if (!IsHead(line) || (inside_ && IsSection(Trim(line)))) return false;
  inside_ = true;
  of_setup_ = Contains(line, "-  Deployment  -");
  failed_ = false;
  test_.clear();
  return true;
}

bool DcgmTable::TakeRow(std::string_view line, GpuCheck& check, bool& about) {
  if (!inside_) return false;
  if (line.starts_with('+') && !IsSection(line)) return true;
  if (line.starts_with("|---") || IsSection(line)) {
    of_setup_ = Contains(line, "-  Deployment  -");
    test_.clear();
    failed_ = false;
    return true;
  }
  std::array<std::string_view, 2> cells;
  if (!TakeTwoCells(line, cells)) return inside_ = false;
  const auto& [name, result] = cells;
  if (name.empty() || name.starts_with("Error") || name.starts_with("Warning") || name.starts_with("Info")) {
    about = failed_ || Contains(result, ": Fail");
    if (!about || test_.empty()) return true;
    check.test = test_;
    check.failed = check.remark = true;
    check.gpus = name.empty() ? FailedGpus(result) : GpuOfRemark(result);
    failed_ = true;
    return true;
  }
  failed_ = result.starts_with("Fail");
  if (!failed_ && !result.starts_with("Pass") && !result.starts_with("Warn")) {
    test_.clear();  // versions, skipped tests
    return true;
  }
  test_ = name;
  check.test = name;
  check.failed = failed_;
  check.of_setup = of_setup_ && !IsOfDevice(name);
  if (failed_) check.gpus = FailedGpus(result);
  return true;
}

}  // namespace tacet
