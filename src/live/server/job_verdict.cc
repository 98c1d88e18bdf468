// SPDX-License-Identifier: Apache-2.0
#include "live/server/job_verdict.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/parallel.h"
#include "evidence/load.h"
#include "report/make_report.h"

namespace tacet {
namespace {

std::string Seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) / 1e9);
  return text;
}

std::string Describe(const HangSuspicion& suspicion) {
  std::string out(Name(suspicion.kind));
  out += " #" + std::to_string(suspicion.seq);
  if (!suspicion.group.empty()) out += " on " + suspicion.group;
  return out;
}

TaskState StateOf(ProcessSight sight) {
  switch (sight) {
    case ProcessSight::stopped: return TaskState::stopped;
    case ProcessSight::uninterruptible: return TaskState::uninterruptible;
    case ProcessSight::zombie: return TaskState::zombie;
    case ProcessSight::gone: return TaskState::gone;
    default: return TaskState::unknown;
  }
}

// What the agent saw of the process counts like what a sibling saw; where a rank has its host to itself it is the only
// witness. One look cannot tell a stopped process from one that stops for a moment; a heartbeat that is missing can.
void AddSight(const FetchedBox& box, Fragment& fragment) {
  if (fragment.pulses.empty() || box.seen_wall_ns == 0) return;
  const Pulse& pulse = fragment.pulses.front();
  const TaskState state = StateOf(box.sight);
  const Patience limits;
  const bool missed =
      pulse.interval_ns > 0 && pulse.last_beat_wall_ns != kNoTime &&
      box.seen_wall_ns - pulse.last_beat_wall_ns > std::max(limits.missed_beats * pulse.interval_ns, limits.silence_ns);
  if (state == TaskState::unknown || (!HasEnded(box.sight) && !missed)) return;
  Sight& sight = fragment.sights.emplace_back();
  sight.speaker = pulse.speaker;  // of the same host; its own box stands for the agent that read it
  if (pulse.speaker < fragment.speakers.size()) sight.rank = fragment.speakers[pulse.speaker].rank;
  sight.pid = pulse.pid;
  sight.start_jiffies = pulse.start_jiffies;
  sight.state = state;
  sight.since_wall_ns = sight.seen_wall_ns = box.seen_wall_ns;
  sight.source = pulse.source;
}

// The watch is a watchdog like PyTorch's, and the rules know what such a one means.
Fragment SpeakOfHangs(const std::vector<HangSuspicion>& suspicions) {
  Fragment fragment;
  fragment.path = "hang-watch";
  fragment.format = "hang_watch";
  for (const HangSuspicion& suspicion : suspicions) {
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::watchdog_timeout;
    event.speaker = kNobody;
    event.wall_ns = suspicion.since_wall_ns + suspicion.still_ns;
    event.op = suspicion.kind;
    event.seq = static_cast<int64_t>(suspicion.seq);
    event.comm = suspicion.comm;
    event.group_description = suspicion.group;
    auto& timeout = event.Make<WatchdogTimeout>();
    timeout.timeout_ms = suspicion.limit_ns / 1'000'000;
    timeout.elapsed_ms = suspicion.still_ns / 1'000'000;
    event.text = Describe(suspicion) + ": no progress for " + Seconds(suspicion.still_ns) + "; " +
                 Seconds(suspicion.limit_ns) + " would have been tolerated";
  }
  return fragment;
}

// What the rules leave open is still a hang: the watch has seen that nothing moves.
void StateTheHang(const std::vector<HangSuspicion>& suspicions, Report& report) {
  ReportVerdict& verdict = report.verdict;
  if ((verdict.status != Status::undetermined && verdict.status != Status::healthy) || suspicions.empty()) return;
  const auto longest = std::max_element(suspicions.begin(), suspicions.end(),
                                        [](const auto& a, const auto& b) { return a.still_ns < b.still_ns; });
  verdict.status = Status::hang;
  verdict.confidence = Confidence::likely;
  verdict.headline = Describe(*longest) + " has made no progress for " + Seconds(longest->still_ns) + " on " +
                     std::to_string(longest->waiting) + " ranks; " +
                     (verdict.headline.empty() ? "the cause is not known yet" : verdict.headline);
}

ReportRank DescribeRank(const BoxState& box) {
  ReportRank row;
  row.rank = box.rank;
  row.host = box.host;
  row.pid = box.pid;
  row.role = HasEnded(box.sight) && !box.ended ? "silent" : "ok";
  row.evidence_kinds = {"black_box"};
  if (!box.operations.empty()) {
    const OperationState& op = box.operations.front();
    row.last_operation =
        std::string(Name(op.kind)) + " #" + std::to_string(op.seq) + ": in flight for " + Seconds(op.age_ns);
  }
  row.doing = box.ended ? "ended" : std::string(Name(box.sight));
  return row;
}

std::string HeadlineFor(const std::string& job, const std::vector<JobMember>& members) {
  size_t live = 0, lost = 0;
  for (const JobMember& member : members) {
    live += member.box->IsLive();
    lost += !member.box->ended && HasEnded(member.box->sight);
  }
  const std::string name = "job " + job;
  if (live > 0 && lost > 0)
    return std::to_string(lost) + " of " + std::to_string(members.size()) + " processes of " + name +
           " are gone without a clean exit; no rank waits for them yet";
  if (live > 0)
    return "Nothing hangs: " + std::to_string(live) + (live == 1 ? " process of " : " processes of ") + name +
           (live == 1 ? " is watched" : " are watched");
  if (lost > 0)
    return "All processes of " + name + " are gone, " + std::to_string(lost) + " of them without a clean exit";
  return "All processes of " + name + " have ended";
}

}  // namespace

Report JudgeJob(std::vector<FetchedBox> boxes, const std::vector<HangSuspicion>& suspicions, const std::string& ras) {
  std::vector<Fragment> fragments(boxes.size());
  ParallelFor(boxes.size(), 0, [&](size_t i) {
    fragments[i] = ReadFragment(boxes[i].path, boxes[i].bytes, {});
    AddSight(boxes[i], fragments[i]);
    boxes[i].bytes = {};
  });
  if (!suspicions.empty()) fragments.push_back(SpeakOfHangs(suspicions));
  if (!ras.empty()) fragments.push_back(ReadFragment("ras.txt", ras, {}));
  Report report = MakeReport(std::move(fragments));
  StateTheHang(suspicions, report);
  return report;
}

Report DescribeRunningJob(const std::string& job, const std::vector<JobMember>& members) {
  Report report;
  ReportJob& described = report.jobs.emplace_back();
  described.label = job;
  std::set<int> ranks;
  std::set<std::string> hosts;
  bool live = false, lost = false;
  for (const JobMember& member : members) {
    const BoxState& box = *member.box;
    if (box.rank >= 0) ranks.insert(box.rank);
    hosts.insert(box.host);
    described.world_size = std::max<int64_t>(described.world_size, box.world_size);
    live |= box.IsLive();
    lost |= !box.ended && HasEnded(box.sight);
    report.ranks.push_back(DescribeRank(box));
  }
  std::stable_sort(report.ranks.begin(), report.ranks.end(),
                   [](const ReportRank& a, const ReportRank& b) { return a.rank < b.rank; });
  described.ranks_seen.assign(ranks.begin(), ranks.end());
  described.hosts.assign(hosts.begin(), hosts.end());
  report.verdict.status = lost && !live ? Status::undetermined : Status::healthy;
  report.verdict.confidence = Confidence::likely;
  report.verdict.headline = HeadlineFor(job, members);
  return report;
}

}  // namespace tacet
