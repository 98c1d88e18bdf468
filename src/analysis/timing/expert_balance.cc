// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/expert_balance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

struct MemberSum {
  double sent = 0, received = 0, kernel = 0, wait = 0;
};

struct GroupSum {
  int32_t size = 0;
  size_t calls = 0;
  std::set<int64_t> steps;
  std::map<Rank, MemberSum> members;
  double transfer = 0;
  struct Balance {
    bool known = true;
    double most = 0, mean = 0;  // of a call, summed over calls
  };
  Balance sent, received;
};

// Elements that a member sent or received, in bytes; negative where the trace does not tell.
double SizeInBytes(const TraceCollective& operation, int64_t elements) {
  const int64_t size = BytesOf(operation.type);
  return elements < 0 || size == 0 ? -1 : static_cast<double>(elements) * static_cast<double>(size);
}

void AddCall(const std::vector<double>& bytes, GroupSum::Balance& sum) {
  sum.known &= std::all_of(bytes.begin(), bytes.end(), [](double one) { return one >= 0; });
  if (bytes.empty() || !sum.known) return;
  sum.most += *std::max_element(bytes.begin(), bytes.end());
  sum.mean += Mean(bytes);
}

void AddRound(const CollectiveRound& round, std::span<const Timeline> timelines, GroupSum& sum) {
  const RoundTiming timing = TimeRound(round);
  if (timing.transfer_ns < 0) return;
  sum.size = round.group_size;
  ++sum.calls;
  sum.steps.insert(round.step);
  sum.transfer += static_cast<double>(timing.transfer_ns);
  int64_t last = INT64_MIN;
  for (const RoundMember& m : round.members) last = std::max(last, m.start_ns);
  std::vector<double> sent, received;
  for (const RoundMember& m : round.members) {
    MemberSum& member = sum.members[m.rank];
    member.kernel += static_cast<double>(std::max<int64_t>(0, m.duration_ns));
    if (m.start_ns != kNoTime) member.wait += static_cast<double>(last - m.start_ns);
    const TraceCollective& operation = timelines[m.timeline].collectives[m.collective];
    const double in = SizeInBytes(operation, operation.in_elements),
                 out = SizeInBytes(operation, operation.out_elements);
    member.sent += std::max(0.0, in);
    member.received += std::max(0.0, out);
    sent.push_back(round.coalesced ? -1 : in);
    received.push_back(round.coalesced ? -1 : out);
  }
  AddCall(sent, sum.sent);
  AddCall(received, sum.received);
}

double StepLength(std::span<const Timeline> timelines) {
  std::vector<double> lengths;
  for (const Timeline& timeline : timelines)
    for (const TrainingStep& step : timeline.steps) lengths.push_back(static_cast<double>(step.end_ns - step.start_ns));
  return Median(std::move(lengths));
}

void FillMembers(const GroupSum& sum, ExpertReport& report) {
  const auto steps = static_cast<double>(sum.steps.size());
  double most = 0, all = 0;
  for (const auto& [rank, member] : sum.members) {
    ExpertMember& out = report.members.emplace_back();
    out.rank = rank;
    out.kernel_ns = std::llround(member.kernel / steps);
    out.wait_ns = std::llround(member.wait / steps);
    if (sum.sent.known) out.sent_bytes = std::llround(member.sent / steps);
    if (sum.received.known) out.received_bytes = std::llround(member.received / steps);
    const double bytes = sum.received.known ? member.received : sum.sent.known ? member.sent : 0;
    all += bytes;
    if (bytes <= most) continue;
    most = bytes;
    report.busiest = rank;
  }
  if (all > 0) report.lasting_imbalance = most * static_cast<double>(sum.members.size()) / all;
}

}  // namespace

ExpertReport AnalyseExperts(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines) {
  std::map<GroupIndex, GroupSum> groups;
  for (const CollectiveRound& round : rounds) {
    const bool traced =
        std::all_of(round.members.begin(), round.members.end(), [](const auto& m) { return m.timeline != kNoIndex; });
    if (round.kind == OpKind::all_to_all && round.step >= 0 && traced) AddRound(round, timelines, groups[round.group]);
  }
  const auto chosen = std::max_element(
      groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.second.transfer < b.second.transfer; });
  ExpertReport report;
  if (chosen == groups.end() || chosen->second.calls == 0) return report;
  const GroupSum& sum = chosen->second;
  const auto steps = static_cast<double>(sum.steps.size());
  report.found = true;
  report.group = chosen->first;
  report.ranks = sum.size;
  report.calls = static_cast<double>(sum.calls) / steps;
  report.sized = sum.sent.known || sum.received.known;
  report.transfer_ns = std::llround(sum.transfer / steps);
  FillMembers(sum, report);
  const GroupSum::Balance& balance = sum.received.known ? sum.received : sum.sent;
  if (balance.known && balance.mean > 0) report.imbalance = balance.most / balance.mean;
  const double step = StepLength(timelines);
  if (step <= 0) return report;
  report.transfer_share = sum.transfer / steps / step;
  report.balance_gain = report.transfer_share * (1 - 1 / report.imbalance);
  return report;
}

}  // namespace tacet
