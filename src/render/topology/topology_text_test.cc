// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "render/topology/sample_topology.h"
#include "render/topology/topology_render.h"

namespace tacet {
namespace {

std::string TextOf(const Report& report) { return RenderTopologyText(report, {.colour = false, .width = 160}); }

TEST(TopologyText, ARangeOfNamesHoldsNoNodeThatDiffers) {
  Report report = SampleTopology(6, false);
  EXPECT_NE(TextOf(report).find("gpu000 to gpu005 (6 identical)"), std::string::npos) << TextOf(report);
  report.topology->nodes[1].like = 1;
  report.topology->nodes[1].nics[0].ring_sends += 3;
  const std::string text = TextOf(report);
  EXPECT_NE(text.find("gpu000, gpu002 to gpu005 (5 identical)"), std::string::npos) << text;
  for (size_t n = 0; n < 6; ++n) report.topology->nodes[n].name = "rack/node" + std::to_string(n);
  EXPECT_NE(TextOf(report).find("rack/node0,2-5 (5 identical)"), std::string::npos) << TextOf(report);
  EXPECT_NE(text.find(", 16 ring hops"), std::string::npos) << text;
  EXPECT_NE(text.find(", 19 ring hops"), std::string::npos) << text;
}

TEST(TopologyText, NodesThatAreAlikeHaveTheirGpusEach) {
  EXPECT_NE(TextOf(SampleTopology(2, false)).find("8 GPUs each, NVLink"), std::string::npos);
  EXPECT_NE(TextOf(SampleTopology(1, false)).find("8 GPUs, NVLink"), std::string::npos);
}

TEST(TopologyText, HopsAreCountedOnlyWhereTheyTellNodesApart) {
  Report report = SampleTopology(6, false);
  report.topology->nodes[1].like = 1;
  EXPECT_EQ(TextOf(report).find("ring hops"), std::string::npos);
}

TEST(TopologyText, NodesOfOneHostShareItsGpus) {
  Report report = SampleTopology(2, false);
  for (TopologyNode& node : report.topology->nodes) node.shares_gpus = true;
  EXPECT_NE(TextOf(report).find("8 GPUs, shared by all nodes, NVLink"), std::string::npos) << TextOf(report);
}

TEST(TopologyText, ListsEveryTree) {
  const Report report = SampleTopology(2, false);
  const std::string text = TextOf(report);
  size_t trees = 0, lines = 0;
  for (const TopologyTree& tree : report.topology->comms[0].trees) trees += tree.same_as < 0 ? 1 : 0;
  for (size_t at = text.find("\n  tree "); at != std::string::npos; at = text.find("\n  tree ", at + 1)) ++lines;
  EXPECT_GT(trees, 1u);
  EXPECT_EQ(lines, std::min<size_t>(trees, 8)) << text;
}

}  // namespace
}  // namespace tacet
