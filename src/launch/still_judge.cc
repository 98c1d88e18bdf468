// SPDX-License-Identifier: Apache-2.0
#include "launch/still_judge.h"

#include <algorithm>

namespace tacet {
namespace {

bool IsStopped(const RankLook& look) { return look.state == 'T' || look.state == 't'; }

// Waits by its stack, or by its box while the stack does not say what it does.
bool Waits(const RankLook& look) {
  return !look.gone && !IsStopped(look) && (look.doing == RankLook::Doing::waits || look.in_flight);
}

// The same of a rank that used neither CPU nor files: backward() of a DDP model waits for its peers in C++, and its
// Python stack ends there.
bool WaitsWhenIdle(const RankLook& look) {
  return Waits(look) || (!look.gone && !IsStopped(look) && look.doing == RankLook::Doing::library);
}

}  // namespace

bool StillJudge::HasMoved(const RankLook& before, const RankLook& now, int64_t elapsed_ns) const {
  if (now.gone != before.gone || now.progress != before.progress) return true;
  if (now.gone || IsStopped(now)) return now.state != before.state;
  // A thread that waits for the network or the GPU may spin: its CPU time says nothing.
  if (Waits(now) && Waits(before)) return now.place != before.place;
  if (now.place != before.place || now.doing != before.doing) return true;
  if (now.main_io_bytes != before.main_io_bytes) return true;
  const auto elapsed = static_cast<double>(elapsed_ns);
  if (static_cast<double>(now.io_bytes - before.io_bytes) >
      static_cast<double>(patience_.run_chatter_bytes) * elapsed / 1e9)
    return true;
  return static_cast<double>(now.cpu_ns - before.cpu_ns) >
         static_cast<double>(patience_.run_busy_percent) / 100 * elapsed;
}

bool StillJudge::HaveGotOn(const std::vector<RankLook>& ranks) const {
  bool got_on = false;
  for (const RankLook& rank : ranks) {
    const auto before = before_.find(rank.pid);
    // Whoever ends, or ended, does not get on: that is how hangs end.
    if (before == before_.end() || rank.gone != before->second.gone) return false;
    if (rank.gone || IsStopped(rank)) continue;
    const bool known = rank.doing != RankLook::Doing::unknown && before->second.doing != RankLook::Doing::unknown;
    got_on |= rank.progress != before->second.progress || (known && rank.place != before->second.place);
  }
  return got_on;
}

std::optional<StillVerdict> StillJudge::Look(const std::vector<RankLook>& ranks, int64_t now_ns) {
  moved_ = looked_ns_ < 0 || ranks.empty() || ranks.size() != before_.size();
  for (const RankLook& rank : ranks) {
    const auto before = before_.find(rank.pid);
    moved_ = moved_ || before == before_.end() || HasMoved(before->second, rank, now_ns - looked_ns_);
  }
  if (moved_) {
    if (still_since_ns_ >= 0 && looked_ns_ > still_since_ns_)
      longest_pause_ns_ = std::max(longest_pause_ns_, now_ns - still_since_ns_);
    still_since_ns_ = now_ns;
  }
  before_.clear();
  for (const RankLook& rank : ranks) before_[rank.pid] = rank;
  looked_ns_ = now_ns;
  if (moved_) return std::nullopt;

  StillVerdict verdict;
  bool setting_up = false;
  for (const RankLook& rank : ranks) {
    (WaitsWhenIdle(rank) ? verdict.waiting : verdict.elsewhere).push_back(rank.rank);
    setting_up |= rank.setting_up;
  }
  if (verdict.waiting.empty()) return std::nullopt;  // nobody waits for anybody: a pause of all
  verdict.still_ns = now_ns - still_since_ns_;
  verdict.limit_ns = std::max(setting_up ? patience_.watch_first_ns : patience_.run_still_ns,
                              std::min(patience_.run_pause_times * longest_pause_ns_, patience_.watch_most_ns));
  if (verdict.still_ns < verdict.limit_ns) return std::nullopt;
  return verdict;
}

}  // namespace tacet
