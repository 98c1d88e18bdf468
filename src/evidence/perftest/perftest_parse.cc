// SPDX-License-Identifier: Apache-2.0
#include "evidence/perftest/perftest_parse.h"

#include <algorithm>

#include "base/json_reader.h"
#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

// "MB/sec" of older versions means MiB, as "MiB/sec" of newer ones; with --report_gbits it is "Gb/sec".
constexpr double kMib = 1048576e-9, kGbit = 0.125;

enum class Column { iterations, peak, average, messages, least, greatest, typical, mean, p99, other };

struct Columns {
  std::vector<Column> kinds;
  double scale = kMib;
};

//  #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
//  #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%
//  percentile[usec]
Columns ColumnsOf(std::string_view heading) {
  Columns columns;
  TakeWord(heading);  // #bytes
  for (std::string_view word = TakeWord(heading); !word.empty(); word = TakeWord(heading)) {
    if (word == "BW" || word == "tps" || word.starts_with("percentile")) continue;
    if (Contains(word, "[Gb/sec]")) columns.scale = kGbit;
    columns.kinds.push_back(word == "#iterations"            ? Column::iterations
                            : word.starts_with("peak[")      ? Column::peak
                            : word.starts_with("average[")   ? Column::average
                            : word.starts_with("MsgRate[")   ? Column::messages
                            : word.starts_with("t_min[")     ? Column::least
                            : word.starts_with("t_max[")     ? Column::greatest
                            : word.starts_with("t_typical[") ? Column::typical
                            : word.starts_with("t_avg[")     ? Column::mean
                            : word == "99%"                  ? Column::p99
                                                             : Column::other);
    if (columns.kinds.size() > 24) break;
  }
  return columns;
}

void Put(Column column, double value, double scale, PerftestRow& row) {
  switch (column) {
    case Column::iterations: row.iterations = value < 1e15 ? static_cast<int64_t>(value) : -1; break;
    case Column::peak: row.peak_gbs = value * scale; break;
    case Column::average: row.average_gbs = value * scale; break;
    case Column::messages: row.messages_per_us = value; break;
    case Column::least: row.min_us = value; break;
    case Column::greatest: row.max_us = value; break;
    case Column::typical: row.typical_us = value; break;
    case Column::mean: row.average_us = value; break;
    case Column::p99: row.p99_us = value; break;
    case Column::other: break;
  }
}

bool ParseRow(std::string_view line, const Columns& columns, PerftestRow* row) {
  if (!TakeNumber(line, &row->bytes) || row->bytes < 0 || line.empty() || !IsSpace(line[0])) return false;
  size_t count = 0;
  for (const Column column : columns.kinds) {
    const std::string_view word = TakeWord(line);
    double value = 0;
    if (word.empty() || !IsWholeNumber(word, &value) || value < 0) break;
    Put(column, value, columns.scale, *row);
    ++count;
  }
  return count >= 2 && (row->average_gbs >= 0 || row->typical_us >= 0 || row->average_us >= 0);
}

bool IsSame(const PerftestRow& a, const PerftestRow& b) {
  return a.bytes == b.bytes && a.iterations == b.iterations && a.average_gbs == b.average_gbs &&
         a.peak_gbs == b.peak_gbs && a.average_us == b.average_us && a.typical_us == b.typical_us;
}

// "Dual-port       : OFF          Device         : mlx5_0"
std::string_view ValueOf(std::string_view line, std::string_view key) {
  const auto behind = After(line, key);
  if (!behind) return {};
  std::string_view rest = Trim(*behind);
  if (!TakeLiteral(rest, ":")) return {};
  return TakeWord(rest);
}

class TextReader {
 public:
  explicit TextReader(PerftestOutput& out) : out_(out) {}

  bool Take(std::string_view line, uint32_t number, uint64_t offset) {
    std::string_view text = Trim(line);
    if (TakeLiteral(text, "# pair ")) {
      client_ = TakeWord(text).substr(0, 100);
      server_ = TakeWord(text).substr(0, 100);
      return true;
    }
    if (text.ends_with(" Test") && (Contains(text, "BW") || Contains(text, "Latency")) && text.size() < 100)
      return Begin(text.substr(0, text.size() - 5), number, offset), true;
    if (IsPerftestHeading(text)) return TakeHeading(text, number, offset), true;
    if (out_.tables.empty())
      return text.starts_with("----") || text.starts_with("****") || text.starts_with("* Waiting");
    PerftestTable& table = out_.tables.back();
    PerftestRow row;
    if (!columns_.kinds.empty() && ParseRow(text, columns_, &row)) {
      row.line = number;
      row.offset = offset;
      // Where server and client write into one file, each prints the row.
      if (table.rows.empty() || !IsSame(table.rows.back(), row)) table.rows.push_back(row);
      return true;
    }
    if (text.starts_with("-----")) return table.concluded = table.concluded || !table.rows.empty(), true;
    return TakeSetting(text, table);
  }

 private:
  void Begin(std::string_view title, uint32_t number, uint64_t offset) {
    // Both sides print their heads before any row.
    if (!out_.tables.empty() && out_.tables.back().rows.empty() && out_.tables.back().title == title) return;
    PerftestTable& table = out_.tables.emplace_back();
    table.title = title;
    table.client = client_;
    table.server = server_;
    table.line = number;
    table.offset = offset;
    columns_ = {};
  }

  void TakeHeading(std::string_view text, uint32_t number, uint64_t offset) {
    if (out_.tables.empty()) Begin(Contains(text, "usec") ? "Latency" : "BW", number, offset);
    columns_ = ColumnsOf(text);
  }

  bool TakeSetting(std::string_view text, PerftestTable& table) {
    if (const std::string_view device = ValueOf(text, "Device "); !device.empty()) return table.device = device, true;
    if (const std::string_view link = ValueOf(text, "Link type"); !link.empty()) return table.link = link, true;
    if (std::string_view mtu = ValueOf(text, "Mtu "); !mtu.empty()) return TakeNumber(mtu, &table.mtu), true;
    for (const std::string_view known : {"Number of qps",
                                         "Connection type",
                                         "PCIe relax order",
                                         "ibv_wr*",
                                         "TX depth",
                                         "RX depth",
                                         "CQ Moderation",
                                         "GID index",
                                         "Max inline data",
                                         "rdma_cm QPs",
                                         "Data ex. method",
                                         "local address",
                                         "remote address",
                                         "GID:",
                                         "****",
                                         "* Waiting",
                                         "Using SRQ",
                                         "Conflicting CPU frequency",
                                         "initializing CUDA",
                                         "CUDA device",
                                         "using DMA-BUF",
                                         "Listing all",
                                         "Picking",
                                         "[pid",
                                         "creating CUDA",
                                         "making it",
                                         "cuMemAlloc",
                                         "allocated GPU",
                                         "deallocating",
                                         "destroying",
                                         "Outstand reads"})
      if (text.starts_with(known)) return true;
    for (const std::string_view bad :
         {"Couldn't", "Failed to", " Unable to", "Unable to", "Completion with error", "Problems with"})
      if (text.starts_with(bad)) {
        if (table.failure.empty()) table.failure = text.substr(0, 300);
        return true;
      }
    return false;
  }

  PerftestOutput& out_;
  std::string client_, server_;
  Columns columns_;
};

}  // namespace

bool IsPerftestHeading(std::string_view line) {
  TakeLauncherPrefix(line);
  line = Trim(line);
  return line.starts_with("#bytes") &&
         (Contains(line, "BW average[") || Contains(line, "t_avg[usec]") || Contains(line, "t_typical[usec]"));
}

PerftestOutput ParsePerftestText(std::string_view bytes) {
  PerftestOutput out;
  TextReader reader(out);
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    TakeLauncherPrefix(line);
    const bool blank = Trim(line).empty();
    const bool ours = !blank && reader.Take(line, lines.number(), lines.offset());
    (blank ? out.ignored : ours ? out.understood : out.not_understood) += lines.line_bytes();
  }
  return out;
}

// {"test_info": {"test": "RDMA_Write BW Test", "Device": "mlx5_0", ...}, "results": {"MsgSize": 65536, "BW_average":
// ...
bool IsPerftestJson(std::string_view prefix) {
  const size_t begin = prefix.find_first_not_of(" \r\n\t");
  if (begin == std::string_view::npos || prefix[begin] != '{') return false;
  const std::string_view head = prefix.substr(begin, 4096);
  return Contains(head, "\"test_info\"") && (Contains(head, "\"MsgSize\"") || Contains(head, "\"Number_of_qps\""));
}

PerftestOutput ParsePerftestJson(std::string_view bytes) {
  PerftestOutput out;
  JsonValue document;
  bool truncated = false;
  if (!ParseJson(bytes, &document, &truncated) || !document.is_object()) {
    out.not_understood = bytes.size();
    return out;
  }
  out.understood = bytes.size();
  PerftestTable& table = out.tables.emplace_back();
  if (const JsonValue* about = document.Find("test_info")) {
    if (const JsonValue* title = about->Find("test")) table.title = title->Text().substr(0, 100);
    if (table.title.ends_with(" Test")) table.title.resize(table.title.size() - 5);
    if (const JsonValue* device = about->Find("Device")) table.device = device->Text().substr(0, 100);
    if (const JsonValue* link = about->Find("Link_type")) table.link = link->Text().substr(0, 20);
  }
  const JsonValue* results = document.Find("results");
  if (!results) return out;
  table.concluded = !truncated;
  const auto take = [&](const JsonValue& one) {
    const auto number = [&](std::string_view key) {
      const JsonValue* found = one.Find(key);
      return found ? found->Double(-1) : -1;
    };
    PerftestRow row;
    row.bytes = static_cast<int64_t>(std::min(number("MsgSize"), 1e15));
    row.offset = one.offset;
    row.messages_per_us = number("MsgRate");
    // The file does not tell its unit; the rate of messages does.
    const double average = number("BW_average"), peak = number("BW_peak");
    const double exact = static_cast<double>(row.bytes) * row.messages_per_us * 1e-3;
    const double scale = average > 0 && exact > 0 && exact / average > (kMib + kGbit) / 3 ? kGbit : kMib;
    if (average >= 0) row.average_gbs = average * scale;
    if (peak >= 0) row.peak_gbs = peak * scale;
    row.min_us = number("t_min");
    row.max_us = number("t_max");
    row.typical_us = number("t_typical");
    row.average_us = number("t_avg");
    row.p99_us = number("t_99");
    if (row.bytes >= 0 && (row.average_gbs >= 0 || row.average_us >= 0 || row.typical_us >= 0))
      table.rows.push_back(row);
  };
  if (results->is_array())
    for (const JsonValue& one : results->items) take(one);
  else
    take(*results);
  return out;
}

}  // namespace tacet
