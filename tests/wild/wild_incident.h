// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace tacet {

// A log as somebody pasted it, and what really happened; one entry of truth.json.
struct WildIncident {
  std::string name;                     // "category/what"
  std::filesystem::path path;           // one file, or a folder
  std::set<std::string> statuses;       // any of them is right
  std::set<std::string> causes;         // any of them is right; "" stands for none
  std::set<int> guilty, may, innocent;  // `may`: as far as the text goes, these can be named too
  bool all_innocent = false;            // nobody may be named

  std::string Category() const { return name.substr(0, name.find('/')); }
  bool HappenedNothing() const { return statuses.contains("healthy") && causes.contains(""); }
};

// right: status and cause, and nobody innocent. in_part: the status without the cause. silent: undetermined though
// something happened. wrong: another status or cause, or somebody innocent.
enum class WildReading { right, in_part, silent, wrong };
inline constexpr std::array<std::string_view, 4> kWildReadingNames{"right", "in part", "silent", "wrong"};

struct WildAnswer {
  WildReading reading = WildReading::silent;
  bool names_the_guilty = false;
  std::string words;  // "crash network-fault [3]"
};

// Throws on a truth that cannot be read, or that tells of a file that is not there.
std::vector<WildIncident> AllWildIncidents(const std::filesystem::path& folder);

// Named though it did nothing.
bool IsInnocent(const WildIncident& incident, int rank);

WildAnswer JudgeWild(const WildIncident& incident, const Report& report);

// The answers of one category, or of all.
struct WildRow {
  std::array<size_t, 4> readings{};
  size_t guilty_known = 0, guilty_named = 0;

  void Count(const WildIncident& incident, const WildAnswer& answer);
  size_t Total() const { return readings[0] + readings[1] + readings[2] + readings[3]; }
  size_t Of(WildReading reading) const { return readings[static_cast<size_t>(reading)]; }
};

// Markdown, one row for each category and a last one for all.
std::string WildTable(const std::map<std::string, WildRow>& categories);

}  // namespace tacet
