// SPDX-License-Identifier: Apache-2.0
#include "evidence/detect.h"

#include <algorithm>

#include "evidence/registry.h"

namespace tacet {
namespace {

// The second half of a character and then a control code: a pickle ("\x80\x02") or another binary file, never a line of
// text. Line logs search all of the prefix for their lines, which is not worth it for thousands of dumps.
bool IsBinary(std::string_view prefix) {
  if (prefix.size() < 2) return false;
  const auto first = static_cast<unsigned char>(prefix[0]), second = static_cast<unsigned char>(prefix[1]);
  return first >= 0x80 && first < 0xc0 && second < '\t';
}

}  // namespace

Detection Detect(std::string_view prefix, std::string_view filename) {
  std::vector<const Format*> sure, perhaps;
  const bool binary = IsBinary(prefix);
  for (const Format* format : AllFormats()) {
    if (binary && format->shares_lines) continue;
    const Recognition answer = format->recognise(prefix, filename);
    if (answer == Recognition::yes) sure.push_back(format);
    if (answer == Recognition::maybe) perhaps.push_back(format);
  }
  std::vector<const Format*>& best = sure.empty() ? perhaps : sure;
  Detection detection;
  if (best.empty()) return detection;
  const auto shares = [](const Format* format) { return format->shares_lines; };
  if (best.size() > 1 && !std::all_of(best.begin(), best.end(), shares)) {
    detection.readers = {best.front()};
    detection.tied.assign(best.begin() + 1, best.end());
    return detection;
  }
  detection.readers = best;
  if (shares(best.front()) && !sure.empty())
    std::copy_if(perhaps.begin(), perhaps.end(), std::back_inserter(detection.readers), shares);
  return detection;
}

}  // namespace tacet
