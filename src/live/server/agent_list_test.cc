// SPDX-License-Identifier: Apache-2.0
#include "live/server/agent_list.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

using Names = std::vector<std::string>;

TEST(NodeList, ExpandsAsSlurmDoes) {
  EXPECT_EQ(ExpandNodeList("node1").value(), Names{"node1"});
  EXPECT_EQ(ExpandNodeList("node[1-3,7]").value(), (Names{"node1", "node2", "node3", "node7"}));
  EXPECT_EQ(ExpandNodeList("n[08-11]").value(), (Names{"n08", "n09", "n10", "n11"}));
  EXPECT_EQ(ExpandNodeList("n[098-101]-ib").value(), (Names{"n098-ib", "n099-ib", "n100-ib", "n101-ib"}));
  EXPECT_EQ(ExpandNodeList("a,b[2],c[1-2]").value(), (Names{"a", "b2", "c1", "c2"}));
  EXPECT_EQ(ExpandNodeList("rack[1-2]n[0-1]").value(), (Names{"rack1n0", "rack1n1", "rack2n0", "rack2n1"}));
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* text : {"", "n[", "n]", "n[]", "n[1", "n[1-]", "n[2-1]", "n[a-b]", "n[[1]]", "n[1-99999999999]",
                           "n[1,]", "n[0-65535]x[0-65535]"})
    EXPECT_FALSE(ExpandNodeList(text).ok()) << text;
}

TEST(AgentList, TakesHostsWithAndWithoutPorts) {
  const auto agents = ParseAgents("node1, node2:9000 [::1]:7\n").value();
  ASSERT_EQ(agents.size(), 3u);
  EXPECT_EQ(Show(agents[0]), "node1:9560");
  EXPECT_EQ(Show(agents[1]), "node2:9000");
  EXPECT_EQ(Show(agents[2]), "[::1]:7");
  EXPECT_EQ(Show(ParseAgents("node1", 7000).value()[0]), "node1:7000");
  EXPECT_FALSE(ParseAgents("node:port").ok());
  EXPECT_FALSE(ParseAgents("node:70000").ok());
}

TEST(AgentList, NamesEachAgentOnce) {
  AgentSource source;
  source.fixed = {{"a", 1}, {"a", 2}, {"a", 1}};
  EXPECT_EQ(source.Read().agents.size(), 2u);
}

TEST(AgentList, SaysWhatIsMissing) {
  AgentSource source;
  source.file = "/nowhere/agents";
  source.fixed = {{"a", 1}};
  EXPECT_NE(source.Read().trouble.find("/nowhere/agents"), std::string::npos);
  EXPECT_EQ(source.Read().agents.size(), 1u) << "what can be read is listed";
}

TEST(AgentList, ResolvesAName) {
  const auto agents = ResolveAgents("localhost:81");
  ASSERT_TRUE(agents.ok());
  ASSERT_FALSE(agents.value().empty());
  EXPECT_EQ(agents.value()[0].port, 81);
}

}  // namespace
}  // namespace tacet
