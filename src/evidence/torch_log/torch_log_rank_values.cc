// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_rank_values.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

constexpr size_t kMostValues = 20'000;  // of one text
constexpr size_t kLongestLine = 600;

bool IsNameLetter(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '_'; }

// What stands behind a name and a mark: "0.47" of "'epoch': 0.47", "nan" of "loss=nan". Empty where there is no value.
std::string_view ValueBehind(std::string_view low, std::string_view name) {
  for (size_t at = low.find(name); at != std::string_view::npos; at = low.find(name, at + 1)) {
    if (at > 0 && IsNameLetter(low[at - 1]) && low[at - 1] != '_') continue;
    std::string_view rest = low.substr(at + name.size());
    const size_t marks = std::min(rest.find_first_not_of(" \t:='\"["), rest.size());
    if (marks == 0 || marks > 4) continue;
    rest.remove_prefix(marks);
    const size_t size = std::min(rest.find_first_not_of("0123456789abcdefxinf.+-"), rest.size());
    const std::string_view value = rest.substr(0, size);
    const bool is_word = size < rest.size() && rest[size] >= 'a' && rest[size] <= 'z';
    if (is_word || value.empty()) continue;
    if (IsDigit(value[0]) || value[0] == '-' || value == "nan" || value == "inf" || value.size() >= 8) return value;
  }
  return {};
}

constexpr std::array<std::string_view, 6> kChecksums{"checksum",    "param_hash",   "params_hash",
                                                     "weight_hash", "weights_hash", "param_sum"};

std::string_view ChecksumIn(std::string_view low) {
  for (const std::string_view name : kChecksums)
    if (const std::string_view value = ValueBehind(low, name); !value.empty()) return value;
  return {};
}

}  // namespace

void ReadRankValues(std::string_view text, int32_t rank, const SourceRef& source, LogOutline& out) {
  if (rank < 0 || text.size() > kLongestLine || out.values.size() >= kMostValues) return;
  const std::string small = LowerCase(text);
  const std::string_view low = small;
  const bool has_sum =
      std::any_of(kChecksums.begin(), kChecksums.end(), [&](std::string_view name) { return Contains(low, name); });
  if (!has_sum && low.find("loss") == std::string_view::npos) return;
  RankValue value{.rank = rank, .is_loss = !has_sum, .source = source};
  for (const std::string_view name : {"epoch", "step", "iteration", "iter"})
    if (const std::string_view number = ValueBehind(low, name); !number.empty() && IsDigit(number[0]))
      value.at += (value.at.empty() ? "" : ", ") + std::string(name) + " " + std::string(number);
  if (value.at.empty()) return;
  // "tag=train/loss value=1.2": the name and the value are fields of their own.
  const bool tagged = low.find("tag=") != std::string_view::npos;
  value.value = tagged ? ValueBehind(low, "value") : has_sum ? ChecksumIn(low) : ValueBehind(low, "loss");
  if (!value.value.empty()) out.values.push_back(std::move(value));
}

}  // namespace tacet
