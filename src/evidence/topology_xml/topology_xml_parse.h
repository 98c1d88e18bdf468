// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// The root element of a file that NCCL wrote; none for any other text.
enum class TopologyXmlKind { none, system, graphs };
TopologyXmlKind KindOfTopologyXml(std::string_view text);

// What a PCIe link carries by NCCL's count, GB/s: "32.0 GT/s PCIe" and 16 lanes give 48. A width of 0 (unknown, in
// virtual machines) counts as 16; an unknown speed as 8 GT/s.
double PciGbs(std::string_view link_speed, int width);

// What one NVLink of this compute capability ("90") carries in each direction, GB/s.
double NvlinkGbs(int compute_capability);

// "0000:c8:00.0" -> 0xc8000; with a domain "0001:05:00.0" -> 0x100005000 as NCCL counts it.
uint64_t ParseBusId(std::string_view text);

}  // namespace tacet
