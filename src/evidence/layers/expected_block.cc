// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/expected_block.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "### Expected behavior", "**Expected output:**", "## What did you expect to happen?" in small letters, without marks;
// empty for a line that is no heading.
std::string HeadingOf(std::string_view line) {
  constexpr size_t kLongestHeading = 60;
  line = Trim(line);
  if (line.size() > kLongestHeading || !(line.starts_with('#') || line.starts_with("**"))) return "";
  constexpr std::string_view kMarks = "#* :?_";
  const size_t begin = line.find_first_not_of(kMarks), end = line.find_last_not_of(kMarks);
  return begin == std::string_view::npos ? "" : LowerCase(line.substr(begin, end + 1 - begin));
}

bool IsWish(std::string_view heading) {
  for (const std::string_view words :
       {"expected behavi", "expected output", "expected result", "expected log", "expectation", "desired behavi",
        "desired output", "what i expect", "what we expect", "what did you expect", "what you expected",
        "what should happen"})
    if (heading.starts_with(words)) return !Contains(heading, " actual") && !Contains(heading, " vs");
  return heading == "expected";
}

}  // namespace

std::vector<bool> FindExpectedBlocks(const std::vector<std::string_view>& lines) {
  std::vector<bool> expected(lines.size());
  bool wish = false, fenced = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = Trim(lines[i]);
    if (line.starts_with("```")) {
      fenced = !fenced;
      continue;
    }
    if (fenced) {
      expected[i] = wish && !line.empty();
      continue;
    }
    if (const std::string heading = HeadingOf(line); !heading.empty()) wish = IsWish(heading);
  }
  return expected;
}

bool HasExpectedBlock(const std::vector<std::string_view>& lines) {
  const std::vector<bool> expected = FindExpectedBlocks(lines);
  return std::find(expected.begin(), expected.end(), true) != expected.end();
}

}  // namespace tacet
