// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/gloo_waits.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tacet {
namespace {

// Its output goes as far as anybody's: nothing of it was cut off, as far as steps can tell.
bool GoesAsFarAsOthers(const SignsOfLife& life, const RankLife& one) {
  if (one.last_step < 0 || one.has_cut_file) return false;
  return std::all_of(life.ranks.begin(), life.ranks.end(),
                     [&](const auto& other) { return other.second.last_step <= one.last_step; });
}

bool SaysNothingOfItsEnd(const RankLife& one) {
  return !one.exception && !one.consequence && !one.exited && !one.finished && !one.segfault && !one.oom_killed &&
         !one.cuda_oom && !one.host_memory && !one.gpu_error && !one.timeout && !one.lost_peer && !one.aborted;
}

// Like that, until the others gave up: that it lost them then, or that its launcher ended it, follows from that.
bool SaidNothingBefore(const SignsOfLife& life, const RankLife& one) {
  RankLife before = one;
  const auto is_later = [&](const Event* event) {
    return event && std::all_of(life.ranks.begin(), life.ranks.end(), [&](const auto& other) {
             const Event* up = other.second.gloo_timeout ? other.second.gloo_timeout : other.second.gave_up;
             return !up || CameBefore(*up, *event);
           });
  };
  if (is_later(before.lost_peer)) before.lost_peer = nullptr;
  if (before.exited && before.exited->As<ProcessEnd>().code == -15) before.exited = nullptr;
  return SaysNothingOfItsEnd(before);
}

// It printed lines of its own after it had noticed that a peer was gone: until then it had not come to where the others
// waited.
const OwnLine* WentOnBehindALoss(const PrintedLines& printed, const RankLife& one) {
  if (!one.has_output || one.gloo_timeout || one.gave_up || one.exception) return nullptr;
  for (const Event* loss : {one.store_lost, one.lost_peer})
    if (const OwnLine* line = loss ? LineBehind(printed, one.rank, *loss) : nullptr) return line;
  return nullptr;
}

// What every rank tells of the end, one by one.
struct GlooVoices {
  std::vector<const RankLife*> silent;    // nothing
  std::vector<const RankLife*> bereaved;  // only that others had gone
  std::vector<Rank> waiters;              // that its time was up
  const Event* first = nullptr;           // the first of these
  const OwnLine* late = nullptr;          // printed behind the end of the others, by the one in `silent`
  bool others_fail = false;               // somebody tells of something else
};

// Who failed by the launcher's list, with the code of an uncaught exception, while every traceback without a name tells
// of a wait: it is one of those that waited.
bool WaitedByTheLauncher(const NamelessWaits& nameless, const RankLife& one) {
  if (nameless.timeouts.empty() || nameless.error || !one.exited || one.exited->As<ProcessEnd>().code != 1)
    return false;
  RankLife before = one;
  before.exited = nullptr;
  return SaysNothingOfItsEnd(before);
}

// One text holds the output of all, with as many tracebacks as ranks but one, and the launcher lists all but one as
// failed: the one that is left did not raise, although nothing in the text has its name.
bool AreAllButOne(const SignsOfLife& life, const NamelessWaits& nameless) {
  const size_t ranks = life.ranks.size();
  if (ranks < 3 || nameless.timeouts.size() + nameless.losses.size() + 1 != ranks) return false;
  const auto listed = std::count_if(life.ranks.begin(), life.ranks.end(),
                                    [&](const auto& one) { return WaitedByTheLauncher(nameless, one.second); });
  return std::cmp_equal(listed + 1, ranks);
}

GlooVoices ListenTo(const SignsOfLife& life, const NamelessWaits& nameless, const OutputFront& front,
                    const PrintedLines& printed, const auto& is_elsewhere) {
  GlooVoices voices;
  const bool one_left = AreAllButOne(life, nameless);
  for (const auto& [rank, one] : life.ranks) {
    const bool apart = front && front.rank == rank;
    const bool heard = one.has_output || one_left || is_elsewhere(rank) || !printed.LastOf(rank).empty();
    if (const OwnLine* went_on = WentOnBehindALoss(printed, one)) {
      voices.late = went_on;
      voices.silent.push_back(&one);
    } else if (heard && (SaysNothingOfItsEnd(one) || (apart && SaidNothingBefore(life, one)))) {
      voices.silent.push_back(&one);
    } else if (one.gloo_timeout || one.gave_up || WaitedByTheLauncher(nameless, one)) {
      const Event* up = one.gloo_timeout ? one.gloo_timeout : one.gave_up ? one.gave_up : nameless.timeouts.front();
      voices.waiters.push_back(rank);
      if (!voices.first) voices.first = up;
    } else if (one.gloo_loss) {
      voices.bereaved.push_back(&one);
    } else {
      voices.others_fail = true;
    }
  }
  // As many tracebacks as there are ranks but one, all of them of a wait in vain; the one that came too late may have
  // lost the others.
  const size_t ranks = life.ranks.size(), up = nameless.timeouts.size(), lost = nameless.losses.size();
  const bool all_but_one = up > 0 && (up + lost + 1 == ranks || (up + 1 == ranks && lost == 1));
  if (voices.waiters.empty() && voices.silent.size() == ranks && ranks > 2 && !nameless.error && front && all_but_one) {
    std::erase_if(voices.silent, [&](const RankLife* one) {
      if (one->rank != front.rank) voices.waiters.push_back(one->rank);
      return one->rank != front.rank;
    });
    voices.first = nameless.timeouts.front();
  }
  return voices;
}

// By its lines this rank is elsewhere, and it had not printed such a line before: what a rank always prints alone is
// its task.
bool IsApartForOnce(const OutputFront& front, const PrintedLines& printed) {
  if (front.kind == OutputFront::Kind::lags) return true;
  if (front.kind != OutputFront::Kind::elsewhere || !front.other) return false;
  const auto& lines = printed.LastOf(front.rank);
  return std::none_of(lines.begin(), lines.end(), [&](const OwnLine* line) {
    return line->shape == front.own->shape && line->source.line < front.other->source.line;
  });
}

// Its output visibly ends before the others': what follows was not kept.
bool EndsEarlier(const SignsOfLife& life, const RankLife& one) {
  return one.has_cut_file || (one.last_step >= 0 && !GoesAsFarAsOthers(life, one));
}

// Raised in a send or receive between two ranks.
bool IsMessage(const Event& raised) { return raised.op == OpKind::send || raised.op == OpKind::recv; }

// All but one waited in one collective until their time was up, so that they waited for the one that is left. It lost
// them when it came there; in a circle of sends and receives it may have waited as well.
bool CameTooLate(const SignsOfLife& life, const RankLife& one, const std::vector<Rank>& waiters) {
  if (waiters.size() + 1 != life.ranks.size()) return false;
  const CodePlace* place = nullptr;
  for (const Rank rank : waiters) {
    const Event* up = life.Of(rank)->gloo_timeout;
    if (!up || up->As<Raised>().place.file.empty() || IsMessage(*up)) return false;
    if (place && *place != up->As<Raised>().place) return false;
    place = &up->As<Raised>().place;
  }
  const Event& lost = *one.gloo_loss;
  return place && !IsMessage(lost) && (waiters.size() > 1 || lost.As<Raised>().place == *place);
}

bool Holds(const std::vector<const RankLife*>& some, Rank rank) {
  return std::any_of(some.begin(), some.end(), [&](const RankLife* one) { return one->rank == rank; });
}

}  // namespace

std::vector<ToldLaggard> FindGlooLaggards(const SignsOfLife& life, const std::vector<StackReading>& stacks,
                                          const OutputFront& front, const PrintedLines& printed,
                                          const NamelessWaits& nameless) {
  const auto is_elsewhere = [&](Rank rank) {
    return std::any_of(stacks.begin(), stacks.end(), [&](const StackReading& one) {
      return one.rank == rank && one.place == StackReading::Place::host;
    });
  };
  const GlooVoices voices = ListenTo(life, nameless, front, printed, is_elsewhere);
  if (voices.others_fail || !voices.first) return {};
  const auto told = [&](Rank rank, const SourceRef& source, const char* words) {
    return std::vector<ToldLaggard>{
        ToldLaggard{.rank = rank, .source = source, .words = words, .waiters = voices.waiters}};
  };
  if (voices.silent.size() == 1) {
    const Rank rank = voices.silent.front()->rank;
    if (voices.late) {
      auto out = told(rank, voices.late->source, "was still working after the others had given up and ended");
      out.front().not_issued = true;
      return out;
    }
    if (GoesAsFarAsOthers(life, *voices.silent.front()) || is_elsewhere(rank) || (front && front.rank == rank) ||
        (voices.waiters.size() + 1 == life.ranks.size() && !EndsEarlier(life, *voices.silent.front())))
      return told(rank, voices.first->source,
                  "reports nothing, while all others raised an error because a peer did not arrive");
    return {};
  }
  if (voices.silent.empty() && voices.bereaved.size() == 1 &&
      CameTooLate(life, *voices.bereaved.front(), voices.waiters))
    return told(voices.bereaved.front()->rank, voices.first->source,
                "did not wait with the others: it lost them after their time was up");
  const bool among = front && (Holds(voices.silent, front.rank) || Holds(voices.bereaved, front.rank));
  if (among && IsApartForOnce(front, printed))
    return told(front.rank, voices.first->source, "was elsewhere, by the last lines that it printed");
  return {};
}

bool IsMissedByGloo(const SignsOfLife& life, const RankLife& rank) {
  if (!rank.has_output || !SaysNothingOfItsEnd(rank) || EndsEarlier(life, rank)) return false;
  return life.ranks.size() > 1 && std::all_of(life.ranks.begin(), life.ranks.end(), [&](const auto& other) {
           return other.first == rank.rank || (other.second.gloo_loss && !other.second.gloo_timeout);
         });
}

}  // namespace tacet
