// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "render/sample_topology.h"
#include "render/topology_render.h"

namespace tacet {
namespace {

std::string TextOf(const Report& report) { return RenderTopologyText(report, {.colour = false, .width = 160}); }

TEST(TopologyText, ARangeOfNamesHoldsNoNodeThatDiffers) {
  Report report = SampleTopology(6, false);
  EXPECT_NE(TextOf(report).find("gpu000 to gpu005 (6 alike)"), std::string::npos) << TextOf(report);
  report.topology->nodes[1].like = 1;
  report.topology->nodes[1].nics[0].ring_sends += 3;
  const std::string text = TextOf(report);
  EXPECT_NE(text.find("gpu000, gpu002 to gpu005 (5 alike)"), std::string::npos) << text;
  for (size_t n = 0; n < 6; ++n) report.topology->nodes[n].name = "rack/node" + std::to_string(n);
  EXPECT_NE(TextOf(report).find("rack/node0,2-5 (5 alike)"), std::string::npos) << TextOf(report);
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

}  // namespace
}  // namespace tacet
