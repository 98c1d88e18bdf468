// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/collect/bundle_entry.h"
#include "launch/collect/collect_node.h"

namespace tacet {

struct CollectOptions {
  NodeWish node;                   // what each node gives
  std::string output;              // "bundle.tar.zst", ".tar.gz" or ".tar"
  std::string slurm;               // a job's number, or node names as Slurm writes them: "gpu[1-4]"
  std::vector<std::string> hosts;  // by ssh
  std::vector<std::string> pods;   // by kubectl
  std::string name_space;          // of the pods
  std::vector<std::string> ssh = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  std::string remote_tacet;   // its path there; empty: ours, else the one in PATH
  int64_t node_ms = 300'000;  // for one node as a whole
  unsigned at_once = 16;
  bool capture = false;
  std::function<void(size_t done, size_t total)> progress;
};

struct CollectedFile {
  std::string name, sha256, changed;
  uint64_t bytes = 0, original_bytes = 0;
  std::map<std::string, uint64_t> redacted;
};

struct MissingPart {
  std::string node, what, why;
};

struct Collected {
  std::vector<std::string> nodes;   // asked, sorted
  std::vector<std::string> silent;  // of these, those that gave nothing
  std::vector<CollectedFile> files;
  std::vector<MissingPart> missing;
  uint64_t bundle_bytes = 0;
};

// Asks all nodes at the same time and writes one bundle. What a node cannot give is told, the rest is kept. The same
// files give the same bundle, byte for byte. An Error only where no bundle could be written at all.
Result<Collected> CollectNodes(const CollectOptions& options);

// `tacet collect --stream`: this node's part as a plain tar on standard output, for the one who asked.
bool StreamNode(const NodeWish& wish);

// A few lines for the terminal: what is there, what was redacted, what is missing.
std::string DescribeCollected(const Collected& collected);

}  // namespace tacet
