// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/quiet_rank.h"

#include <set>
#include <string>

#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kFewestRanks = 3;
constexpr int64_t kRemoteError = 6;  // ncclRemoteError

bool IsLossOfAPeer(const Event& event) {
  return event.kind == EventKind::connection_lost ||
         (event.kind == EventKind::nccl_error && event.As<NcclError>().code == kRemoteError);
}

}  // namespace

std::optional<QuietRank> FindQuietRank(const Case& facts, const Event& told) {
  const auto& lives = facts.analyses.life.ranks;
  if (lives.size() < kFewestRanks || !IsLossOfAPeer(told)) return std::nullopt;
  std::set<Rank> lost;
  for (const Event& event : facts.incident.events)
    if (event.rank.known() && IsLossOfAPeer(event)) lost.insert(event.rank);
  std::optional<QuietRank> quiet;
  for (const auto& [rank, life] : lives) {
    if (lost.contains(rank)) continue;
    if (quiet || life.exception || life.consequence || life.gpu_error || life.shared_gpu_error || life.timeout ||
        life.exited || life.finished || life.has_cut_file)
      return std::nullopt;
    quiet = QuietRank{rank, nullptr};
  }
  if (!quiet) return std::nullopt;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const LineOfRank& line : outline.last_of_ranks)
      if (line.rank == quiet->rank.value && line.source.file == told.source.file) quiet->line = &line;
  if (!quiet->line) return std::nullopt;
  return quiet;
}

std::string QuietRankWords(const QuietRank& quiet) {
  return RankWords({quiet.rank}) + " is the only one that reports no error; the last line it printed is '" +
         MessageWords(quiet.line->text) + "'";
}

}  // namespace tacet
