// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/program_order.h"

#include <algorithm>
#include <map>

#include "analysis/calls/call_alignment.h"
#include "analysis/calls/call_track.h"

namespace tacet {
namespace {

// A shared history shorter than this is no proof of an equal role.
constexpr size_t kEnoughHistory = 8;
// How far the continuation after a divergence is followed.
constexpr size_t kLookAhead = 16;

struct Continuation {
  size_t agree = 0;
  bool broke = false;
};

Continuation Follow(const Track& odd, size_t odd_from, const Track& usual, size_t usual_from) {
  Continuation result;
  for (size_t k = 0; k < kLookAhead; ++k) {
    if (odd_from + k >= odd.symbols.size() || usual_from + k >= usual.symbols.size()) break;
    if (odd.symbols[odd_from + k] != usual.symbols[usual_from + k]) {
      result.broke = true;
      break;
    }
    ++result.agree;
  }
  return result;
}

// Several calls in a row are missing or too many: a whole exchange, an evaluation, the reductions of one step.
bool ClassifyBlock(const Track& odd, const Track& usual, size_t at, Divergence::Kind* kind) {
  constexpr size_t kLongest = 32, kEnoughAgreement = 4;
  for (size_t length = 2; length <= kLongest; ++length) {
    const Continuation skipped = Follow(odd, at, usual, at + length), extra = Follow(odd, at + length, usual, at);
    const bool skipped_fits = !skipped.broke && skipped.agree >= kEnoughAgreement;
    const bool extra_fits = !extra.broke && extra.agree >= kEnoughAgreement;
    if (!skipped_fits && !extra_fits) continue;
    *kind = skipped_fits && skipped.agree >= extra.agree ? Divergence::Kind::skipped : Divergence::Kind::extra;
    return true;
  }
  return false;
}

// The odd one goes on as the others do after one more round of what they did last: it left a whole round out, and the
// call that seems to be too many is the one that follows the round.
//     usual  a a a | a a a | b        odd  a a a | b
bool LeftRoundOut(const Track& odd, const Track& usual, size_t at) {
  constexpr size_t kLongestRound = 512;
  for (size_t length = 2; length <= std::min(at, kLongestRound) && at + length < usual.symbols.size(); ++length) {
    if (usual.symbols[at + length] != odd.symbols[at]) continue;
    if (!std::equal(usual.symbols.begin() + static_cast<long>(at - length),
                    usual.symbols.begin() + static_cast<long>(at), usual.symbols.begin() + static_cast<long>(at)))
      continue;
    return !Follow(odd, at, usual, at + length).broke;
  }
  return false;
}

// The same call is missing or too many in every round. How many they are, 0 where it is not so.
size_t DriftBetween(const Track& longer, const Track& shorter, size_t at) {
  if (at >= longer.symbols.size() || at >= shorter.symbols.size()) return 0;
  const auto alignment = AlignByDropping(
      longer.symbols.size() - at, shorter.symbols.size() - at,
      [&](size_t a, size_t b) { return longer.symbols[at + a] == shorter.symbols[at + b]; },
      [&](size_t a, size_t b) { return longer.symbols[at + a] == longer.symbols[at + b]; });
  const bool transfer = IsPointToPoint(longer.stream->calls[longer.calls[at]].kind);
  return alignment && alignment->alike && alignment->dropped.size() > 1 && !transfer ? alignment->dropped.size() : 0;
}

// How the odd one goes on. False when it does not find back: then it may simply play another role.
bool Classify(const Track& odd, const Track& usual, size_t at, Divergence::Kind* kind) {
  const bool odd_has_next = at + 1 < odd.symbols.size(), usual_has_next = at + 1 < usual.symbols.size();
  if (odd_has_next && usual_has_next && odd.symbols[at] == usual.symbols[at + 1] &&
      odd.symbols[at + 1] == usual.symbols[at] && !Follow(odd, at + 2, usual, at + 2).broke) {
    *kind = Divergence::Kind::swapped;
    return true;
  }
  const Continuation in_step = Follow(odd, at + 1, usual, at + 1);
  const Continuation skipped = Follow(odd, at, usual, at + 1);
  const Continuation extra = Follow(odd, at + 1, usual, at);
  if (!in_step.broke && in_step.agree >= std::max(skipped.agree, extra.agree)) {
    *kind = Divergence::Kind::different;
    return true;
  }
  const bool skipped_fits = !skipped.broke && skipped.agree > 0, extra_fits = !extra.broke && extra.agree > 0;
  if (!skipped_fits && !extra_fits)
    return ClassifyBlock(odd, usual, at, kind) || in_step.agree + 1 >= kLookAhead ||
           (!odd_has_next && at >= kEnoughHistory);
  const bool skipped_more = skipped_fits && (!extra_fits || skipped.agree > extra.agree);
  *kind = skipped_more || LeftRoundOut(odd, usual, at) ? Divergence::Kind::skipped : Divergence::Kind::extra;
  return true;
}

// Reads how the odd one goes on, and how often.
bool ReadDivergence(const Track& odd, const Track& usual, size_t at, Divergence& divergence) {
  using Kind = Divergence::Kind;
  const bool known = Classify(odd, usual, at, &divergence.kind);
  if (known && divergence.kind != Kind::extra && divergence.kind != Kind::skipped) return true;
  const size_t extra = known && divergence.kind == Kind::skipped ? 0 : DriftBetween(odd, usual, at);
  const size_t skipped = known && divergence.kind == Kind::extra ? 0 : DriftBetween(usual, odd, at);
  if ((extra > 0) == (skipped > 0)) return known;
  divergence.kind = extra > 0 ? Kind::extra : Kind::skipped;
  divergence.count = std::max(extra, skipped);
  return true;
}

class Comparison {
 public:
  Comparison(CallSource source, const std::vector<Track>& tracks) : source_(source), tracks_(tracks) {}

  std::vector<Divergence> Run() {
    std::vector<size_t> all(tracks_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    // Roles split off as they appear; each set is walked from where it was split.
    std::vector<std::pair<std::vector<size_t>, size_t>> open{{std::move(all), 0}};
    while (!open.empty()) {
      auto [members, at] = std::move(open.back());
      open.pop_back();
      Walk(std::move(members), at, open);
    }
    return std::move(found_);
  }

 private:
  void Walk(std::vector<size_t> members, size_t at, std::vector<std::pair<std::vector<size_t>, size_t>>& open) {
    for (; members.size() > 1; ++at) {
      std::erase_if(members, [&](size_t m) { return at >= tracks_[m].symbols.size(); });
      if (members.size() < 2) return;
      std::map<uint64_t, std::vector<size_t>> parts;
      const uint64_t first = tracks_[members[0]].symbols[at];
      if (std::all_of(members.begin(), members.end(), [&](size_t m) { return tracks_[m].symbols[at] == first; }))
        continue;
      for (const size_t m : members) parts[tracks_[m].symbols[at]].push_back(m);
      auto largest = std::max_element(parts.begin(), parts.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      std::vector<size_t> usual = largest->second;
      for (auto& [symbol, part] : parts) {
        if (symbol == largest->first) continue;
        if (!Blame(part, usual, at) && part.size() > 1) open.push_back({part, at});
      }
      members = std::move(usual);
    }
  }

  // Few against many, after a long common history, and the odd ones find back into step: a fault, not a role. The
  // stages of a pipeline begin alike and leave each other one by one, each in its own order.
  bool Blame(const std::vector<size_t>& odd, const std::vector<size_t>& usual, size_t at) {
    if (odd.size() * 2 > usual.size() || at < kEnoughHistory) return false;
    if ((IsTransfer(odd[0], at) || IsTransfer(usual[0], at)) && !StayTogether(usual, at)) return false;
    Divergence divergence{.source = source_, .shared_calls = at};
    if (!ReadDivergence(tracks_[odd[0]], tracks_[usual[0]], at, divergence)) return false;
    for (const size_t m : odd) divergence.odd.push_back(tracks_[m].stream->rank);
    for (const size_t m : usual) divergence.usual.push_back(tracks_[m].stream->rank);
    divergence.odd_stream = tracks_[odd[0]].stream;
    divergence.usual_stream = tracks_[usual[0]].stream;
    divergence.odd_call = &divergence.odd_stream->calls[tracks_[odd[0]].calls[at]];
    divergence.usual_call = &divergence.usual_stream->calls[tracks_[usual[0]].calls[at]];
    found_.push_back(std::move(divergence));
    return true;
  }

  bool IsTransfer(size_t track, size_t at) const {
    const Call& call = tracks_[track].stream->calls[tracks_[track].calls[at]];
    return IsPointToPoint(call.kind) || call.has(kPointToPoint);
  }

  bool StayTogether(const std::vector<size_t>& members, size_t at) const {
    return std::none_of(members.begin() + 1, members.end(),
                        [&](size_t m) { return Follow(tracks_[m], at, tracks_[members[0]], at).broke; });
  }

  CallSource source_;
  const std::vector<Track>& tracks_;
  std::vector<Divergence> found_;
};

}  // namespace

std::vector<Divergence> CompareProgramOrder(const Incident& incident, CallSource source) {
  const std::vector<Track> tracks = CollectTracks(incident, source);
  return Comparison(source, tracks).Run();
}

}  // namespace tacet
