// SPDX-License-Identifier: Apache-2.0
#include "launch/output_sense.h"

#include <algorithm>
#include <cstddef>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kHead = 48;

void SkipTag(std::string_view& line, std::string_view name) {
  std::string_view rest = line;
  int number = 0;
  if (TakeLiteral(rest, "[") && TakeLiteral(rest, name) && TakeNumber(rest, &number) && TakeLiteral(rest, "]:"))
    line = rest;
}

// [default1]:[rank1]:[I1116 18:38:25.215080311 ProcessGroupNCCL.cpp:2088] ...
bool IsReport(std::string_view line) {
  SkipTag(line, "default");
  SkipTag(line, "rank");
  return line.size() > 2 && line.starts_with("[I") && IsDigit(line[2]);
}

}  // namespace

bool OutputSense::ShowsWork(std::string_view bytes) {
  bool work = false;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    head_.append(piece.substr(0, kHead - std::min(kHead, head_.size())));
    work |= !Trim(head_).empty() && !IsReport(head_);
    if (end == std::string_view::npos) break;
    head_.clear();
    bytes.remove_prefix(end + 1);
  }
  return work;
}

}  // namespace tacet
