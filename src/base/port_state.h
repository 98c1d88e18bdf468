// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tacet {

// A port of a network adapter, as a tool of the host lists it.
enum class PortHealth : uint8_t { active, down, initializing, disabled };

struct PortState {
  std::string device;     // "mlx5_0"
  std::string interface;  // "ib0"
  std::string host;
  int64_t port = -1;
  PortHealth health = PortHealth::active;
  bool infiniband = false;
  bool polling = false;  // it looks for a partner and finds none
  std::string link;      // width and speed where they are listed: "4X 25.78125 Gbps"
  std::string better;    // what both ends could do, where it is more: "Could be 4X"
};

}  // namespace tacet
