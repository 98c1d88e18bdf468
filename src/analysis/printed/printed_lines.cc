// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/printed_lines.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace tacet {
namespace {

using Lines = PrintedLines::Lines;
using LinesByRank = std::map<Rank, Lines>;

// Of each file the one rank that it is of; unknown where it is of several.
std::unordered_map<FileId, Rank> OwnersOfFiles(const Incident& incident) {
  std::unordered_map<FileId, Rank> owners;
  for (const Process& process : incident.processes)
    for (const FileId file : process.files) {
      if (!process.rank.known()) continue;
      const auto [owner, fresh] = owners.emplace(file, process.rank);
      if (!fresh && owner->second != process.rank) owner->second = Rank{};
    }
  return owners;
}

// torchrun's labels count on each node: they are ranks where there is one node.
bool AreLocalRanks(const std::vector<Rank>& all, const std::set<int32_t>& local) {
  return local.size() == all.size() && !all.empty() && all.back().value == *local.rbegin();
}

class LineReader {
 public:
  LineReader(const Incident& incident, const std::vector<Rank>& ranks)
      : incident_(incident), ranks_(ranks), owners_(OwnersOfFiles(incident)) {
    std::set<int32_t> local;
    for (const LogOutline& outline : incident.outlines)
      for (const OwnLine& line : outline.own_lines)
        if (line.local) local.insert(line.rank);
    one_node_ = AreLocalRanks(ranks, local);
  }

  // One outline may hold what another one holds, too: a console, and the files of each rank. The fuller one counts.
  LinesByRank Read(std::vector<OwnLine> LogOutline::*kept, bool* cut = nullptr) const {
    LinesByRank all;
    for (const LogOutline& outline : incident_.outlines) {
      LinesByRank own = OfOutline(outline, kept);
      if (own.size() == 1 && outline.cut_end && cut) *cut = true;
      for (auto& [rank, lines] : own)
        if (Lines& known = all[rank]; known.size() < lines.size()) known = std::move(lines);
    }
    return all;
  }

 private:
  LinesByRank OfOutline(const LogOutline& outline, std::vector<OwnLine> LogOutline::*kept) const {
    // Where several ranks mark their lines, one without a mark is nobody's: a launcher's, most often.
    std::set<int32_t> marked;
    for (const OwnLine& line : outline.own_lines) marked.insert(line.rank);
    marked.erase(-1);
    LinesByRank own;
    for (const OwnLine& line : outline.*kept) {
      if (line.rank < 0 && marked.size() > 1) continue;
      if (line.local && !one_node_) continue;
      const Rank rank = SpeakerOf(line);
      if (rank.known() && (ranks_.empty() || std::binary_search(ranks_.begin(), ranks_.end(), rank)))
        own[rank].push_back(&line);
    }
    return own;
  }

  // Lines without a mark are those of the one rank that a file is of.
  Rank SpeakerOf(const OwnLine& line) const {
    if (line.rank >= 0) return Rank{line.rank};
    const auto owner = owners_.find(line.source.file);
    return owner == owners_.end() ? Rank{} : owner->second;
  }

  const Incident& incident_;
  const std::vector<Rank>& ranks_;
  std::unordered_map<FileId, Rank> owners_;
  bool one_node_ = false;
};

}  // namespace

const Lines& PrintedLines::LastOf(Rank rank) const {
  static const Lines kNone;
  const auto found = last.find(rank);
  return found == last.end() ? kNone : found->second;
}

PrintedLines ReadPrintedLines(const Incident& incident) {
  PrintedLines out;
  out.ranks = incident.AllRanks();
  const LineReader reader(incident, out.ranks);
  out.first = reader.Read(&LogOutline::first_lines);
  out.last = reader.Read(&LogOutline::own_lines, &out.cut_end);
  out.barriers = reader.Read(&LogOutline::barriers);
  return out;
}

const OwnLine* LineBehind(const PrintedLines& printed, Rank rank, const Event& event) {
  const Lines& lines = printed.LastOf(rank);
  const auto found = std::find_if(lines.rbegin(), lines.rend(), [&](const OwnLine* line) {
    return line->source.file == event.source.file && line->source.line > event.source.line;
  });
  return found == lines.rend() ? nullptr : *found;
}

}  // namespace tacet
