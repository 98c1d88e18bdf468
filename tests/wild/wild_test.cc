// SPDX-License-Identifier: Apache-2.0
// Logs as people paste them. Without arguments a test; `--table` prints the table as Markdown, `--list` every answer.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/load.h"
#include "report/make_report.h"
#include "wild_incident.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;

// Where the reading stands; the aim is 0.95 right and none wrong.
constexpr double kLeastShareRight = 0.95;
constexpr size_t kMostWrong = 1;
constexpr double kLeastShareOfUsers = 0.85;
constexpr size_t kMostWrongUsers = 17;

fs::path WildFolder() { return fs::path(TACET_SOURCE_DIR) / "tests/wild"; }
fs::path UsersFolder() { return fs::path(TACET_SOURCE_DIR) / "tests/users"; }

Report DiagnosePasted(const fs::path& path) {
  auto loaded = LoadEvidence({path.string()}, {});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return MakeReport(std::move(loaded->fragments));
}

struct WildScore {
  std::map<std::string, WildRow> categories;
  WildRow all;
  std::vector<std::string> not_right;  // "silent  old_nccl/x: undetermined"
  std::vector<std::string> wrong;
};

WildScore ReadAll(const fs::path& folder) {
  WildScore score;
  for (const WildIncident& incident : AllWildIncidents(folder)) {
    const WildAnswer answer = JudgeWild(incident, DiagnosePasted(incident.path));
    score.categories[incident.Category()].Count(incident, answer);
    score.all.Count(incident, answer);
    if (answer.reading == WildReading::right) continue;
    const std::string line = std::string(kWildReadingNames[static_cast<size_t>(answer.reading)]) + "\t" +
                             incident.name + ": " + answer.words;
    score.not_right.push_back(line);
    if (answer.reading == WildReading::wrong) score.wrong.push_back(line);
  }
  return score;
}

TEST(Wild, IsReadRightAndNotWrongly) {
  const WildScore score = ReadAll(WildFolder());
  std::printf("%s", WildTable(score.categories).c_str());
  for (const std::string& line : score.not_right) std::printf("%s\n", line.c_str());
  EXPECT_LE(score.wrong.size(), kMostWrong);
  EXPECT_GE(static_cast<double>(score.all.Of(WildReading::right)),
            kLeastShareRight * static_cast<double>(score.all.Total()));
}

// Real jobs with mistakes that users make, see tests/users.
TEST(Users, AreReadRightAndNobodyInnocentIsNamed) {
  const WildScore score = ReadAll(UsersFolder());
  for (const std::string& line : score.not_right) std::printf("%s\n", line.c_str());
  EXPECT_LE(score.wrong.size(), kMostWrongUsers);
  EXPECT_GE(static_cast<double>(score.all.Of(WildReading::right)),
            kLeastShareOfUsers * static_cast<double>(score.all.Total()));
}

TEST(Wild, HoldsExactlyTheFilesTheTruthTellsOf) {
  std::set<std::string> there, told;
  for (const auto& entry : fs::recursive_directory_iterator(WildFolder()))
    if (entry.is_regular_file() && entry.path().parent_path() != WildFolder())
      there.insert(entry.path().lexically_relative(WildFolder()).string());
  for (const WildIncident& incident : AllWildIncidents(WildFolder())) {
    if (fs::is_regular_file(incident.path)) {
      told.insert(incident.path.lexically_relative(WildFolder()).string());
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(incident.path))
      if (entry.is_regular_file()) told.insert(entry.path().lexically_relative(WildFolder()).string());
  }
  EXPECT_EQ(there, told);
}

// The judge itself: it must be able to say no.

Report Verdict(Status status, std::string cause, std::vector<int> ranks) {
  Report report;
  report.verdict = {.status = status, .cause = cause, .ranks = ranks};
  if (!cause.empty())
    report.findings.push_back({.cause = cause, .status = status, .severity = Severity::critical, .fix = {"x"}});
  return report;
}

TEST(WildJudge, TellsRightFromInPartSilentAndWrong) {
  const WildIncident incident{.name = "a/b", .statuses = {"crash"}, .causes = {"rank-dead"}, .guilty = {2}};
  const auto reading = [&](const Report& report) { return JudgeWild(incident, report).reading; };
  EXPECT_EQ(reading(Verdict(Status::crash, "rank-dead", {2})), WildReading::right);
  EXPECT_EQ(reading(Verdict(Status::crash, "rank-dead", {})), WildReading::right);
  EXPECT_EQ(reading(Verdict(Status::crash, "", {})), WildReading::in_part);
  EXPECT_EQ(reading(Verdict(Status::undetermined, "", {})), WildReading::silent);
  EXPECT_EQ(reading(Verdict(Status::undetermined, "rank-dead", {})), WildReading::in_part);
  EXPECT_EQ(reading(Verdict(Status::hang, "rank-dead", {2})), WildReading::wrong);
  EXPECT_EQ(reading(Verdict(Status::healthy, "", {})), WildReading::wrong);
  EXPECT_EQ(reading(Verdict(Status::crash, "gpu-fault", {2})), WildReading::wrong);
  EXPECT_EQ(reading(Verdict(Status::crash, "rank-dead", {2, 3})), WildReading::wrong);
}

TEST(WildJudge, AsksForANextStepWhereTheCauseStaysOpen) {
  const WildIncident incident{.name = "a/b", .statuses = {"hang"}, .causes = {""}, .all_innocent = true};
  Report report = Verdict(Status::hang, "", {});
  EXPECT_EQ(JudgeWild(incident, report).reading, WildReading::silent);
  report.cannot_tell.push_back({"who", "the flight records of all ranks"});
  EXPECT_EQ(JudgeWild(incident, report).reading, WildReading::right);
  report.verdict.ranks = {0};
  EXPECT_EQ(JudgeWild(incident, report).reading, WildReading::wrong);
}

TEST(WildJudge, HoldsAHealthyPasteToSilence) {
  const WildIncident incident{
      .name = "a/b", .statuses = {"healthy", "undetermined"}, .causes = {""}, .all_innocent = true};
  EXPECT_EQ(JudgeWild(incident, Verdict(Status::undetermined, "", {})).reading, WildReading::right);
  EXPECT_EQ(JudgeWild(incident, Verdict(Status::degraded, "slow-link", {})).reading, WildReading::wrong);
}

}  // namespace

int PrintWild(const fs::path& folder, bool with_answers) {
  const WildScore score = ReadAll(folder);
  std::printf("%s", WildTable(score.categories).c_str());
  if (with_answers)
    for (const std::string& line : score.not_right) std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace tacet

int main(int argc, char** argv) {
  const bool users = argc > 2 && std::string_view(argv[2]) == "users";
  const auto folder = users ? tacet::UsersFolder() : tacet::WildFolder();
  if (argc > 1 && std::string_view(argv[1]) == "--table") return tacet::PrintWild(folder, false);
  if (argc > 1 && std::string_view(argv[1]) == "--list") return tacet::PrintWild(folder, true);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
