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

// Where the parts begin that are looked at after the first. They overlap by more than most lines are long.
constexpr size_t kSearchedWhole = size_t{2} << 20, kSamples = 32, kStride = kPrefixBytes - 4096;

std::vector<size_t> LaterParts(size_t size) {
  std::vector<size_t> parts;
  size_t at = kStride;
  for (; at < size && at < kSearchedWhole; at += kStride) parts.push_back(at);
  if (at >= size) return parts;
  const size_t rest = size - at;
  const size_t samples = std::min(kSamples, rest / kPrefixBytes);
  for (size_t i = 0; i < samples; ++i) parts.push_back(at + rest / samples * i);
  parts.push_back(size - std::min(size, kPrefixBytes));
  return parts;
}

}  // namespace

const Format* OwnerOfAll(std::string_view text) {
  for (const Format* format : AllFormats())
    if (format->owns_all && format->owns_all(text)) return format;
  return nullptr;
}

Detection Detect(std::string_view prefix, std::string_view filename) {
  if (const Format* owner = OwnerOfAll(prefix)) return {{owner}, {}, true};
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

bool MayBeText(std::string_view prefix) {
  if (IsBinary(prefix) || prefix.substr(0, kPrefixBytes).find('\0') != std::string_view::npos) return false;
  return !prefix.starts_with('{') && !prefix.starts_with('<');
}

Detection DetectLater(std::string_view bytes, std::string_view filename) {
  Detection detection;
  if (bytes.size() <= kPrefixBytes || !MayBeText(bytes.substr(0, kPrefixBytes))) return detection;
  std::vector<const Format*> lines;
  for (const Format* format : AllFormats())
    if (format->shares_lines) lines.push_back(format);
  for (const size_t part : LaterParts(bytes.size())) {
    const size_t newline = bytes.substr(part, kPrefixBytes).find('\n');
    if (newline == std::string_view::npos) continue;
    const std::string_view window = bytes.substr(part + newline + 1, kPrefixBytes);
    for (const Format* format : lines)
      if (format->recognise(window, filename) == Recognition::yes) detection.readers.push_back(format);
    if (!detection.readers.empty()) break;
  }
  return detection;
}

}  // namespace tacet
