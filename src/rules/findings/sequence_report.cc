// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/sequence_report.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/findings/shape_report.h"
#include "rules/words/hang_capture.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

struct SequenceReports {
  const Event* sample = nullptr;
  std::map<Rank, int64_t> numbers;  // where each rank is
  std::vector<Rank> odd;            // in all reports, where there are several
};

SequenceReports ReadSequenceReports(const Incident& incident) {
  SequenceReports out;
  std::map<Rank, int> named;
  int reports = 0;
  for (const Event& event : incident.events) {
    const auto& report = event.As<MismatchReport>();
    if (event.kind != EventKind::mismatch_report || report.aspect != "seq" || event.seq < 0 || report.expected < 0)
      continue;
    if (!out.sample) out.sample = &event;
    ++reports;
    if (event.rank.known()) out.numbers.try_emplace(event.rank, event.seq);
    if (event.peer.known()) out.numbers.try_emplace(event.peer, report.expected);
    for (const Rank rank : {event.rank, event.peer})
      if (rank.known()) ++named[rank];
  }
  for (const auto& [rank, count] : named)
    if (count == reports && named.size() > 2) out.odd.push_back(rank);
  if (out.odd.size() != 1) out.odd.clear();
  return out;
}

std::string CallAt(const Event& sample, int64_t number) {
  return (sample.op == OpKind::unknown ? "collective" : std::string(Name(sample.op))) + " #" + std::to_string(number);
}

// "rank 1 is at barrier #7, rank 2 at barrier #6".
std::string PlacesWords(const SequenceReports& reports) {
  const Event& sample = *reports.sample;
  if (reports.numbers.size() < 2)
    return "one rank is at " + CallAt(sample, sample.seq) + ", another at " +
           CallAt(sample, sample.As<MismatchReport>().expected);
  std::string words;
  size_t shown = 0;
  for (const auto& [rank, number] : reports.numbers) {
    if (shown++ == 4) return words + ", ...";
    words +=
        (words.empty() ? "" : ", ") + RankWords({rank}) + (words.empty() ? " is at " : " at ") + CallAt(sample, number);
  }
  return words;
}

}  // namespace

void JudgeSequenceReports(const Case& facts, bool skipped, std::string_view cause, RuleAnswer& answer) {
  const SequenceReports reports = ReadSequenceReports(facts.incident);
  if (!reports.sample) return;
  const Event& sample = *reports.sample;
  Finding finding;
  finding.cause = cause;
  finding.severity = Severity::critical;
  finding.operation = OperationRef{sample.op, sample.seq, -1};
  finding.status = Status::crash;
  if (reports.odd.empty()) {
    if (!skipped) return;
    finding.operation.reset();  // each is at another one
    finding.confidence = Confidence::possible;
    finding.headline = "ranks are not at the same collective: " + PlacesWords(reports) +
                       "; which of them left one out, or added one, is unknown; " + std::string(kStoppedByCheck);
    for (const auto& [rank, number] : reports.numbers) finding.affected_ranks.push_back(rank);
  } else {
    const Rank odd = reports.odd.front();
    const int64_t own = reports.numbers.at(odd);
    int64_t peers = own;
    for (const auto& [rank, number] : reports.numbers) {
      if (rank == odd) continue;
      peers = number;
      finding.affected_ranks.push_back(rank);
    }
    if (own == peers || (own < peers) != skipped) return;
    finding.confidence = Confidence::likely;
    finding.ranks = reports.odd;
    finding.headline = RankWords(reports.odd) + (skipped ? " left out a collective" : " issued a collective too many") +
                       ": it is at " + CallAt(sample, own) + ", its peers at #" + std::to_string(peers) + "; " +
                       std::string(kStoppedByCheck);
  }
  finding.evidence.push_back(CiteEvent(sample, "PyTorch compared the sequence numbers of the ranks' calls"));
  finding.evidence.back().excerpt.clear();  // the headline tells the numbers
  finding.fix = {
      "Find the collective that only some ranks call: a branch on the rank, a loader that ends earlier, a retry, "
      "a callback. Flight records with stacks (" +
          std::string(kRecorderSetting) + ") list the calls of every rank.",
      "Decide such branches on values that are equal on all ranks (broadcast the condition first)."};
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
