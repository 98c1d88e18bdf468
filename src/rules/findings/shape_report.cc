// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/shape_report.h"

#include <algorithm>
#include <map>

#include "rules/words/activity_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kFewestForAMajority = 3;

struct ShapeSide {
  std::string shape;
  std::vector<Rank> ranks;
};

// Each report tells two ranks and their shapes, or their operations. The largest side first.
std::vector<ShapeSide> ReportedSides(const Incident& incident, const Event& sample, std::string_view aspect) {
  std::map<Rank, std::string> shapes;
  for (const Event& event : incident.events) {
    const auto& report = event.As<MismatchReport>();
    if (event.kind != EventKind::mismatch_report || report.aspect != aspect || event.ranks.size() != 2 ||
        event.seq != sample.seq)
      continue;
    if (!report.tensor.empty()) shapes.emplace(event.ranks[0], report.tensor);
    if (!report.other_tensor.empty()) shapes.emplace(event.ranks[1], report.other_tensor);
  }
  std::map<std::string, std::vector<Rank>> by_shape;
  for (const auto& [rank, shape] : shapes) by_shape[shape].push_back(rank);
  std::vector<ShapeSide> sides;
  for (auto& [shape, ranks] : by_shape) sides.push_back({shape, std::move(ranks)});
  std::stable_sort(sides.begin(), sides.end(), [](const ShapeSide& a, const ShapeSide& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks.front() < b.ranks.front();
  });
  return sides;
}

// Where these ranks raised the error of the check, by the innermost frames of the program's own code; empty where it is
// not the same place for all of them.
std::string PlaceOfErrors(const Case& facts, const std::vector<Rank>& ranks) {
  std::string common;
  for (const Rank rank : ranks) {
    std::string place;
    for (const Event& event : facts.incident.events)
      if (event.kind == EventKind::exception && event.rank == rank && event.Means(Meaning::calls_differ) &&
          place.empty())
        place = RaisedPlaceWords(event);
    if (place.empty() || (!common.empty() && place != common)) return "";
    common = place;
  }
  return common;
}

// The two calls have different numbers: they do not stand at the same place, and one rank may be at another step of the
// program altogether.
void TellTwoPlaces(const Case& facts, const Event& sample, Finding& finding) {
  const auto& report = sample.As<MismatchReport>();
  const auto call = [&](size_t side, const std::string& name, int64_t seq) {
    const std::string place = PlaceOfErrors(facts, {sample.ranks[side]});
    return RankWords({sample.ranks[side]}) + " was at " + std::string(Name(ParseOpKind(name))) + " #" +
           std::to_string(seq) + (place.empty() ? "" : " in " + place);
  };
  finding.status = Status::crash;
  finding.confidence = Confidence::likely;
  finding.operation.reset();  // each is at another one
  finding.headline = call(0, report.tensor, sample.seq) + ", " + call(1, report.other_tensor, report.expected) +
                     ": they are not at the same call; " + std::string(kStoppedByCheck);
}

// Of two ranks neither is the odd one, but what each of them called is known.
void TellTwoOperations(const Case& facts, const Event& sample, const std::vector<ShapeSide>& sides, Finding& finding) {
  const auto called = [&](const ShapeSide& side) {
    const std::string place = PlaceOfErrors(facts, side.ranks);
    return RankWords(side.ranks) + " called " + std::string(Name(ParseOpKind(side.shape))) +
           (place.empty() ? "" : " in " + place);
  };
  if (ParseOpKind(sides[0].shape) == OpKind::unknown || ParseOpKind(sides[1].shape) == OpKind::unknown) return;
  if (sample.As<MismatchReport>().expected >= 0 && sample.ranks.size() == 2)
    return TellTwoPlaces(facts, sample, finding);
  finding.status = Status::crash;
  finding.confidence = Confidence::certain;
  finding.headline = called(sides[0]) + " where " + called(sides[1]) +
                     (sample.seq >= 0 ? " (#" + std::to_string(sample.seq) + ")" : "") + "; " +
                     std::string(kStoppedByCheck);
}

}  // namespace

std::vector<std::string> UnequalSizeSteps(std::string look) {
  return {
      std::move(look) +
          " Does the size depend on the batch? The last batch of an epoch is smaller on some ranks "
          "(drop_last=True), and samples of different lengths give different sizes (pad them to one length).",
      "Where sizes must differ: gather them first, pad to the largest, and cut the result; all_to_all takes splits.",
      "Give all ranks the same number of samples (DistributedSampler), or wrap the loop in model.join(), which "
      "serves ranks whose inputs end early."};
}

void TellReportedOperations(const Case& facts, const Event& sample, Finding& finding) {
  const std::vector<ShapeSide> sides = ReportedSides(facts.incident, sample, "op");
  if (sides.size() != 2) return;
  if (finding.ranks.empty() && sides[0].ranks.size() == 1 && sides[1].ranks.size() == 1)
    return TellTwoOperations(facts, sample, sides, finding);
  if (sample.seq < 0 || finding.ranks != sides[1].ranks) return;
  const OpKind odd = ParseOpKind(sides[1].shape), usual = ParseOpKind(sides[0].shape);
  if (odd == OpKind::unknown || usual == OpKind::unknown) return;
  finding.operation = OperationRef{odd, sample.seq, -1};
  const std::string place = PlaceOfErrors(facts, sides[1].ranks), usual_place = PlaceOfErrors(facts, sides[0].ranks);
  finding.headline = RankWords(finding.ranks) + " called " + std::string(Name(odd)) + " at #" +
                     std::to_string(sample.seq) + (place.empty() ? "" : " in " + place) + ", where " +
                     RankWords(sides[0].ranks) + " called " + std::string(Name(usual)) +
                     (usual_place.empty() ? "" : " in " + usual_place) + "; " + std::string(kStoppedByCheck);
  if (!place.empty())
    finding.fix = {
        "Look at " + place + ": let all ranks of the group call " + std::string(Name(odd)) + " there, or none.",
        "Decide such branches on values that are equal on all ranks (broadcast the condition first)."};
}

void TellReportedShapes(const Case& facts, const Event& sample, Finding& finding) {
  finding.fix = UnequalSizeSteps("Look at the call in the tracebacks.");
  const std::vector<ShapeSide> sides = ReportedSides(facts.incident, sample, "shape");
  if (sides.size() < 2) return;
  size_t told = 0;
  for (const ShapeSide& side : sides) told += side.ranks.size();
  const std::string call = (sample.op == OpKind::unknown ? std::string("a collective") : std::string(Name(sample.op))) +
                           (sample.seq >= 0 ? " #" + std::to_string(sample.seq) : "");
  const std::string check = "; " + std::string(kStoppedByCheck);
  if (told < kFewestForAMajority || sides[0].ranks.size() * 2 <= told) {
    finding.headline = "ranks pass different shapes to " + call + ": ";
    for (size_t i = 0; i < std::min<size_t>(sides.size(), 4); ++i) {
      if (i > 0) finding.headline += ", ";
      finding.headline += sides[i].shape;
      finding.headline += " on ";
      finding.headline += RankWords(sides[i].ranks);
    }
    finding.headline += check;
    for (const ShapeSide& side : sides)
      finding.affected_ranks.insert(finding.affected_ranks.end(), side.ranks.begin(), side.ranks.end());
    std::sort(finding.affected_ranks.begin(), finding.affected_ranks.end());
    return;
  }
  finding.ranks.clear();
  for (size_t i = 1; i < sides.size(); ++i)
    finding.ranks.insert(finding.ranks.end(), sides[i].ranks.begin(), sides[i].ranks.end());
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.affected_ranks = sides[0].ranks;
  finding.status = Status::crash;
  finding.confidence = Confidence::certain;
  finding.headline = RankWords(finding.ranks) + " passed " +
                     (sides.size() > 2 ? "other shapes" : "a tensor of shape " + sides[1].shape) + " to " + call +
                     ", where " + RankWords(sides[0].ranks) + " passed shape " + sides[0].shape + check;
}

}  // namespace tacet
