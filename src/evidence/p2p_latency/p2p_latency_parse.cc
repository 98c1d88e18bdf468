// SPDX-License-Identifier: Apache-2.0
#include "evidence/p2p_latency/p2p_latency_parse.h"

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostDevices = 4096;

class TableReader {
 public:
  explicit TableReader(P2pOutput& out) : out_(out) {}

  bool Take(std::string_view line, uint32_t number, uint64_t offset) {
    std::string_view text = Trim(line);
    if (TakeTitle(text, number, offset)) return true;
    if (TakeLiteral(text, "Device: ")) return TakeDevice(text);
    if (text.starts_with("Device=")) return TakeReach(text, number, offset);
    std::string_view rest = text;
    const std::string_view head = TakeWord(rest);
    if (!title_.empty() && (head == "D\\D" || head == "GPU" || head == "CPU")) return BeginTable(head, rest);
    if (in_table_ && TakeRow(text)) return true;
    in_table_ = in_table_ && text.empty();
    for (const std::string_view known :
         {"[P2P (Peer-to-Peer)", "P2P Connectivity", "***NOTE", "So you can see", "Device=", "NOTE: "})
      if (text.starts_with(known)) return true;
    return false;
  }

 private:
  // Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
  // P2P=Disabled Latency Matrix (us)
  bool TakeTitle(std::string_view text, uint32_t number, uint64_t offset) {
    const size_t at = text.find(" Matrix");
    if (at == std::string_view::npos || !Contains(text, "P2P")) return false;
    in_table_ = false;
    title_ = text.substr(0, at).substr(0, 200);
    title_line_ = number, title_offset_ = offset;
    is_latency_ = text.ends_with("(us)");
    if (!is_latency_ && !text.ends_with("(GB/s)")) title_.clear();  // which GPUs reach each other: not a measurement
    return true;
  }

  // Device=0 CANNOT Access Peer Device=2
  bool TakeReach(std::string_view text, uint32_t number, uint64_t offset) {
    const auto from = IntAfter(text, "Device="), to = IntAfter(text, "Peer Device=");
    const bool can = Contains(text, " CAN Access Peer "), cannot = Contains(text, " CANNOT Access Peer ");
    if (!from || !to || (!can && !cannot)) return true;
    if (out_.reach.size() < kMostDevices) out_.reach.push_back({*from, *to, can, number, offset});
    return true;
  }

  // Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 18, pciDeviceID: 0, pciDomainID:0
  bool TakeDevice(std::string_view text) {
    TakeUntil(text, ',');
    if (!TakeLiteral(text, ",") || out_.devices.size() >= kMostDevices) return false;
    out_.devices.emplace_back(Trim(TakeUntil(text, ',')).substr(0, 100));
    return true;
  }

  bool BeginTable(std::string_view corner, std::string_view heads) {
    P2pTable table;
    table.title = title_;
    table.corner = corner;
    table.is_latency = is_latency_;
    table.line = title_line_;
    table.offset = title_offset_;
    for (std::string_view word = TakeWord(heads); !word.empty(); word = TakeWord(heads)) {
      if (!IsDigit(word[0]) || table.columns.size() >= kMostDevices) return false;
      table.columns.emplace_back(word.substr(0, 16));
    }
    if (table.columns.empty()) return false;
    out_.tables.push_back(std::move(table));
    return in_table_ = true;
  }

  //      0 2495.76  37.19
  bool TakeRow(std::string_view text) {
    P2pTable& table = out_.tables.back();
    const std::string_view name = TakeWord(text);
    if (table.whole || name.empty() || !IsDigit(name[0])) return false;
    std::vector<double> cells;
    for (std::string_view word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
      double value = 0;
      if (cells.size() >= table.columns.size() || !IsWholeNumber(word, &value) || value < 0) return false;
      cells.push_back(value);
    }
    if (cells.size() != table.columns.size()) return false;
    table.rows.emplace_back(name.substr(0, 16));
    table.cells.push_back(std::move(cells));
    table.whole = table.rows.size() == table.columns.size();
    return true;
  }

  P2pOutput& out_;
  std::string title_;
  uint32_t title_line_ = 0;
  uint64_t title_offset_ = 0;
  bool is_latency_ = false, in_table_ = false;
};

}  // namespace

P2pOutput ParseP2pTest(std::string_view bytes) {
  P2pOutput out;
  TableReader reader(out);
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    TakeLauncherPrefix(line);
    const bool blank = Trim(line).empty();
    const bool ours = reader.Take(line, lines.number(), lines.offset());
    (blank ? out.ignored : ours ? out.understood : out.not_understood) += lines.line_bytes();
  }
  std::erase_if(out.tables, [](const P2pTable& table) { return table.rows.empty(); });
  return out;
}

}  // namespace tacet
