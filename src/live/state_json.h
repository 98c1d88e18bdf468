// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "live/agent/box_state.h"
#include "live/agent/hang_watch.h"

namespace tacet {

// What an agent says of its node: schema "tacet.state.v1".
struct AgentState {
  HostState host;
  std::vector<HangSuspicion> suspicions;
  std::string note;  // "the box folder does not exist yet"
};

// Brief: what a hang is judged by, with the oldest operation of each communicator and without flows, for polling.
enum class StateForm { full, brief };
std::string WriteState(const AgentState& state, StateForm form);
void WriteBox(JsonWriter& json, const BoxState& box, StateForm form);
void WriteSuspicion(JsonWriter& json, const HangSuspicion& suspicion);
HangSuspicion ReadSuspicion(const JsonValue& value);

// Reads either form. What an agent says is not trusted: sizes are bounded, unknown fields are skipped.
Result<AgentState> ReadState(std::string_view text);

std::string_view DropName(size_t index);  // "op_table_full"; empty for reasons nobody has named yet

}  // namespace tacet
