// SPDX-License-Identifier: Apache-2.0
#include "model/local_ranks.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model/file_rank.h"

namespace tacet {
namespace {

constexpr size_t kEnoughRanks = 2;

struct Offsets {
  std::set<int32_t> values;
  std::set<int32_t> named;
};

// The rank of the one speaker who states it; nothing where several do.
std::optional<Rank> StatedRank(const Fragment& fragment) {
  std::optional<Rank> stated;
  for (const Speaker& speaker : fragment.speakers) {
    if (!speaker.rank.known() || speaker.rank_certainty != Certainty::stated) continue;
    if (stated && *stated != speaker.rank) return std::nullopt;
    stated = speaker.rank;
  }
  return stated;
}

// Files whose numbers count from the same rank: those of a folder, or of one attempt of a node under torchrun.
std::string Numbered(std::string_view path) {
  const auto place = TorchrunPlaceOf(path);
  return std::string(place ? place->attempt : FolderOf(path));
}

}  // namespace

void ForgetLonelyNumbers(std::vector<Fragment>& fragments) {
  std::map<std::string, size_t> family;
  for (const Fragment& fragment : fragments)
    if (const auto stem = DoubtfulStem(fragment.path)) ++family[*stem];
  for (Fragment& fragment : fragments) {
    const auto stem = DoubtfulStem(fragment.path);
    if (!stem || family[*stem] > 1) continue;
    const auto named = RankFromPath(fragment.path);
    for (Speaker& speaker : fragment.speakers) {
      if (!named || speaker.rank_certainty != Certainty::assumed || speaker.rank != *named) continue;
      speaker.rank = Rank{};
      speaker.rank_certainty = Certainty::none;
    }
  }
}

void ShiftLocalRanks(std::vector<Fragment>& fragments) {
  std::map<std::string, Offsets> folders;
  for (const Fragment& fragment : fragments) {
    const auto named = RankFromPath(fragment.path);
    const auto stated = StatedRank(fragment);
    if (!named || !stated) continue;
    Offsets& offsets = folders[Numbered(fragment.path)];
    offsets.values.insert(stated->value - named->value);
    offsets.named.insert(named->value);
  }
  for (Fragment& fragment : fragments) {
    const auto folder = folders.find(Numbered(fragment.path));
    if (folder == folders.end() || folder->second.values.size() != 1 || folder->second.named.size() < kEnoughRanks)
      continue;
    const int32_t offset = *folder->second.values.begin();
    const auto named = RankFromPath(fragment.path);
    if (offset <= 0 || !named) continue;
    for (Speaker& speaker : fragment.speakers) {
      if (speaker.rank_certainty != Certainty::assumed || speaker.rank != *named) continue;
      speaker.rank = Rank{named->value + offset};
      fragment.Note(DiagnosticSeverity::note, "local-rank",
                    "the name has a local rank: according to the other files of the folder it is rank " +
                        std::to_string(speaker.rank.value));
    }
  }
}

}  // namespace tacet
