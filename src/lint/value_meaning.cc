// SPDX-License-Identifier: Apache-2.0
#include "lint/value_meaning.h"

#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "lint/lint_sheet.h"
#include "lint/value_reading.h"

namespace tacet {
namespace {

// "67 ms", "4.3 s", "2.3 min", "20 h": two digits are enough for what a retry amounts to.
std::string RoughTime(double seconds) {
  double value = seconds * 1e6;
  std::string_view unit = "µs";
  for (const auto& [factor, larger] :
       {std::pair<double, std::string_view>{1e3, "ms"}, {1e3, "s"}, {60, "min"}, {60, "h"}}) {
    if (value < factor) break;
    value /= factor;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.1f " : "%.0f ", value);
  return text + std::string(unit);
}

// The number in use: what the environment sets, what is being described, or the default.
int64_t NumberInUse(const GivenEnvironment& environment, const GivenVariable& variable, std::string_view name) {
  const GivenVariable* given = variable.name == name ? &variable : FindGiven(environment, name);
  if (given != nullptr && given->value_known && !given->value.empty()) {
    const NcclNumber number = ReadNcclNumber(given->value);
    if (number.whole && !number.out_of_range) return number.value;
  }
  return ReadNcclNumber(DefaultOf(*FindKnownVariable(name), environment.nccl)).value;
}

}  // namespace

std::string MeaningOfValue(const GivenEnvironment& environment, const GivenVariable& variable) {
  constexpr std::string_view kTimeout = "NCCL_IB_TIMEOUT", kRetries = "NCCL_IB_RETRY_CNT";
  if (variable.name != kTimeout && variable.name != kRetries) return "";
  constexpr double kUnitSeconds = 4.096e-6;
  constexpr int64_t kMostTimeout = 31, kMostRetries = 7;  // 5 and 3 bits
  const int64_t timeout = NumberInUse(environment, variable, kTimeout);
  const int64_t retries = NumberInUse(environment, variable, kRetries);
  if (timeout < 1 || timeout > kMostTimeout || retries < 0 || retries > kMostRetries) return "";
  const double each = std::ldexp(kUnitSeconds, static_cast<int>(timeout));
  return "a packet without an answer is sent again after 4.096 µs x 2^" + std::to_string(timeout) + " = " +
         RoughTime(each) + " (" + std::string(kTimeout) + "), " + std::to_string(retries) +
         (retries == 1 ? " time (" : " times (") + std::string(kRetries) + "): a dead link is reported after " +
         RoughTime(each * static_cast<double>(retries + 1)) + " at the earliest";
}

}  // namespace tacet
