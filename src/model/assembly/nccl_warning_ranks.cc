// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/nccl_warning_ranks.h"

#include "base/text_scan.h"

namespace tacet {

// Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60
// Mismatched NCCL version detected : rank 1 version 22809 rank 0 version 22707
std::optional<WarningRanks> ParseWarningRanks(const NcclWarning& warning, std::string_view message) {
  if (warning.id != "duplicate-gpu" && warning.id != "version-mismatch") return std::nullopt;
  const auto rest = After(message, "rank ");
  if (!rest) return std::nullopt;
  const int64_t first = IntAfter(message, "rank ").value_or(-1), second = IntAfter(*rest, "rank ").value_or(-1);
  if (first < 0 || first >= INT32_MAX || second < 0 || second >= INT32_MAX) return std::nullopt;
  return WarningRanks{static_cast<int32_t>(first), static_cast<int32_t>(second)};
}

std::string NcclVersionWords(int64_t code) {
  if (code < 2000 || code >= 1'000'000) return "";
  const int64_t major = code >= 10000 ? 10000 : 1000;
  return std::to_string(code / major) + "." + std::to_string(code % major / 100) + "." + std::to_string(code % 100);
}

}  // namespace tacet
