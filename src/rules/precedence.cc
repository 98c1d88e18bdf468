// SPDX-License-Identifier: Apache-2.0
#include "rules/precedence.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace tacet {
namespace {

using Ids = std::vector<std::string_view>;

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What a job looks like that stands still, whoever holds it up.
const Ids kStandstills = {"rank-stuck-on-host", "gpu-stalled", "rank-frozen", "transport-stalled", "timeout-too-short"};
// What ranks issued differs. A rank that is gone or never came issued less, too.
const Ids kOrders = {"collective-skipped",
                     "collective-extra",
                     "collective-mismatch-operation",
                     "collective-mismatch-size",
                     "collective-mismatch-dtype",
                     "collective-mismatch-reduction",
                     "collective-mismatch-root",
                     "group-order-inversion",
                     "p2p-cycle",
                     "p2p-unmatched"};
// How processes end once something else went wrong.
const Ids kEnds = {"rank-dead", "application-exception", "network-fault"};
// What slows a job that goes on: no answer where it stands still or ended.
const Ids kPace = {"straggler-compute", "straggler-host", "straggler-intermittent", "straggler-stage", "straggler-data",
                   "steps-slow-down", "data-loading-slow", "low-utilization", "transport-fallback",
                   "environment-cripples", "port-not-active", "link-errors",
                   // How ranks are connected.
                   "ring-broken", "graph-search-failed", "nic-count-unequal", "node-lowers-graph",
                   "nic-path-through-cpu", "ring-reenters-node", "nic-unbalanced", "rails-crossed", "pxn-off",
                   "nvls-not-connected", "channels-limited", "rank-order-scattered", "rank-unlike-others", "ll128-lost",
                   // What benchmarks measure.
                   "slow-link", "bandwidth-below-model", "algorithm-misfit"};
const Ids kSetUps = {"init-rank-missing", "init-no-interface", "init-unreachable", "init-mismatch"};

const std::vector<Explanation>& Table() {
  static const std::vector<Explanation> kTable = {
      // The host or the scheduler took something away from a process; all that follows is its end and the others' wait.
      {"killed-by-scheduler", kEnds + kStandstills + kOrders + kSetUps + kPace + Ids{"rank-out-of-memory"}, true},
      {"rank-out-of-memory", kEnds + kStandstills + kOrders + kPace},
      {"shared-memory-full", Ids{"rank-out-of-memory"} + kEnds + kStandstills + kOrders + kSetUps + kPace},
      {"disk-full", kEnds + kStandstills + kOrders + kPace},
      {"port-in-use", Ids{"init-unreachable", "init-rank-missing"} + kEnds + kStandstills},
      {"gpu-fault", Ids{"pcie-fault"} + kEnds + kStandstills + kOrders + kPace},
      {"pcie-fault", kEnds + kStandstills + kPace},
      // A server that does not answer makes its users wait; that they are ended for it is seen as well.
      {"storage-unreachable", kStandstills + kOrders + kPace},
      {"storage-unreachable", kEnds, true},
      {"node-unavailable", Ids{"resources-pending"} + kEnds + kStandstills + kSetUps + kPace},
      {"resources-pending", kEnds + kStandstills + kSetUps + kPace},
      // A path that is set up wrongly.
      {"fabric-manager-down", Ids{"gpu-fault", "p2p-broken"} + kEnds + kStandstills + kSetUps + kPace},
      {"p2p-broken", Ids{"gpu-fault"} + kEnds + kStandstills + kPace},
      {"rdma-broken", Ids{"network-fault", "gpu-fault"} + kEnds + kStandstills + kSetUps + kPace},
      // Hosts name their interfaces differently; that alone breaks nothing.
      {"wrong-interface", Ids{"init-unreachable", "init-rank-missing", "init-no-interface", "environment-differs"} +
                              kEnds + kStandstills + kPace},
      {"environment-differs",
       kOrders + Ids{"init-mismatch", "init-unreachable", "init-rank-missing"} + kEnds + kStandstills + kPace},
      {"foreign-connection", kSetUps + kEnds + kStandstills},
      {"model-differs", kOrders + kEnds + kStandstills + kPace},
      {"communicator-shared-by-threads", kOrders + kEnds + kStandstills + kPace},
      // Communication was never set up.
      {"init-mismatch", Ids{"init-rank-missing", "init-unreachable"} + kEnds + kStandstills + kPace},
      {"init-no-interface", Ids{"init-rank-missing", "init-unreachable"} + kEnds + kStandstills + kPace},
      {"init-rank-missing", Ids{"init-unreachable"} + kEnds + kStandstills + kPace},
      {"init-unreachable", kEnds + kStandstills + kPace},
      // The program itself.
      {"training-not-finite", kEnds + kStandstills},
      {"ddp-unused-parameters", kOrders + kEnds + kStandstills + kPace},
      {"group-order-inversion", Ids{"collective-skipped", "collective-extra", "collective-mismatch-operation",
                                    "collective-mismatch-size", "p2p-unmatched"} +
                                    kEnds + kStandstills + kPace},
      {"p2p-cycle", Ids{"p2p-unmatched"} + kEnds + kStandstills + kPace},
      {"collective-skipped", Ids{"p2p-unmatched", "collective-mismatch-operation", "collective-mismatch-size"} + kEnds +
                                 kStandstills + kPace},
      {"collective-extra", Ids{"p2p-unmatched", "collective-mismatch-operation", "collective-mismatch-size"} + kEnds +
                               kStandstills + kPace},
      {"collective-mismatch-operation", Ids{"gpu-fault"}, true},
      {"collective-mismatch-size", Ids{"gpu-fault"}, true},
      {"collective-mismatch-dtype", Ids{"gpu-fault"}, true},
      // Calls of two kinds pass messages of two lengths.
      {"collective-mismatch-operation",
       Ids{"p2p-unmatched", "collective-mismatch-size"} + kEnds + kStandstills + kPace},
      {"collective-mismatch-size", Ids{"p2p-unmatched"} + kEnds + kStandstills + kPace},
      // What is read as another type than it was sent is no number any more.
      {"collective-mismatch-dtype", Ids{"p2p-unmatched", "training-not-finite"} + kEnds + kStandstills + kPace},
      {"collective-mismatch-reduction", Ids{"p2p-unmatched", "training-not-finite"} + kEnds + kStandstills + kPace},
      {"collective-mismatch-root", Ids{"p2p-unmatched"} + kEnds + kStandstills + kPace},
      {"p2p-unmatched", kEnds + kStandstills + kPace},
      {"rank-dead", Ids{"application-exception", "network-fault"} + kStandstills + kPace},
      {"application-exception", Ids{"network-fault"} + kStandstills + kPace},
      // A rank that ended by an error of its own refuses connections; its peers only notice.
      {"application-exception", Ids{"init-unreachable"}, true, true},
      // A rank that failed before it joined is missing for that reason.
      {"application-exception", Ids{"init-rank-missing"}, false, false, true},
      {"network-fault", kStandstills + kPace},
      // Who stands still explains why data does not flow.
      // Whoever comes late and does come explains why it was waited for.
      {"timeout-too-short", Ids{"rank-stuck-on-host", "gpu-stalled", "rank-frozen", "transport-stalled"} + kPace},
      {"rank-stuck-on-host", Ids{"transport-stalled"} + kPace},
      {"gpu-stalled", Ids{"transport-stalled"} + kPace},
      {"rank-frozen", Ids{"transport-stalled"} + kPace},
      {"transport-stalled", kPace},
      // Why it is slow.
      {"environment-cripples", {"transport-fallback", "channels-limited", "bandwidth-below-model", "algorithm-misfit"}},
      {"transport-fallback", {"bandwidth-below-model"}},
      {"port-not-active", {"transport-fallback", "nic-count-unequal", "bandwidth-below-model"}},
      {"slow-link", {"bandwidth-below-model", "low-utilization"}},
      {"data-loading-slow", {"low-utilization", "steps-slow-down"}},
      {"straggler-compute", {"steps-slow-down"}},
  };
  return kTable;
}

constexpr IndependentPair kIndependent[] = {
    // A rank that leaves out the step in which its loss is NaN does both.
    {"collective-skipped", "training-not-finite"},
    {"collective-mismatch-size", "training-not-finite"},
    // A node that is gone, and the pods that were evicted from it: beside other nodes that are down it is no reason.
    {"killed-by-scheduler", "node-unavailable"},
    {"gpu-stalled", "rank-stuck-on-host"},
    {"rank-frozen", "rank-stuck-on-host"},
    {"straggler-compute", "straggler-host"},
    {"environment-cripples", "straggler-host"},
    {"environment-cripples", "straggler-compute"},
    {"environment-cripples", "straggler-intermittent"},
    {"transport-fallback", "straggler-host"},
    {"transport-fallback", "straggler-compute"},
};

// Told by the kernel or by another machine, and by no process of the job.
constexpr std::string_view kBeside[] = {"gpu-fault", "pcie-fault", "storage-unreachable"};

bool AreNamedIn(const std::vector<Rank>& few, const std::vector<Rank>& all) {
  return !few.empty() && std::all_of(few.begin(), few.end(),
                                     [&](Rank rank) { return std::find(all.begin(), all.end(), rank) != all.end(); });
}

// Those it is about: where most ranks raise the same error, none of them is named for it.
std::vector<Rank> RanksOf(const Finding& finding) {
  std::vector<Rank> ranks = finding.ranks;
  for (const Subject& subject : finding.subjects)
    if (finding.ranks.empty() && subject.rank.known()) ranks.push_back(subject.rank);
  return ranks;
}

bool Holds(const Explanation& line, const Finding& a, const Finding& b) {
  if (line.cause != a.cause) return false;
  if (std::find(line.explains.begin(), line.explains.end(), b.cause) == line.explains.end()) return false;
  // A setting that ends the job is no matter of its pace.
  if (b.severity == Severity::critical && std::find(kPace.begin(), kPace.end(), b.cause) != kPace.end()) return false;
  // What a device beside the job may have done to it explains no error that a rank is certain to have made.
  const bool beside = std::find(std::begin(kBeside), std::end(kBeside), a.cause) != std::end(kBeside);
  if (beside && a.confidence == Confidence::possible && a.ranks.empty() && b.confidence == Confidence::certain &&
      !b.ranks.empty() && b.severity == Severity::critical && !line.only_weaker)
    return false;
  if (line.only_milder && a.severity >= b.severity) return false;
  if (line.same_ranks && !AreNamedIn(b.ranks, RanksOf(a))) return false;
  // The other way round: whoever never joined did not fail for want of itself.
  const bool back = std::any_of(Table().begin(), Table().end(), [&](const Explanation& other) {
    return other.same_ranks && other.cause == b.cause &&
           std::find(other.explains.begin(), other.explains.end(), a.cause) != other.explains.end();
  });
  if (back && AreNamedIn(a.ranks, RanksOf(b))) return false;
  return !line.only_weaker || a.confidence < b.confidence;  // certain < likely < possible
}

// The finding that explains `b`: the surest of those that the table names.
const Finding* ExplainerOf(const std::vector<Finding>& findings, const Finding& b) {
  const Finding* best = nullptr;
  for (const Finding& a : findings) {
    if (&a == &b || a.severity > b.severity || a.cause == b.cause) continue;
    const bool holds = std::any_of(Table().begin(), Table().end(), [&](const auto& line) { return Holds(line, a, b); });
    if (holds && (!best || a.confidence < best->confidence)) best = &a;
  }
  return best;
}

}  // namespace

std::span<const Explanation> ExplanationTable() { return Table(); }
std::span<const IndependentPair> IndependentPairs() { return kIndependent; }

bool Explains(std::string_view cause, std::string_view other) {
  std::set<std::string_view> seen;
  std::vector<std::string_view> open = {cause};
  while (!open.empty()) {
    const std::string_view at = open.back();
    open.pop_back();
    for (const Explanation& line : Table()) {
      if (line.cause != at || line.only_weaker || line.same_ranks) continue;
      for (const std::string_view next : line.explains) {
        if (next == other) return true;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
  }
  return false;
}

bool AreIndependent(std::string_view a, std::string_view b) {
  return std::any_of(std::begin(kIndependent), std::end(kIndependent), [&](const IndependentPair& pair) {
    return (pair.a == a && pair.b == b) || (pair.a == b && pair.b == a);
  });
}

void OrderByPrecedence(std::vector<Finding>& findings) {
  std::vector<std::string> explained(findings.size());
  for (size_t i = 0; i < findings.size(); ++i)
    if (const Finding* by = ExplainerOf(findings, findings[i])) explained[i] = by->cause;
  for (size_t i = 0; i < findings.size(); ++i) findings[i].explained_by = std::move(explained[i]);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.severity, !a.explained_by.empty(), a.confidence) <
           std::tuple(b.severity, !b.explained_by.empty(), b.confidence);
  });
}

}  // namespace tacet
