// SPDX-License-Identifier: Apache-2.0
#include "evidence/detect.h"

#include <algorithm>

#include "evidence/registry.h"

namespace tacet {

Detection Detect(std::string_view prefix, std::string_view filename) {
  std::vector<const Format*> sure, perhaps;
  for (const Format* format : AllFormats()) {
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
