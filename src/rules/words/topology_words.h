// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {

// What the rules on rings, transports and network devices have in common.

// "gpu001", "gpu001 and gpu002", "gpu001, gpu002, gpu003 and 13 more nodes".
std::string NodeWords(const TopologyView& view, std::vector<uint32_t> nodes);
std::vector<Rank> RanksOfNodes(const TopologyView& view, const std::vector<uint32_t>& nodes);
// "a, b and c"; beyond `most` of them only their number.
std::string ListWords(const std::vector<std::string>& items, size_t most = 4);
// The rank of the job that has this place in the communicator; unknown where nobody said so.
Rank JobRank(const Case& facts, const CommView& comm, int32_t group_rank);
// "rank 12", "rank 3 of the communicator" where the job's rank is not known.
std::string PlaceWords(const Case& facts, const CommView& comm, int32_t group_rank);

// Warnings that make a working job slower.
Finding DegradedFinding(std::string_view cause);
// "Pattern 4, ... nChannels 8, bw 48/48, type NVL/PXN".
EvidenceItem CiteGraph(const NcclGraphSearch& graph, std::string says);
EvidenceItem CitePair(const Case& facts, const SlowPair& pair, std::string says);
EvidenceItem CiteRecord(const Case& facts, uint32_t record, uint32_t line, std::string excerpt, std::string says);

// A node that another cause already names: what follows from it is no cause of its own.
bool HasFewerNics(const TopologyChecks& checks, uint32_t node);
bool HasFailedSearch(const TopologyChecks& checks, uint32_t node);
bool IsFarNode(const TopologyChecks& checks, uint32_t node);
bool IsLowerNode(const TopologyChecks& checks, uint32_t node);
// ", which lowers all 16 ranks to 7 channels ..." where this node is the one whose search all others follow.
std::string LoweringWords(const Case& facts, uint32_t node);

}  // namespace tacet
