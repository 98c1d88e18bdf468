// SPDX-License-Identifier: Apache-2.0
#include "cut_variant.h"

#include <algorithm>
#include <set>

namespace tacet {
namespace {

using Files = std::vector<RecordedFile>;
using MadeFiles = std::optional<Files>;

// Where a file is cut: in the middle of whatever stands there, or behind a whole line.
enum class CutAt { byte, line };

struct Cut {
  std::set<FileKind> kinds;
  int percent = 0;  // of the bytes stay
  CutAt at = CutAt::byte;
};

std::string CutText(const std::string& bytes, const Cut& cut) {
  size_t end = bytes.size() * static_cast<size_t>(cut.percent) / 100;
  if (cut.at == CutAt::line) {
    const size_t newline = bytes.rfind('\n', end == 0 ? 0 : end - 1);
    end = newline == std::string::npos ? 0 : newline + 1;
  }
  return bytes.substr(0, end);
}

MadeFiles CutFiles(const Files& files, const Cut& cut, const std::function<bool(int rank)>& is_struck) {
  Files out = files;
  std::set<FileKind> found;
  for (RecordedFile& file : out) {
    const FileKind kind = KindOf(file.path);
    if (!cut.kinds.contains(kind) || !is_struck(RankInName(file.path))) continue;
    found.insert(kind);
    file.bytes = CutText(file.bytes, cut);
  }
  return found == cut.kinds ? MadeFiles(std::move(out)) : std::nullopt;
}

std::string CutWords(const Cut& cut) {
  std::string words;
  for (const FileKind kind : cut.kinds) words += (words.empty() ? "" : "+") + std::string(Name(kind));
  return words + " " + std::to_string(cut.percent) + (cut.at == CutAt::line ? "% (lines)" : "%");
}

Variant CutOfAll(const Cut& cut) {
  return {"cut " + CutWords(cut), false,
          [cut](const Files& files, IncidentTruth&) { return CutFiles(files, cut, [](int) { return true; }); },
          cut.kinds};
}

int HighestRank(const Files& files) {
  int highest = -1;
  for (const RecordedFile& file : files) highest = std::max(highest, RankInName(file.path));
  return highest;
}

enum class Whose { first_innocent, second_innocent, guilty };

Variant CutOfOne(const Cut& cut, Whose whose) {
  static constexpr const char* kNames[] = {"of an innocent", "of another innocent", "of a guilty one"};
  return {"cut " + CutWords(cut) + " " + kNames[static_cast<size_t>(whose)], false,
          [cut, whose](const Files& files, IncidentTruth& truth) -> MadeFiles {
            std::vector<int> ranks;
            for (int rank = 0; rank <= HighestRank(files); ++rank)
              if (truth.ranks.contains(rank) == (whose == Whose::guilty)) ranks.push_back(rank);
            const size_t place = whose == Whose::second_innocent ? 1 : 0;
            if (place >= ranks.size()) return std::nullopt;
            const int struck = ranks[place];
            return CutFiles(files, cut, [struck](int rank) { return rank == struck; });
          },
          cut.kinds};
}

}  // namespace

// Cuts behind whole lines are tried where the rest can tell: of the end of all logs at one and the same call nobody
// can.
std::vector<Variant> CutVariants() {
  using enum FileKind;
  std::vector<Variant> variants;
  const std::set<FileKind> words = {output, stacks}, texts = {nccl_log, output, stacks},
                           whole = {record, nccl_log, output, stacks};
  for (const auto& kinds : {{output}, {stacks}, words, {nccl_log}, std::set{nccl_log, output}})
    for (const int percent : {25, 75}) variants.push_back(CutOfAll({kinds, percent, CutAt::byte}));
  for (const auto& kinds : {words, texts, whole, {record}, std::set{record, nccl_log}, {ras}, {kernel_log}})
    variants.push_back(CutOfAll({kinds, 50, CutAt::byte}));
  for (const auto& kinds : {words, std::set{nccl_log, output}}) variants.push_back(CutOfAll({kinds, 50, CutAt::line}));
  // One file that ends early looks like that of a rank which stopped writing.
  for (const auto& kinds : {{nccl_log}, words, texts, whole})
    for (const Whose whose : {Whose::first_innocent, Whose::second_innocent, Whose::guilty})
      variants.push_back(CutOfOne({kinds, 50, whose == Whose::first_innocent ? CutAt::line : CutAt::byte}, whose));
  return variants;
}

}  // namespace tacet
