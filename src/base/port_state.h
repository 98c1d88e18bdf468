// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacet {

// A port of a network adapter, or a link of a GPU, as a tool of the host lists it.
enum class PortHealth : uint8_t { active, down, initializing, disabled };

struct PortState {
  std::string device;     // "mlx5_0"
  std::string interface;  // "ib0"
  std::string host;
  int64_t port = -1;
  PortHealth health = PortHealth::active;
  bool infiniband = false;
  bool polling = false;  // it looks for a partner and finds none
  bool of_interface = false;  // the state is that of the IP interface on an InfiniBand port, which may be down alone
  bool nvlink = false;   // a link of the GPU that `device` names ("GPU 1"); its number is `port`
  std::string link;      // width and speed where they are listed: "4X 25.78125 Gbps"
  std::string better;    // what both ends could do, where it is more: "Could be 4X"
};

// What the counters of a port show of errors, where it is much.
struct PortErrors {
  std::string device;  // "LID 118"
  std::string host;
  int64_t port = -1;
  std::vector<std::string> counted;  // "41 link downs"
};

}  // namespace tacet
