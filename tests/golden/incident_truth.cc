// SPDX-License-Identifier: Apache-2.0
#include "incident_truth.h"

#include <algorithm>
#include <stdexcept>

#include "base/json_reader.h"

namespace tacet {
namespace {

const JsonValue& Member(const JsonValue& object, std::string_view key) {
  const JsonValue* found = object.Find(key);
  if (!found) throw std::runtime_error("truth.json: no '" + std::string(key) + "'");
  return *found;
}

std::set<std::string> Texts(const JsonValue& array) {
  std::set<std::string> texts;
  for (const JsonValue& item : array.items) texts.emplace(item.Text());
  return texts;
}

template <typename Range>
std::string List(const Range& items, std::string_view separator = ",") {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    if constexpr (std::is_integral_v<std::decay_t<decltype(item)>>) {
      out += std::to_string(item);
    } else {
      out += item;
    }
  }
  return out;
}

std::set<int> BlamedRanks(const Report& report) { return {report.verdict.ranks.begin(), report.verdict.ranks.end()}; }

bool Meet(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int rank) { return b.contains(rank); });
}

bool RanksAreRight(const IncidentTruth& truth, const Report& report) {
  const std::set<int> blamed = BlamedRanks(report);
  if (truth.some_ranks_suffice) return Meet(blamed, truth.ranks) && InnocentRanks(truth, report).empty();
  return blamed == truth.ranks;
}

std::string JudgeHealthy(const IncidentTruth& truth, const Report& report) {
  if (!truth.IsHealthy()) return "";
  if (!report.verdict.cause.empty()) return "healthy, yet it reports " + report.verdict.cause;
  for (const ReportFinding& finding : report.findings)
    if (finding.severity != Severity::note) return "healthy, yet it reports " + finding.cause;
  return "";
}

}  // namespace

std::vector<IncidentTruth> ParseTruth(std::string_view json) {
  JsonValue document;
  bool truncated = false;
  if (!ParseJson(json, &document, &truncated) || truncated || !document.is_object())
    throw std::runtime_error("truth.json is no JSON object");
  std::vector<IncidentTruth> truths;
  for (const JsonMember& member : document.members) {
    IncidentTruth truth{.name = member.name};
    truth.statuses = Texts(Member(member.value, "status"));
    truth.causes = Texts(Member(member.value, "causes"));
    for (const JsonValue& rank : Member(member.value, "ranks").items) truth.ranks.insert(static_cast<int>(rank.Int()));
    truth.some_ranks_suffice = Member(member.value, "ranks_any").boolean;
    if (const JsonValue& seq = Member(member.value, "seq"); seq.kind == JsonValue::Kind::number) truth.seq = seq.Int();
    truths.push_back(std::move(truth));
  }
  std::sort(truths.begin(), truths.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return truths;
}

std::set<int> InnocentRanks(const IncidentTruth& truth, const Report& report) {
  std::set<int> innocent = BlamedRanks(report);
  for (const int rank : truth.ranks) innocent.erase(rank);
  return innocent;
}

std::vector<std::string> Judge(const IncidentTruth& truth, const Report& report) {
  std::vector<std::string> wrong;
  const std::string status(Name(report.verdict.status));
  if (!truth.statuses.contains(status)) wrong.push_back("status " + status + ", expected " + List(truth.statuses, "/"));
  if (status == "healthy" && truth.statuses.contains("healthy")) {
    if (const std::string loud = JudgeHealthy(truth, report); !loud.empty()) wrong.push_back(loud);
    return wrong;
  }
  if (!truth.causes.contains(report.verdict.cause) && !(truth.causes.empty() && report.verdict.cause.empty()))
    wrong.push_back("cause '" + report.verdict.cause + "', expected " + List(truth.causes, "/"));
  if (!RanksAreRight(truth, report))
    wrong.push_back("ranks [" + List(report.verdict.ranks) + "], expected " +
                    (truth.some_ranks_suffice ? "some of [" : "[") + List(truth.ranks) + "]");
  if (truth.seq && wrong.empty()) {
    const auto& operation = report.findings.at(0).operation;
    const int64_t seq = operation ? operation->seq : -1;
    if (seq != *truth.seq)
      wrong.push_back("operation #" + std::to_string(seq) + ", expected #" + std::to_string(*truth.seq));
  }
  return wrong;
}

ReducedAnswer JudgeReduced(const IncidentTruth& truth, const Report& report) {
  const ReportVerdict& verdict = report.verdict;
  const std::string status(Name(verdict.status));
  const std::string blamed = verdict.ranks.empty() ? "" : "[" + List(verdict.ranks) + "]";
  const std::string answer = status + (verdict.cause.empty() ? "" : " " + verdict.cause) + blamed;
  if (!InnocentRanks(truth, report).empty()) return {false, "INNOCENT " + answer};
  if (verdict.status == Status::undetermined)
    return {true, truth.statuses.contains("undetermined") ? "ok" : "undetermined" + blamed};
  if (verdict.status == Status::healthy) {
    if (!truth.statuses.contains("healthy") && !truth.IsSlow()) return {false, "WRONG " + answer};
    if (const std::string loud = JudgeHealthy(truth, report); !loud.empty()) return {false, "LOUD " + loud};
    return {true, truth.statuses.contains("healthy") ? "ok" : "(healthy)"};
  }
  // Right as far as it goes: what happens and to whom, but not why. A job that stands still is ended in the end, and one
  // whose process fails stands still until it is: what is left may show either.
  const auto stops = [](std::string_view name) { return name == "hang" || name == "crash"; };
  const bool stopped =
      stops(status) && std::any_of(truth.statuses.begin(), truth.statuses.end(), stops);
  if (verdict.cause.empty() && truth.causes.empty() && truth.statuses.contains(status) && RanksAreRight(truth, report))
    return {true, "ok"};
  if (verdict.cause.empty() && (stopped || truth.statuses.contains(status))) return {true, status + blamed};
  // Right as far as it goes: what happens and why, but not to whom. A call too few or too many is seen as a call of
  // another kind or size until more calls tell.
  const bool miscounted = truth.causes.contains("collective-skipped") || truth.causes.contains("collective-extra");
  const bool mismatched =
      verdict.cause == "collective-mismatch-size" || verdict.cause == "collective-mismatch-operation";
  // A process that an error or the kernel ended is gone, which is all that its peers can say.
  const std::set<std::string> ends = {"application-exception", "rank-out-of-memory", "gpu-fault"};
  const bool gone = verdict.cause == "rank-dead" &&
                    std::any_of(truth.causes.begin(), truth.causes.end(), [&](auto& one) { return ends.contains(one); });
  const bool cause_holds = truth.causes.contains(verdict.cause) || (miscounted && mismatched) || gone;
  if (verdict.ranks.empty() && (stopped || truth.statuses.contains(status)) && cause_holds)
    return {true, RanksAreRight(truth, report) ? "ok" : "nobody named"};
  // The number of the operation is left out of it: without flight records it is NCCL's count, which may differ.
  const bool right =
      truth.statuses.contains(status) && truth.causes.contains(verdict.cause) && RanksAreRight(truth, report);
  return {right, right ? "ok" : "WRONG " + answer};
}

}  // namespace tacet
