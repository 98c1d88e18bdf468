// SPDX-License-Identifier: Apache-2.0
#include "live/agent/agent_complaints.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace tacet {
namespace {

constexpr size_t kMostAtOnce = 20, kMostText = 300;

// Names of files are anybody's, and logs are read on terminals.
std::string Clean(std::string text) {
  if (text.size() > kMostText) text.resize(kMostText);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string WhatToDo(const std::string& trouble) {
  if (trouble == "other-version") return "; install one version of plugin and agent";
  if (trouble == "bad-layout" || trouble == "no-black-box")
    return "; it is damaged or not a box: move it out of the folder";
  if (trouble == "foreign-process") return "; it was copied or planted there: remove it";
  return "";
}

uint64_t LostOutputs(const BoxState& box) { return box.drops[static_cast<size_t>(box::Drop::output_lost)]; }

}  // namespace

std::string DescribeFolder(const std::string& root, const BoxListing& listing) {
  const std::string folder = "the box folder " + root;
  if (listing.root_is_foreign_link)
    return folder + " is a link that an ordinary user made, so it is not followed; remove it";
  if (!listing.exists) return folder + " does not exist yet; waiting for it";
  if (listing.error != 0)
    return folder + " cannot be read: " + ::strerror(listing.error) +
           "; run the agent as root or as the user of the jobs";
  return "";
}

std::vector<std::string> FindComplaints(const AgentState& state, const BoxListing& listing) {
  std::vector<std::string> complaints;
  if (!state.note.empty()) complaints.push_back(state.note);
  for (const BoxState& box : state.host.boxes) {
    if (box.trouble == "not-ready") continue;  // a process that is just starting
    if (!box.trouble.empty())
      complaints.push_back(Clean(box.name + " cannot be read: " + box.reason) + WhatToDo(box.trouble));
    else if (box.IsLive() && LostOutputs(box) > 0)
      complaints.push_back(
          Clean(box.name) +
          " loses lines for TACET_JSON_DIR or TACET_PROM_DIR; is the disk full, or the folder not writable?");
  }
  if (listing.root_uid > 0 && listing.root_uid != static_cast<int64_t>(::geteuid()))
    complaints.push_back("the box folder belongs to uid " + std::to_string(listing.root_uid) +
                         ", who can remove the boxes of all others; let root create it with mode 1777");
  for (const auto& [uid, count] : listing.left_out_of)
    complaints.push_back(std::to_string(count) + " of the oldest boxes of uid " + std::to_string(uid) +
                         " are not watched, because there are too many: remove those no longer needed");
  return complaints;
}

std::vector<std::string> ComplaintLog::TakeNew(const std::vector<std::string>& complaints) {
  std::set<std::string> now(complaints.begin(), complaints.end());
  std::erase_if(said_, [&](const std::string& said) { return !now.contains(said); });
  std::vector<std::string> fresh;
  for (const std::string& complaint : now) {
    if (said_.contains(complaint)) continue;
    if (fresh.size() == kMostAtOnce) {
      fresh.push_back("... and more; /healthz has them all");
      said_ = std::move(now);
      break;
    }
    said_.insert(complaint);
    fresh.push_back(complaint);
  }
  return fresh;
}

}  // namespace tacet
