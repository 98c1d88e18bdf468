// SPDX-License-Identifier: Apache-2.0
#include "evidence/osu/osu_parse.h"

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

// What the columns behind the size hold, as the heading names them. Names consist of one or two words:
//   # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
//   # Size          Bandwidth (MB/s)
//   # Size                  MB/s        Messages/s
enum class Column { time, least, greatest, rate, other, validation };

std::vector<Column> ColumnsOf(std::string_view heading) {
  std::vector<Column> columns;
  bool least = false, greatest = false;
  for (std::string_view word = TakeWord(heading); !word.empty(); word = TakeWord(heading)) {
    if (word == "#" || word == "Size" || word == "Avg") continue;
    if (word == "Min" || word == "Max") {
      least = word == "Min";
      greatest = !least;
      continue;
    }
    if (word.starts_with('(')) continue;  // a unit behind a blank
    if (word.starts_with("Latency"))
      columns.push_back(least ? Column::least : greatest ? Column::greatest : Column::time);
    else if (word.starts_with("Bandwidth") || word.starts_with("MB/s"))
      columns.push_back(Column::rate);
    else if (word.starts_with("Validation"))
      columns.push_back(Column::validation);
    else if (word.starts_with("P") && word.ends_with("Tail"))
      continue;  // "P50 Tail Lat(us)"
    else
      columns.push_back(Column::other);
    least = greatest = false;
    if (columns.size() > 16) break;
  }
  return columns;
}

bool ParseRow(std::string_view line, const std::vector<Column>& columns, OsuRow* row) {
  if (!TakeNumber(line, &row->bytes) || row->bytes < 0 || (!line.empty() && !IsSpace(line[0]))) return false;
  bool any = false;
  for (const Column column : columns) {
    const std::string_view word = TakeWord(line);
    if (word.empty()) break;
    if (column == Column::validation) {
      row->failed = word == "Fail";
      continue;
    }
    double value = 0;
    if (!IsWholeNumber(word, &value) || value < 0) return false;
    if (column == Column::time) row->time_us = value;
    if (column == Column::least) row->min_us = value;
    if (column == Column::greatest) row->max_us = value;
    if (column == Column::rate && row->gbs < 0) row->gbs = value / 1000;  // MB is 1e6 here
    any = any || column == Column::time || column == Column::rate;
  }
  return any;
}

}  // namespace

bool IsOsuTitle(std::string_view line) {
  TakeLauncherPrefix(line);
  line = Trim(line);
  return line.starts_with("# OSU ") && Contains(line, " Test");
}

OsuOutput ParseOsu(std::string_view bytes) {
  OsuOutput out;
  std::vector<Column> columns;
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    TakeLauncherPrefix(line);
    std::string_view text = Trim(line);
    bool ours = false;
    if (IsOsuTitle(text)) {
      OsuTable& table = out.tables.emplace_back();
      text.remove_prefix(6);
      const size_t test = text.find(" Test");
      table.title = text.substr(0, test).substr(0, 100);
      table.version = Trim(text.substr(test + 5)).substr(0, 40);
      table.line = lines.number();
      table.offset = lines.offset();
      columns.clear();
      ours = true;
    } else if (!out.tables.empty() && text.starts_with('#')) {
      ours = true;
      if (Contains(text, "Size")) {
        columns = ColumnsOf(text);
        for (const Column column : columns) out.tables.back().validated |= column == Column::validation;
      }
    } else if (!out.tables.empty() && !columns.empty()) {
      OsuRow row;
      ours = ParseRow(text, columns, &row);
      row.line = lines.number();
      row.offset = lines.offset();
      if (ours) out.tables.back().rows.push_back(row);
    }
    (text.empty() ? out.ignored : ours ? out.understood : out.not_understood) += lines.line_bytes();
  }
  return out;
}

}  // namespace tacet
