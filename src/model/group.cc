// SPDX-License-Identifier: Apache-2.0
#include "model/group.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "model/rank_ranges.h"

namespace tacet {

bool Group::HasMember(Rank rank) const { return IndexOf(rank).known(); }

GroupRank Group::IndexOf(Rank rank) const {
  if (!rank.known()) return {};  // unknown places hold Rank{} too
  const auto found = std::find(members.begin(), members.end(), rank);
  return {found == members.end() ? -1 : static_cast<int32_t>(found - members.begin())};
}

// "1,3,5" within a sentence: "1, 3, 5".
static std::string Spaced(const std::string& ranks) {
  std::string text;
  for (const char c : ranks) {
    text += c;
    if (c == ',') text += ' ';
  }
  return text;
}

std::string Group::Label() const {
  if (!description.empty() && description != "undefined") return description;
  if (!name.empty()) return "group " + (name.size() > 12 ? name.substr(0, 8) : name);
  if (comm_id != 0 && hidden_id) {
    const bool listed =
        !members.empty() && std::all_of(members.begin(), members.end(), [](Rank r) { return r.known(); });
    const std::string number = ordinal > 0 ? " " + std::to_string(ordinal) : "";
    if (listed)
      return "communicator" + number + (members.size() == 1 ? " of rank " : " of ranks ") + Spaced(RankRanges(members));
    return "communicator" + number + (size > 0 ? " of " + std::to_string(size) + (size == 1 ? " rank" : " ranks") : "");
  }
  if (comm_id != 0) {
    char text[40];
    std::snprintf(text, sizeof text, "communicator 0x%llx", static_cast<unsigned long long>(comm_id));
    return text;
  }
  return "group";
}

}  // namespace tacet
