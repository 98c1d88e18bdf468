// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "live/agent/box_finder.h"
#include "live/state_json.h"

namespace tacet {

// What an operator should know about a node: boxes that cannot be read, outputs of the plugin that are lost. One
// sentence each, with what to do.
std::vector<std::string> FindComplaints(const AgentState& state, const BoxListing& listing);

// Empty while the box folder is there and can be read.
std::string DescribeFolder(const std::string& root, const BoxListing& listing);

// Says each complaint once, for a log. What is mended and comes again is said again.
class ComplaintLog {
 public:
  // Those not said before, at most a few at a time.
  std::vector<std::string> TakeNew(const std::vector<std::string>& complaints);

 private:
  std::set<std::string> said_;
};

}  // namespace tacet
