// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "render/prediction/prediction_render.h"

namespace tacet {
namespace {

std::string Digits(double value, const char* unit) {
  char text[64];
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
  return text;
}

}  // namespace

std::string MessageSizeWords(int64_t bytes) {
  static constexpr const char* kBinary[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  static constexpr const char* kDecimal[] = {"B", "kB", "MB", "GB", "TB"};
  if (bytes > 0 && (bytes & (bytes - 1)) == 0) {
    int step = 0;
    for (; bytes >= 1024 && step < 4; ++step) bytes /= 1024;
    return std::to_string(bytes) + " " + kBinary[step];
  }
  // "96 MiB" as it was asked for
  constexpr int64_t kKiB = 1024, kMostOfUnit = 10'000;
  int64_t whole = bytes;
  int unit = 0;
  for (; whole > 0 && whole % kKiB == 0 && unit < 4; ++unit) whole /= kKiB;
  if (unit > 0 && whole < kMostOfUnit) return std::to_string(whole) + " " + kBinary[unit];
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  int step = 0;
  for (; value >= 999.5 && step < 4; ++step) value /= 1000;
  return Digits(value, kDecimal[step]);
}

std::string TimeWords(double us) {
  if (us < 0) return "-";
  if (us >= 1e6) return Digits(us / 1e6, "s");
  return us >= 1e3 ? Digits(us / 1e3, "ms") : Digits(us, "µs");
}

// One unit, so that a column can be compared; small messages get more decimals: "0.00 GB/s" tells nothing.
std::string SpeedWords(double gbps) {
  if (gbps <= 0 || gbps >= 0.0995) return Digits(gbps, "GB/s");
  constexpr double kLeastGigabytes = 0.001;
  if (gbps < kLeastGigabytes) return Digits(gbps * 1e6, "kB/s");
  char text[64];
  const int decimals = std::min(9, 2 - static_cast<int>(std::floor(std::log10(gbps))));
  std::snprintf(text, sizeof text, "%.*f GB/s", decimals, gbps);
  return text;
}

}  // namespace tacet
