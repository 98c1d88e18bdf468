// SPDX-License-Identifier: Apache-2.0
#include "wild_incident.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/json_reader.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;

std::string ReadTruthFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<int> RankSet(const JsonValue* array) {
  std::set<int> ranks;
  if (array)
    for (const JsonValue& rank : array->items) ranks.insert(static_cast<int>(rank.Int()));
  return ranks;
}

std::set<std::string> TextSet(const JsonValue* array, const std::string& name) {
  std::set<std::string> texts;
  if (!array || array->items.empty()) throw std::runtime_error("truth.json: " + name + " has no status or causes");
  for (const JsonValue& item : array->items)
    texts.emplace(item.kind == JsonValue::Kind::null ? std::string_view() : item.Text());
  return texts;
}

WildIncident ReadIncident(const fs::path& folder, const std::string& name, const JsonValue& truth) {
  WildIncident incident{.name = name, .path = folder / (name + ".txt")};
  if (!fs::exists(incident.path)) incident.path = folder / name;
  if (!fs::exists(incident.path)) throw std::runtime_error("truth.json tells of " + name + ", which is not there");
  incident.statuses = TextSet(truth.Find("status"), name);
  incident.causes = TextSet(truth.Find("causes"), name);
  incident.guilty = RankSet(truth.Find("guilty"));
  incident.may = RankSet(truth.Find("may"));
  const JsonValue* innocent = truth.Find("innocent");
  incident.all_innocent = innocent && innocent->kind == JsonValue::Kind::string && innocent->Text() == "all";
  if (!incident.all_innocent) incident.innocent = RankSet(innocent);
  return incident;
}

// What the reader can do next: a fix, or what to capture.
bool HasNextStep(const Report& report) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const ReportFinding& finding) { return !finding.fix.empty(); }) ||
         std::any_of(report.cannot_tell.begin(), report.cannot_tell.end(),
                     [](const CannotTell& open) { return !open.missing.empty(); });
}

bool FindsARightCause(const WildIncident& incident, const Report& report) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const ReportFinding& finding) {
    return finding.severity != Severity::note && incident.causes.contains(finding.cause);
  });
}

WildReading Weigh(const WildIncident& incident, const Report& report) {
  const ReportVerdict& verdict = report.verdict;
  const std::string status(Name(verdict.status));
  for (const int rank : verdict.ranks)
    if (IsInnocent(incident, rank)) return WildReading::wrong;
  if (!verdict.cause.empty() && !incident.causes.contains(verdict.cause)) return WildReading::wrong;
  if (!incident.statuses.contains(status)) {
    if (verdict.status != Status::undetermined) return WildReading::wrong;
    return FindsARightCause(incident, report) ? WildReading::in_part : WildReading::silent;
  }
  if (!incident.causes.contains(verdict.cause)) return WildReading::in_part;
  const bool must_help = !incident.HappenedNothing() && verdict.status != Status::healthy;
  return must_help && !HasNextStep(report) ? WildReading::silent : WildReading::right;
}

std::string Cells(const std::string& name, const WildRow& row) {
  std::string line = "| " + name + " | " + std::to_string(row.Total());
  for (const size_t count : row.readings) line += " | " + std::to_string(count);
  return line + " | " + std::to_string(row.guilty_named) + " of " + std::to_string(row.guilty_known) + " |\n";
}

}  // namespace

bool IsInnocent(const WildIncident& incident, int rank) {
  if (incident.guilty.contains(rank) || incident.may.contains(rank)) return false;
  return incident.all_innocent || incident.innocent.contains(rank) || !incident.guilty.empty() || !incident.may.empty();
}

std::vector<WildIncident> AllWildIncidents(const fs::path& folder) {
  JsonValue document;
  bool truncated = false;
  if (!ParseJson(ReadTruthFile(folder / "truth.json"), &document, &truncated) || truncated || !document.is_object())
    throw std::runtime_error("truth.json is no JSON object");
  std::vector<WildIncident> incidents;
  for (const JsonMember& member : document.members)
    incidents.push_back(ReadIncident(folder, member.name, member.value));
  std::sort(incidents.begin(), incidents.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return incidents;
}

WildAnswer JudgeWild(const WildIncident& incident, const Report& report) {
  const ReportVerdict& verdict = report.verdict;
  WildAnswer answer{.reading = Weigh(incident, report)};
  answer.words = Name(verdict.status);
  if (!verdict.cause.empty()) answer.words += " " + verdict.cause;
  if (!verdict.ranks.empty()) answer.words += " of";
  for (const int rank : verdict.ranks) {
    answer.words += " " + std::to_string(rank);
    answer.names_the_guilty = answer.names_the_guilty || incident.guilty.contains(rank);
  }
  return answer;
}

void WildRow::Count(const WildIncident& incident, const WildAnswer& answer) {
  ++readings[static_cast<size_t>(answer.reading)];
  guilty_known += !incident.guilty.empty();
  guilty_named += answer.names_the_guilty;
}

std::string WildTable(const std::map<std::string, WildRow>& categories) {
  std::string table =
      "| category | incidents | right | in part | silent | wrong | guilty rank named where the text tells it |\n"
      "|---|---|---|---|---|---|---|\n";
  WildRow all;
  for (const auto& [name, row] : categories) {
    table += Cells(name, row);
    for (size_t reading = 0; reading < row.readings.size(); ++reading) all.readings[reading] += row.readings[reading];
    all.guilty_known += row.guilty_known;
    all.guilty_named += row.guilty_named;
  }
  return table + Cells("all", all);
}

}  // namespace tacet
