// SPDX-License-Identifier: Apache-2.0
#include "evidence/nvidia_smi/nvidia_smi_parse.h"

#include <algorithm>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostColumns = 256;

bool IsNumbered(std::string_view word, std::string_view kind) {
  if (!TakeLiteral(word, kind) || word.empty()) return false;
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsNic(std::string_view word) {
  return IsNumbered(word, "NIC") || word.starts_with("mlx") || word.starts_with("bnxt") || word.starts_with("efa");
}

// "X", "SYS", "NV18", "NODE"
bool IsCell(std::string_view word) {
  static constexpr std::string_view kCells[] = {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "N/A"};
  return std::find(std::begin(kCells), std::end(kCells), word) != std::end(kCells) || IsNumbered(word, "NV");
}

std::string Plain(std::string_view line) {
  return HasTerminalCodes(line) ? DropTerminalCodes(line) : std::string(line);
}

//         GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
bool ReadHead(std::string_view line, SmiMatrix* matrix) {
  for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
    if (!IsNumbered(word, "GPU") && !IsNic(word)) return word == "CPU" && !matrix->columns.empty();
    if (matrix->columns.size() >= kMostColumns) return false;
    matrix->columns.emplace_back(word);
  }
  return matrix->columns.size() >= 2;
}

// GPU0     X      NV18    PIX     0-55,112-167    0
bool ReadRow(std::string_view line, SmiMatrix& matrix) {
  const std::string_view name = TakeWord(line);
  if (std::find(matrix.columns.begin(), matrix.columns.end(), name) == matrix.columns.end()) return false;
  std::vector<std::string> cells;
  while (cells.size() < matrix.columns.size()) {
    const std::string_view word = TakeWord(line);
    if (!IsCell(word)) return false;
    cells.emplace_back(word);
  }
  matrix.rows.emplace_back(name);
  matrix.cells.push_back(std::move(cells));
  return true;
}

}  // namespace

bool IsSmiHead(std::string_view line) {
  SmiMatrix matrix;
  if (line.size() > 8192 || line.find("GPU0") == std::string_view::npos ||
      line.find("Affinity") == std::string_view::npos)
    return false;
  const std::string plain = Plain(line);
  return ReadHead(plain, &matrix) && matrix.columns.front() == "GPU0";
}

SmiOutput ParseSmiTopology(std::string_view text) {
  SmiOutput out;
  bool in_legend = false;
  LineReader lines(text);
  for (std::string_view line; lines.Next(&line);) {
    const uint64_t bytes = lines.line_bytes();
    if (IsSmiHead(line)) {
      SmiMatrix& matrix = out.matrices.emplace_back();
      ReadHead(Plain(line), &matrix);
      matrix.line = lines.number();
      matrix.offset = lines.offset();
      out.understood += bytes;
      in_legend = false;
      continue;
    }
    const std::string plain = Plain(line.substr(0, 8192));
    std::string_view rest = plain;
    if (!out.matrices.empty() && ReadRow(rest, out.matrices.back())) {
      out.understood += bytes;
      continue;
    }
    // "  NIC0: mlx5_0" below "NIC Legend:"
    const std::string_view word = TakeWord(rest);
    const bool names_nic = word.ends_with(":") && IsNumbered(word.substr(0, word.size() - 1), "NIC");
    if (names_nic && !out.matrices.empty() && out.matrices.back().names.size() < kMostColumns) {
      out.matrices.back().names.emplace_back(word.substr(0, word.size() - 1), Trim(rest).substr(0, 64));
      out.understood += bytes;
    } else {
      in_legend |= word == "Legend:" || (word == "NIC" && Trim(rest) == "Legend:");
      const bool known = Trim(plain).empty() || in_legend;
      (known ? out.ignored : out.not_understood) += bytes;
    }
  }
  return out;
}

}  // namespace tacet
