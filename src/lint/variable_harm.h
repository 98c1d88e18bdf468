// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace tacet {

enum class HarmKind {
  slow,       // forces a slow path
  risky,      // may hang, end or falsify the job, or hide why it did
  debugging,  // meant for a look at a problem, and costs when it stays
};

// A value that does harm, and what it costs in order of magnitude: the real price depends on the machine.
struct VariableHarm {
  std::string_view name;
  bool (*applies)(std::string_view value);
  std::string_view cost;
  bool of_network = false;  // it costs nothing where all ranks are on one host
  HarmKind kind = HarmKind::slow;
  std::string_view without = {};  // where there is no faster path, so that it costs nothing: "no InfiniBand or RoCE"
};

// The causes and `tacet lint` share this list.
std::span<const VariableHarm> AllVariableHarms();

// It concerns P2P or shared memory between processes of one host, and nothing else.
bool IsInsideHost(std::string_view name);

// The user guide lists it under "debugging": any value but the default is worth a note in production.
bool IsForDebugging(std::string_view name);

}  // namespace tacet
