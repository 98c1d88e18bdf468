// SPDX-License-Identifier: Apache-2.0
// Over everything on record: how blame is settled must not hang on a limit that somebody guessed, nor on the order in
// which two causes happened to be written down.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../wild/wild_incident.h"
#include "analysis/analyses.h"
#include "analysis/process/standstill.h"
#include "base/parallel.h"
#include "evidence/load.h"
#include "incident_truth.h"
#include "model/assembly/assembly.h"
#include "recorded_files.h"
#include "report/build_report.h"
#include "report/make_report.h"
#include "rules/precedence.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;

// One incident, and who of the named did nothing.
struct Settled {
  std::string name;
  fs::path path;
  std::function<std::set<int>(const Report&)> innocents;
};

std::vector<Fragment> Read(const fs::path& path) {
  auto loaded = LoadEvidence({path.string()}, {.threads = 1});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  // Traces tell of slowness only, to which no limit of patience applies, and take most of the time.
  std::erase_if(loaded->fragments, [](const Fragment& fragment) { return fragment.format == "torch_trace"; });
  return std::move(loaded->fragments);
}

std::vector<Settled> AllSettled() {
  std::vector<Settled> all;
  for (const IncidentTruth& truth : ParseTruth(ReadWhole(TestFolder("corpus/truth.json"))))
    all.push_back({truth.name, TestFolder("corpus") / truth.name,
                   [=](const Report& report) { return InnocentRanks(truth, report); }});
  for (const std::string_view folder : {"wild", "users"})
    for (const WildIncident& incident : AllWildIncidents(TestFolder(folder)))
      all.push_back({incident.name, incident.path, [=](const Report& report) {
                       std::set<int> innocents;
                       for (const int rank : report.verdict.ranks)
                         if (IsInnocent(incident, rank)) innocents.insert(rank);
                       return innocents;
                     }});
  return all;
}

// The way from assembled jobs to the report, with other limits.
Report Judge(std::vector<Incident>& incidents, const Patience& patience) {
  std::vector<Analyses> analyses;
  std::vector<StandstillView> standstills;
  std::vector<JudgedJob> jobs;
  analyses.reserve(incidents.size());
  standstills.reserve(incidents.size());
  for (Incident& incident : incidents) {
    incident.patience = patience;
    analyses.push_back(Analyse(incident));
    standstills.push_back(FindStandstills(incident, analyses.back()));
    jobs.push_back(
        {&incident, &analyses.back(), &standstills.back(), Diagnose(incident, analyses.back(), standstills.back())});
  }
  return BuildReport(jobs);
}

std::string Words(const Report& report) {
  std::string words = std::string(Name(report.verdict.status)) + " " + report.verdict.cause + " [";
  for (const int rank : report.verdict.ranks) words += std::to_string(rank) + " ";
  return words + "]";
}

// A limit halved or doubled.
struct ChangedLimit {
  std::string name;
  Patience patience;
};

struct ChangedLimits {
  ChangedLimits() {
    Patience usual;
    ForEachField(usual, [&](std::string_view, auto&) { ++fields; });
    for (size_t field = 0; field < fields; ++field)
      for (const bool doubled : {false, true}) {
        ChangedLimit limit;
        size_t at = 0;
        ForEachField(limit.patience, [&](std::string_view name, auto& value) {
          if (at++ != field) return;
          value = doubled ? value * 2 : value / 2;
          limit.name = std::string(name) + (doubled ? " doubled" : " halved");
        });
        all.push_back(std::move(limit));
      }
  }
  std::vector<ChangedLimit> all;
  size_t fields = 0;
};

// What both tests ask about, of each incident once: reading the files takes most of the time.
struct Answers {
  size_t incidents = 0, pairs = 0;
  std::map<std::pair<std::string, std::string>, std::string> unordered;  // pair -> where
  std::set<std::string> flips, innocents;
};

// Causes that were found together, and those of them of which nobody knows which explains the other.
void NotePairs(const std::string& name, const Report& report, std::mutex& lock, Answers& answers) {
  std::set<std::string> causes;
  for (const ReportFinding& finding : report.findings)
    if (!finding.cause.empty() && finding.severity != Severity::note) causes.insert(finding.cause);
  const std::lock_guard guard(lock);
  for (auto a = causes.begin(); a != causes.end(); ++a)
    for (auto b = std::next(a); b != causes.end(); ++b) {
      ++answers.pairs;
      if (!Explains(*a, *b) && !Explains(*b, *a) && !AreIndependent(*a, *b))
        answers.unordered.try_emplace({*a, *b}, name);
    }
}

// Verdicts that other limits change, and those of them that name somebody innocent.
void NoteFlips(const Settled& one, std::vector<Fragment> fragments, std::mutex& lock, Answers& answers) {
  static const ChangedLimits limits;
  const Patience usual;
  const std::vector<Fragment> kept = fragments;
  std::vector<Incident> incidents = Assemble(std::move(fragments), usual);
  const Report before = Judge(incidents, usual);
  const std::string words = Words(before);
  const std::set<int> named = one.innocents(before);
  for (const ChangedLimit& limit : limits.all) {
    // Which files are of an older run is settled when they are put together, by this limit alone.
    const bool anew = limit.patience.stale_ns != usual.stale_ns;
    const Report report =
        anew ? MakeReport(std::vector<Fragment>(kept), limit.patience) : Judge(incidents, limit.patience);
    const std::string now = Words(report);
    if (now == words) continue;
    const std::string line = one.name + ", " + limit.name + ": " + words + " -> " + now;
    const std::lock_guard guard(lock);
    answers.flips.insert(line);
    for (const int rank : one.innocents(report))
      if (!named.contains(rank)) answers.innocents.insert(line);
  }
}

const Answers& AllAnswers() {
  static const Answers all = [] {
    Answers answers;
    std::mutex lock;
    const std::vector<Settled> sources = AllSettled();
    answers.incidents = sources.size();
    ParallelFor(sources.size(), 0, [&](size_t i) {
      std::vector<Fragment> fragments = Read(sources[i].path);
      NotePairs(sources[i].name, MakeReport(std::vector<Fragment>(fragments)), lock, answers);
      NoteFlips(sources[i], std::move(fragments), lock, answers);
    });
    return answers;
  }();
  return all;
}

TEST(Settling, EveryPairOfCausesFoundTogetherIsOrderedOrIndependent) {
  const Answers& answers = AllAnswers();
  EXPECT_GT(answers.pairs, 0u) << "nothing was found together with anything";
  for (const auto& [pair, where] : answers.unordered)
    ADD_FAILURE() << pair.first << " and " << pair.second << " were found together in " << where
                  << ", and the table of src/rules/precedence.cc does not say which explains the other";
}

TEST(Settling, NoLimitHalvedOrDoubledMakesAnInnocentGuilty) {
  const Answers& answers = AllAnswers();
  std::printf("%zu incidents, %zu limits halved and doubled, %zu verdicts change\n", answers.incidents,
              ChangedLimits().fields, answers.flips.size());
  for (const std::string& flip : answers.flips) std::printf("  %s\n", flip.c_str());
  for (const std::string& line : answers.innocents) ADD_FAILURE() << "somebody innocent is named: " << line;
}

}  // namespace
}  // namespace tacet
