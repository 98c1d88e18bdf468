// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/collect/collect_nodes.h"

namespace tacet {

// A node and the command whose output is its part of the bundle.
struct NodeCall {
  std::string node;
  std::vector<std::string> command;  // empty: this node itself
};

// Written by the other side before its tar: what a login shell says of its own accord ends there.
inline constexpr std::string_view kPartMark = "tacet: the tar of this node begins here\n";

// Who is to be asked, and how.
Result<std::vector<NodeCall>> ListNodeCalls(const CollectOptions& options);

// What the other side runs, for `sh`: tacet where it is there, else tar, which gives the named paths only.
// `pod`: process 1 and all below it are the job.
std::string RemoteScript(const CollectOptions& options, bool pod = false);

}  // namespace tacet
