// SPDX-License-Identifier: Apache-2.0
#include "evidence/topology_xml/topology_xml_parse.h"

#include "base/text_scan.h"
#include "base/xml_reader.h"

namespace tacet {

TopologyXmlKind KindOfTopologyXml(std::string_view text) {
  XmlReader xml(text);
  if (!xml.Next()) return TopologyXmlKind::none;
  if (xml.name() == "graphs") return TopologyXmlKind::graphs;
  if (xml.name() != "system") return TopologyXmlKind::none;
  // Others call their root "system", too: NCCL's holds CPUs.
  return !xml.Next() || xml.name() == "cpu" ? TopologyXmlKind::system : TopologyXmlKind::none;
}

double PciGbs(std::string_view link_speed, int width) {
  static constexpr struct {
    double giga_transfers;
    double factor;
  } kSpeeds[] = {{2.5, 15}, {5, 30}, {8, 60}, {16, 120}, {32, 240}, {64, 480}};
  double rate = 0, factor = 60;
  TakeDouble(link_speed, &rate);
  for (const auto& speed : kSpeeds)
    if (rate == speed.giga_transfers) factor = speed.factor;
  return (width > 0 && width <= 32 ? width : 16) * factor / 80;
}

double NvlinkGbs(int compute_capability) {
  if (compute_capability >= 100) return 40.1;
  if (compute_capability >= 90) return 20.6;
  if (compute_capability == 86) return 12;
  return compute_capability >= 70 ? 20 : 18;
}

uint64_t ParseBusId(std::string_view text) {
  // Digits one after the other, colons and the dot left out: "0000:c8:00.0" is 0xc8000.
  uint64_t id = 0;
  for (const char c : text) {
    uint64_t digit = 16;
    if (c >= '0' && c <= '9') digit = static_cast<uint64_t>(c - '0');
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') digit = static_cast<uint64_t>((c | 0x20) - 'a') + 10;
    if (digit < 16) id = id << 4 | digit;
  }
  return id;
}

}  // namespace tacet
