// SPDX-License-Identifier: Apache-2.0
#include "evidence/format.h"
#include "evidence/topology_xml/topology_xml_import.h"
#include "evidence/topology_xml/topology_xml_parse.h"

namespace tacet {
namespace {

Recognition RecogniseTopologyXml(std::string_view prefix, std::string_view) {
  if (prefix.substr(0, 4096).find('<') == std::string_view::npos) return Recognition::no;
  return KindOfTopologyXml(prefix) != TopologyXmlKind::none ? Recognition::yes : Recognition::no;
}

}  // namespace

extern const Format kTopologyXmlFormat;
const Format kTopologyXmlFormat = {
    .name = "topology_xml",
    .description = "NCCL's topology and graphs (NCCL_TOPO_DUMP_FILE=topo.xml, NCCL_GRAPH_DUMP_FILE=graph.xml)",
    .recognise = RecogniseTopologyXml,
    .read = ReadTopologyXml,
};

}  // namespace tacet
