// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/port_state.h"

namespace tacet {

struct PortRow {
  PortState port;
  bool by_adapter = false;  // the state is the port's own, and not only that of the interface on it
  uint32_t line = 0;        // that tells the state
  uint64_t offset = 0;
  std::string text;
  std::string peer;  // of a link: what is at its other end
};

struct PortErrorRow {
  PortErrors errors;
  uint32_t line = 0;  // of the first counter that is high
  uint64_t offset = 0;
  std::string text;
};

struct PortTable {
  std::vector<PortRow> ports;
  std::vector<PortErrorRow> errors;
  size_t unlinked_switch_ports = 0, switches_with_unlinked = 0;  // iblinkinfo: nothing is plugged in, or a link is down
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

// A line that only such a tool writes.
bool IsPortLine(std::string_view line);

PortTable ParsePortTable(std::string_view bytes);

}  // namespace tacet
