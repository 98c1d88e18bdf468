// SPDX-License-Identifier: Apache-2.0
#include "rules/finding.h"

#include <string_view>

namespace tacet {

bool IsFailure(Status status) { return status == Status::hang || status == Status::crash || status == Status::corrupt; }

std::string_view Name(Status status) {
  static constexpr std::string_view kNames[] = {"hang",     "crash",   "corrupt",     "slow",
                                                "degraded", "healthy", "undetermined"};
  return kNames[static_cast<size_t>(status)];
}

std::string_view Name(Severity severity) {
  static constexpr std::string_view kNames[] = {"critical", "warning", "note"};
  return kNames[static_cast<size_t>(severity)];
}

std::string_view Name(Confidence confidence) {
  static constexpr std::string_view kNames[] = {"certain", "likely", "possible"};
  return kNames[static_cast<size_t>(confidence)];
}

}  // namespace tacet
