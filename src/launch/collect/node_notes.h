// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "launch/collect/collect_nodes.h"

namespace tacet {

// What a node says of its part, besides the files themselves.
struct NodeNotes {
  std::vector<CaptureNote> missing;
  std::vector<CollectedFile> files;  // those that were changed or redacted there
};

inline constexpr const char* kNotesName = "tacet-node.json";  // in the tar that it sends

std::string DescribeNotes(const NodeNotes& notes);
NodeNotes ParseNotes(std::string_view text);  // hostile input; empty where it cannot be read
void WriteCollectedFile(JsonWriter& json, const CollectedFile& file);

}  // namespace tacet
