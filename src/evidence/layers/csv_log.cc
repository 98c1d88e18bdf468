// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/csv_log.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostColumns = 1000;

// One row from `at` on, which may go over several lines inside quotes.
std::vector<std::string> TakeCsvRow(std::string_view bytes, size_t* at) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; *at < bytes.size(); ++*at) {
    const char c = bytes[*at];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (*at + 1 < bytes.size() && bytes[*at + 1] == '"') {
        fields.back() += '"';
        ++*at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',' && fields.size() < kMostColumns) {
      fields.emplace_back();
    } else if (c == '\n') {
      ++*at;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::optional<size_t> FindLineColumn(const std::vector<std::string>& names) {
  if (names.size() < 2) return std::nullopt;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name(Trim(names[i]));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const std::string_view known :
         {"message", "@message", "content", "log", "line", "_raw", "textpayload", "body"})
      if (name == known) return i;
  }
  return std::nullopt;
}

}  // namespace

bool IsCsvLog(std::string_view prefix) {
  const size_t first = prefix.find('\n');
  if (first == std::string_view::npos || first > 4096) return false;
  size_t at = 0;
  const std::vector<std::string> names = TakeCsvRow(prefix, &at);
  if (!FindLineColumn(names)) return false;
  const std::vector<std::string> row = TakeCsvRow(prefix, &at);
  return row.size() == names.size();
}

std::string TakeCsvLines(std::string_view bytes, size_t most) {
  size_t at = 0, line = 1, written = 1;
  const auto column = FindLineColumn(TakeCsvRow(bytes, &at));
  std::string text = "\n";
  size_t counted = 0;
  while (column && at < bytes.size() && text.size() < most) {
    line += static_cast<size_t>(
        std::count(bytes.begin() + static_cast<ptrdiff_t>(counted), bytes.begin() + static_cast<ptrdiff_t>(at), '\n'));
    counted = at;
    const std::vector<std::string> row = TakeCsvRow(bytes, &at);
    if (*column >= row.size()) continue;
    for (; written + 1 < line; ++written) text += '\n';
    text += row[*column];
    text += '\n';
    written += 1 + static_cast<size_t>(std::count(row[*column].begin(), row[*column].end(), '\n'));
  }
  return text;
}

}  // namespace tacet
