// SPDX-License-Identifier: Apache-2.0
#include "evidence/nvbandwidth/nvbandwidth_parse.h"

#include <limits>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostDevices = 4096, kMostTitle = 200;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool IsDeviceNumber(std::string_view word) {
  if (word.empty() || word.size() > 6) return false;
  for (const char c : word)
    if (!IsDigit(c)) return false;
  return true;
}

class TextReader {
 public:
  explicit TextReader(NvbandwidthOutput& out) : out_(out) {}

  bool Take(std::string_view line, uint32_t number, uint64_t offset) {
    number_ = number;
    offset_ = offset;
    std::string_view text = Trim(line);
    if (text.empty()) return expects_ = Expects::nothing, true;
    if (TakeLiteral(text, "nvbandwidth Version:")) return out_.version = Trim(text).substr(0, 64), true;
    if (TakeLiteral(text, "Running ")) return BeginTest(text), true;
    if (TakeLiteral(text, "SUM ")) return TakeSum(text);
    if (TakeLiteral(text, "Device ")) return TakeDevice(text);
    if (text.starts_with("Waived")) return TakeWaived(), true;
    if (text.starts_with("Error:") || text.starts_with("ERROR:")) return TakeFailure(text), true;
    if (TakeTitle(text)) return true;
    if (expects_ == Expects::columns) return TakeColumns(text);
    if (expects_ == Expects::rows && TakeRow(text)) return true;
    for (const std::string_view known : {"Built from Git", "CUDA Runtime", "CUDA Driver", "Driver Version",
                                         "NOTE: ", "Performance can vary", "MIN ", "MAX ", "AVG ", "&&&& "})
      if (text.starts_with(known)) return true;
    return false;
  }

 private:
  enum class Expects { nothing, columns, rows };

  // Running host_to_device_memcpy_ce.
  void BeginTest(std::string_view text) {
    text = TakeWord(text);
    while (text.ends_with('.')) text.remove_suffix(1);
    NvbandwidthTest& test = out_.tests.emplace_back();
    test.name = text.substr(0, kMostTitle);
    test.line = number_;
    test.offset = offset_;
    expects_ = Expects::nothing;
  }

  // memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
  // memory latency SM CPU(row) <-> GPU(column) (ns)
  bool TakeTitle(std::string_view text) {
    const bool rate = text.ends_with("(GB/s)"), time = text.ends_with("(ns)");
    if ((!rate && !time) || !Contains(text, "(column)")) return false;
    if (out_.tests.empty()) BeginTest("unnamed");
    NvbandwidthTable& table = out_.tests.back().tables.emplace_back();
    table.title = Trim(text.substr(0, text.rfind('('))).substr(0, kMostTitle);
    table.nanoseconds = time;
    table.line = number_;
    table.offset = offset_;
    expects_ = Expects::columns;
    return true;
  }

  //            0         1         2
  bool TakeColumns(std::string_view text) {
    expects_ = Expects::nothing;
    std::vector<std::string> columns;
    for (std::string_view word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
      if (!IsDeviceNumber(word) || columns.size() >= kMostDevices) return false;
      columns.emplace_back(word);
    }
    out_.tests.back().tables.back().columns = std::move(columns);
    expects_ = Expects::rows;
    return true;
  }

  //  0    369.36    269.33       N/A
  bool TakeRow(std::string_view text) {
    const std::string_view name = TakeWord(text);
    NvbandwidthTable& table = out_.tests.back().tables.back();
    if (!IsDeviceNumber(name)) return false;
    std::vector<double> cells;
    for (std::string_view word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
      double value = kNothing;
      if (cells.size() >= table.columns.size() || (word != "N/A" && (!IsWholeNumber(word, &value) || value < 0)))
        return false;
      cells.push_back(value);
    }
    // Rows are always whole; filling up short ones would let a small file ask for much memory.
    if (cells.empty() || cells.size() != table.columns.size()) return false;
    table.rows.emplace_back(name);
    table.cells.push_back(std::move(cells));
    return true;
  }

  // SUM host_to_device_memcpy_ce 1985.60
  bool TakeSum(std::string_view text) {
    expects_ = Expects::nothing;
    const std::string_view name = TakeWord(text);
    double value = -1;
    if (out_.tests.empty() || out_.tests.back().name != name || !IsWholeNumber(TakeWord(text), &value)) return false;
    out_.tests.back().sum = value;
    return out_.tests.back().concluded = true;
  }

  // Device 0: NVIDIA H100 80GB HBM3 (00000000:18:00)
  bool TakeDevice(std::string_view text) {
    if (!IsDeviceNumber(TakeUntil(text, ':')) || !TakeLiteral(text, ":")) return false;
    text = Trim(text);
    if (out_.devices.size() < kMostDevices) out_.devices.emplace_back(text.substr(0, text.rfind('(')).substr(0, 100));
    return true;
  }

  // Before 0.7 "Waived:" stands alone, for a test whose name was not printed.
  void TakeWaived() {
    if (!out_.tests.empty() && !out_.tests.back().concluded && out_.tests.back().tables.empty())
      out_.tests.back().waived = out_.tests.back().concluded = true;
  }
  void TakeFailure(std::string_view text) {
    if (out_.tests.empty()) BeginTest("unnamed");
    if (out_.tests.back().failure.empty()) out_.tests.back().failure = text.substr(0, 300);
  }

  NvbandwidthOutput& out_;
  Expects expects_ = Expects::nothing;
  uint32_t number_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

NvbandwidthOutput ParseNvbandwidthText(std::string_view bytes) {
  NvbandwidthOutput out;
  TextReader reader(out);
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    TakeLauncherPrefix(line);
    const bool blank = Trim(line).empty();
    const bool ours = reader.Take(line, lines.number(), lines.offset());
    (blank ? out.ignored : ours ? out.understood : out.not_understood) += lines.line_bytes();
  }
  return out;
}

}  // namespace tacet
