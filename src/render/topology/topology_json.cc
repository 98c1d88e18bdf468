// SPDX-License-Identifier: Apache-2.0
#include "render/topology/topology_json.h"

namespace tacet {
namespace {

// Pairs as one flat list, which is half as long: [rank, parent, rank, parent, ...].
void WritePairs(JsonWriter& json, const std::vector<std::pair<int, int>>& pairs) {
  json.BeginArray();
  for (const auto& [one, other] : pairs) json.Int(one).Int(other);
  json.EndArray();
}

void WriteCount(JsonWriter& json, int value) { value < 0 ? json.Null() : json.Int(value); }
void WriteGbs(JsonWriter& json, double value) { value > 0 ? json.Double(value) : json.Null(); }
void WriteWord(JsonWriter& json, const std::string& value) { value.empty() ? json.Null() : json.String(value); }

void WriteGpu(JsonWriter& json, const TopologyGpu& gpu) {
  json.BeginObject();
  WriteCount(json.Key("rank"), gpu.rank);
  WriteCount(json.Key("device"), gpu.device);
  json.Key("bus").String(gpu.bus);
  WriteGbs(json.Key("nvlink_gbs"), gpu.nvlink_gbs);
  WriteGbs(json.Key("pci_gbs"), gpu.pci_gbs);
  WriteWord(json.Key("nearest"), gpu.nearest);
  json.Key("nics").Ints(gpu.nics);
  json.Key("uses").Ints(gpu.uses);
  json.Key("place").Int(gpu.place);
  json.Key("cpu").Int(gpu.cpu);
  json.EndObject();
}

void WriteNic(JsonWriter& json, const TopologyNic& nic) {
  json.BeginObject();
  json.Key("index").Int(nic.index);
  WriteWord(json.Key("name"), nic.name);
  WriteWord(json.Key("link"), nic.link);
  WriteGbs(json.Key("speed_gbs"), nic.speed_gbs);
  WriteWord(json.Key("nearest"), nic.nearest);
  json.Key("gdr");
  nic.gdr < 0 ? json.Null() : json.Bool(nic.gdr == 1);
  json.Key("ring_sends").Int(nic.ring_sends);
  json.Key("place").Int(nic.place);
  json.Key("cpu").Int(nic.cpu);
  json.EndObject();
}

// Of nodes that are like an earlier one only what differs is written; the first of them holds the rest.
void WriteNode(JsonWriter& json, const TopologyNode& node, bool is_first) {
  json.BeginObject();
  json.Key("name").String(node.name);
  json.Key("ranks").Ints(node.ranks);
  json.Key("gpu_ranks").BeginArray();  // in the order of the GPUs
  for (const TopologyGpu& gpu : node.gpus) WriteCount(json, gpu.rank);
  json.EndArray();
  json.Key("like").Int(node.like);
  json.Key("guilty").Bool(node.guilty);
  if (is_first) {
    WriteWord(json.Key("net"), node.net);
    json.Key("nvlink").Bool(node.nvlink);
    json.Key("nvswitch").Bool(node.nvswitch);
    json.Key("gpus").BeginArray();
    for (const TopologyGpu& gpu : node.gpus) WriteGpu(json, gpu);
    json.EndArray();
    json.Key("nics").BeginArray();
    for (const TopologyNic& nic : node.nics) WriteNic(json, nic);
    json.EndArray();
  }
  json.EndObject();
}

void WriteRing(JsonWriter& json, const TopologyRing& ring) {
  json.BeginObject();
  json.Key("channel").Int(ring.channel);
  json.Key("whole").Bool(ring.whole);
  WriteCount(json.Key("same_as"), ring.same_as);
  if (ring.same_as < 0) {
    json.Key("order").Ints(ring.order);
    WritePairs(json.Key("hops"), ring.hops);
    json.Key("ways").Ints(ring.ways);
    json.Key("slow").Ints(ring.slow);
    json.Key("breaks").BeginArray();
    for (const std::string& one : ring.breaks) json.String(one);
    json.EndArray();
  }
  json.EndObject();
}

void WriteTree(JsonWriter& json, const TopologyTree& tree) {
  json.BeginObject();
  json.Key("channel").Int(tree.channel);
  WriteCount(json.Key("same_as"), tree.same_as);
  WriteCount(json.Key("root"), tree.root);
  if (tree.same_as < 0) WritePairs(json.Key("parents"), tree.parents);
  json.EndObject();
}

void WriteGraph(JsonWriter& json, const TopologyGraph& graph) {
  json.BeginObject();
  json.Key("name").String(graph.name);
  json.Key("channels").Int(graph.channels);
  json.Key("cross_nic").Int(graph.cross_nic);
  json.Key("intra_gbs").Double(graph.intra_gbs);
  json.Key("inter_gbs").Double(graph.inter_gbs);
  WriteWord(json.Key("type_intra"), graph.type_intra);
  WriteWord(json.Key("type_inter"), graph.type_inter);
  WriteWord(json.Key("lowered_by"), graph.lowered_by);
  json.EndObject();
}

void WriteComm(JsonWriter& json, const TopologyComm& comm) {
  json.BeginObject();
  json.Key("label").String(comm.label);
  WriteCount(json.Key("ranks"), comm.ranks);
  WriteCount(json.Key("nodes"), comm.nodes);
  json.Key("seen").Int(comm.seen);
  WriteCount(json.Key("channels"), comm.channels);
  WriteCount(json.Key("nvls_channels"), comm.nvls_channels);
  WriteCount(json.Key("collnet_channels"), comm.collnet_channels);
  json.Key("mnnvl").Bool(comm.mnnvl);
  WriteWord(json.Key("connected"), comm.connected);
  json.Key("graphs").BeginArray();
  for (const TopologyGraph& graph : comm.graphs) WriteGraph(json, graph);
  json.EndArray();
  json.Key("rings").BeginArray();
  for (const TopologyRing& ring : comm.rings) WriteRing(json, ring);
  json.EndArray();
  json.Key("trees").BeginArray();
  for (const TopologyTree& tree : comm.trees) WriteTree(json, tree);
  json.EndArray();
  json.Key("ways").BeginArray();
  for (const TopologyWay& way : comm.ways) {
    json.BeginObject();
    json.Key("transport").Int(way.transport);
    json.Key("inside").Int(way.inside);
    json.Key("between").Int(way.between);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

void WriteTopology(JsonWriter& json, const TopologyReport& topology) {
  json.BeginObject();
  json.Key("transports").BeginArray();
  for (const TopologyTransport& transport : topology.transports) {
    json.BeginObject();
    json.Key("text").String(transport.text);
    json.Key("kind").String(transport.kind);
    json.EndObject();
  }
  json.EndArray();
  json.Key("nodes").BeginArray();
  for (size_t i = 0; i < topology.nodes.size(); ++i)
    WriteNode(json, topology.nodes[i], topology.nodes[i].like == static_cast<int>(i));
  json.EndArray();
  json.Key("communicators").BeginArray();
  for (const TopologyComm& comm : topology.comms) WriteComm(json, comm);
  json.EndArray();
  json.EndObject();
}

}  // namespace tacet
