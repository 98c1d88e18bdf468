// SPDX-License-Identifier: Apache-2.0
#include "model/file_rank.h"

#include <cctype>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::optional<Rank> NumberAt(std::string_view text) {
  int32_t value = 0;
  if (text.empty() || !IsDigit(text.front()) || !TakeNumber(text, &value) || value > 10'000'000) return std::nullopt;
  return Rank{value};
}

// "…rank3…", "…rank_3…", "…rank-03…": the last such number in the name ("node_rank1_rank3" is rank 3).
std::optional<Rank> AfterRankWord(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::optional<Rank> found;
  for (size_t at = lower.find("rank"); at != std::string::npos; at = lower.find("rank", at + 4)) {
    // "local_rank3" and "node_rank3" number something else.
    const std::string_view before = std::string_view(lower).substr(0, at);
    if (before.ends_with("local_") || before.ends_with("node_") || before.ends_with("local-") || before.ends_with("node-"))
      continue;
    size_t from = at + 4;
    while (from < name.size() && (name[from] == '_' || name[from] == '-' || name[from] == '=' || name[from] == '.')) ++from;
    if (auto rank = NumberAt(name.substr(from))) found = rank;
  }
  return found;
}

// "_dump_12", "3.log", "worker3.out", "nccl_trace.7.pickle": the only number of the stem.
std::optional<Rank> OnlyNumber(std::string_view name) {
  std::optional<Rank> found;
  for (size_t i = 0; i < name.size();) {
    if (!IsDigit(name[i])) {
      ++i;
      continue;
    }
    if (found) return std::nullopt;
    found = NumberAt(name.substr(i));
    if (!found) return std::nullopt;
    while (i < name.size() && IsDigit(name[i])) ++i;
  }
  return found;
}

std::string_view LastPart(std::string_view& path) {
  const size_t slash = path.rfind('/');
  std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return part;
}

}  // namespace

std::optional<Rank> RankFromPath(std::string_view path) {
  std::string_view folders = path;
  const std::string_view name = LastPart(folders);
  if (auto rank = AfterRankWord(name)) return rank;
  std::string_view rest = folders;
  for (int level = 0; level < 3 && !rest.empty(); ++level) {
    if (auto rank = AfterRankWord(LastPart(rest))) return rank;
  }
  if (auto rank = OnlyNumber(name)) return rank;
  // torchrun's log tree: attempt_0/3/stdout.log
  const std::string_view folder = LastPart(folders);
  if (!folder.empty() && folder.find_first_not_of("0123456789") == std::string_view::npos) return NumberAt(folder);
  return std::nullopt;
}

}  // namespace tacet
