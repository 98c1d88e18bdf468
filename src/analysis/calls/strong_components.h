// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "model/ids.h"

namespace tacet {

// The strongly connected sets of two or more ranks in a directed graph, each sorted. Linear, without recursion: a chain
// of sixteen thousand ranks must not exhaust the stack.
std::vector<std::vector<Rank>> StrongComponents(const std::map<Rank, std::vector<Rank>>& edges);

}  // namespace tacet
