// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/json_reader.h"
#include "base/text_scan.h"
#include "evidence/nvbandwidth/nvbandwidth_parse.h"

namespace tacet {
namespace {

// Cells are strings: "368.12", "N/A".
double CellOf(const JsonValue& value) {
  double number = 0;
  const bool told = IsWholeNumber(Trim(value.Text()), &number) && number >= 0;
  return told ? number : std::numeric_limits<double>::quiet_NaN();
}

std::string_view TextOf(const JsonValue& object, std::string_view key) {
  const JsonValue* found = object.Find(key);
  return found ? found->Text() : std::string_view();
}

NvbandwidthTable TableOf(const JsonValue& test, const JsonValue& matrix) {
  NvbandwidthTable table;
  std::string_view title = TextOf(test, "bandwidth_description");
  table.nanoseconds = title.ends_with("(ns)");
  if (title.ends_with(')') && (table.nanoseconds || title.ends_with("(GB/s)")))
    title = title.substr(0, title.rfind('('));
  table.title = Trim(title).substr(0, 200);
  table.offset = test.offset;
  size_t columns = 0;
  for (const JsonValue& row : matrix.items) columns = std::max(columns, row.items.size());
  for (size_t i = 0; i < columns; ++i) table.columns.push_back(std::to_string(i));
  for (const JsonValue& row : matrix.items) {
    // Rows of unequal length would let a small file ask for a large table.
    if (row.items.size() != columns) continue;
    table.rows.push_back(std::to_string(table.rows.size()));
    std::vector<double>& cells = table.cells.emplace_back();
    for (const JsonValue& cell : row.items) cells.push_back(CellOf(cell));
  }
  return table;
}

}  // namespace

// {"nvbandwidth":{"CUDA Driver Version":12080,...,"testcases":[{"name":"...","bandwidth_matrix":[["N/A","368.12"],...
bool IsNvbandwidthJson(std::string_view prefix) {
  const size_t begin = prefix.find_first_not_of(" \r\n\t");
  if (begin == std::string_view::npos || prefix[begin] != '{') return false;
  JsonReader reader(prefix.substr(begin, 4096));
  return reader.Next() == JsonReader::Token::object_begin && reader.Next() == JsonReader::Token::key &&
         reader.raw() == "nvbandwidth";
}

NvbandwidthOutput ParseNvbandwidthJson(std::string_view bytes) {
  NvbandwidthOutput out;
  JsonValue document;
  bool truncated = false;
  const bool is_json = ParseJson(bytes, &document, &truncated);
  const JsonValue* root = is_json ? document.Find("nvbandwidth") : nullptr;
  if (!root) {
    out.not_understood = bytes.size();
    return out;
  }
  out.understood = bytes.size();
  out.version = TextOf(*root, "version").substr(0, 64);
  if (const JsonValue* devices = root->Find("GPU Device list"))
    for (const JsonValue& device : devices->items) {
      std::string_view name = device.Text();  // "0: NVIDIA H100 80GB HBM3 (00000000:18:00): (node01)"
      TakeUntil(name, ':');
      TakeLiteral(name, ":");
      out.devices.emplace_back(Trim(name.substr(0, name.find('('))).substr(0, 100));
    }
  if (const JsonValue* tests = root->Find("testcases"))
    for (const JsonValue& one : tests->items) {
      NvbandwidthTest& test = out.tests.emplace_back();
      test.name = TextOf(one, "name").substr(0, 200);
      test.offset = one.offset;
      const std::string_view status = TextOf(one, "status");
      test.waived = status == "Waived" || status == "Not Found";
      test.concluded = !status.empty();
      if (status == "Error") test.failure = std::string(TextOf(one, "error").substr(0, 300));
      if (status == "Error" && test.failure.empty()) test.failure = "Error";
      if (const JsonValue* sum = one.Find("sum")) test.sum = sum->Double(-1);
      if (const JsonValue* matrix = one.Find("bandwidth_matrix")) test.tables.push_back(TableOf(one, *matrix));
    }
  if (truncated && !out.tests.empty()) out.tests.back().concluded = false;
  return out;
}

}  // namespace tacet
