// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/local_ranks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

constexpr size_t kEnoughRanks = 2;
constexpr int32_t kUsualNode = 8;  // GPUs of a node: more ranks than that are on several

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

// Files of one folder whose names differ in a number and nothing else.
class NumberedFiles {
 public:
  void Add(const Fragment& fragment) {
    const auto named = RankFromPath(fragment.path);
    if (!named) return;
    numbers_.insert(named->value);
    records_ |= !fragment.streams.empty() || !fragment.timelines.empty();
    std::set<int32_t> stated;
    for (const Speaker& speaker : fragment.speakers) pids_ |= speaker.pid == named->value;
    for (const Speaker& speaker : fragment.speakers)
      if (speaker.rank.known() && speaker.rank_certainty == Certainty::stated) stated.insert(speaker.rank.value);
    if (stated.size() > 1) contradicted_ = true;  // one of them holds what several ranks said
    if (stated.size() == 1) offsets_.insert(*stated.begin() - named->value);
  }

  // Attempts and tickets are numbered, too, but seldom from 0 on, and a set with more gaps than files is none. What a
  // recorder writes it names by rank itself, so that any two of these will do, unless the numbers are process ids:
  // NCCL_DEBUG_FILE=nccl.%p.log.
  bool AreRanks() const {
    if (contradicted_ || pids_ || offsets_.size() > 1 || numbers_.size() < 2) return false;
    const size_t range = static_cast<size_t>(*numbers_.rbegin()) + 1;
    return records_ || 2 * numbers_.size() > range;
  }

 private:
  std::set<int32_t> numbers_, offsets_;
  bool contradicted_ = false, records_ = false, pids_ = false;
};

// An end that is told by the local rank alone.
bool HasOnlyLocalRank(const Event& event) {
  return event.kind == EventKind::process_exited && !event.rank.known() && event.As<ProcessEnd>().local_rank >= 0;
}

bool TellsOfSeveralNodes(const Event& event) {
  if (event.kind == EventKind::node_count) return event.As<NodeCount>().nodes > 1;
  if (event.kind == EventKind::node_failed) return true;
  const int32_t local_rank = event.As<ProcessEnd>().local_rank;
  return event.kind == EventKind::process_exited && event.rank.known() && local_rank >= 0 &&
         event.rank.value != local_rank;
}

// Gives the ends of one file their ranks.
class LocalRankNames {
 public:
  explicit LocalRankNames(Fragment& fragment) : fragment_(fragment) {
    for (size_t i = 0; i < fragment.speakers.size(); ++i)
      if (fragment.speakers[i].rank.known()) speaker_of_.emplace(fragment.speakers[i].rank, i);
    for (const Event& event : fragment.events)
      if (event.kind == EventKind::connection_lost && !event.rank.known())
        first_loss_ = std::min(first_loss_, event.source.line);
  }

  // Whoever exits by itself after somebody lost a connection may be the one who lost it.
  bool MayBeVictim(const Event& end) const { return end.As<ProcessEnd>().code > 0 && first_loss_ < end.source.line; }

  // One failed rank, and one exception above it that nobody's name stands before: it is likely that rank's own.
  void GiveOnlyError() {
    std::set<Rank> failed;
    uint32_t last = 0;
    std::vector<Event*> errors;
    size_t exceptions = 0;
    for (Event& event : fragment_.events) {
      const auto& end = event.As<ProcessEnd>();
      if (event.kind == EventKind::process_exited && end.local_rank >= 0 && end.code > 0) {
        failed.insert(event.rank);
        last = std::max(last, event.source.line);
      }
      if (!IsError(event)) continue;
      if (event.rank.known() || HasRank(event)) return;
      errors.push_back(&event);
      exceptions += event.kind == EventKind::exception;
    }
    if (failed.size() != 1 || !failed.begin()->known() || exceptions != 1) return;
    for (Event* error : errors) {
      if (error->source.line > last) continue;
      error->rank = *failed.begin();
      error->Set(Meaning::owner_inferred);
    }
  }

  // The pid goes with the rank, so that what the kernel says of it is said of the rank.
  void Give(Event& event) {
    event.rank = Rank{event.As<ProcessEnd>().local_rank};
    const auto [known, is_new] = speaker_of_.emplace(event.rank, fragment_.speakers.size());
    if (is_new) {
      Speaker& speaker = fragment_.speakers.emplace_back();
      speaker.rank = event.rank;
      speaker.rank_certainty = Certainty::assumed;
      speaker.rank_clue = RankClue::local_rank;
    }
    Speaker& speaker = fragment_.speakers[known->second];
    if (speaker.pid < 0) speaker.pid = event.pid;
    event.speaker = static_cast<uint32_t>(known->second);
  }

 private:
  static bool IsError(const Event& event) {
    return event.kind == EventKind::exception || event.kind == EventKind::cuda_error ||
           event.kind == EventKind::nccl_error;
  }
  bool HasRank(const Event& event) const {
    return event.speaker < fragment_.speakers.size() && fragment_.speakers[event.speaker].rank.known();
  }

  Fragment& fragment_;
  std::map<Rank, size_t> speaker_of_;
  uint32_t first_loss_ = UINT32_MAX;
};

// A number that a line has as well is not the name's alone.
bool IsOfTheName(const Speaker& speaker, Rank named) {
  return speaker.rank == named && speaker.rank_certainty == Certainty::assumed &&
         (speaker.rank_clue == RankClue::not_told || speaker.rank_clue == RankClue::file_name);
}

}  // namespace

void NameLocalRanks(std::vector<Fragment>& fragments) {
  std::set<std::string> hosts;
  size_t launchers = 0;
  for (const Fragment& fragment : fragments) {
    bool local = false;
    for (const Event& event : fragment.events) {
      if (TellsOfSeveralNodes(event) || event.rank.value >= kUsualNode) return;
      local |= HasOnlyLocalRank(event);
    }
    launchers += local;
    for (const Speaker& speaker : fragment.speakers) {
      if (speaker.rank.value >= kUsualNode || speaker.world_size > kUsualNode) return;
      if (!speaker.host.empty()) hosts.insert(speaker.host);
    }
  }
  if (launchers != 1 || hosts.size() > 1) return;
  for (Fragment& fragment : fragments) {
    LocalRankNames names(fragment);
    for (Event& event : fragment.events)
      if (HasOnlyLocalRank(event) && !names.MayBeVictim(event)) names.Give(event);
    names.GiveOnlyError();
  }
}

void ForgetLonelyNumbers(std::vector<Fragment>& fragments) {
  std::map<std::string, NumberedFiles> family;
  for (const Fragment& fragment : fragments)
    if (const auto stem = DoubtfulStem(fragment.path)) family[*stem].Add(fragment);
  for (Fragment& fragment : fragments) {
    const auto stem = DoubtfulStem(fragment.path);
    if (!stem || family[*stem].AreRanks()) continue;
    const auto named = RankFromPath(fragment.path);
    for (Speaker& speaker : fragment.speakers) {
      if (!named || !IsOfTheName(speaker, *named)) continue;
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
      if (!IsOfTheName(speaker, *named)) continue;
      speaker.rank = Rank{named->value + offset};
      fragment.Note(DiagnosticSeverity::note, "local-rank",
                    "the name has a local rank: according to the other files of the folder it is rank " +
                        std::to_string(speaker.rank.value));
    }
  }
}

}  // namespace tacet
