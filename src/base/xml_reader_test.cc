// SPDX-License-Identifier: Apache-2.0
#include "base/xml_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace tacet {
namespace {

std::string Walk(std::string_view text) {
  XmlReader xml(text);
  std::string out;
  while (xml.Next()) {
    out += std::to_string(xml.depth()) + std::string(xml.name());
    for (const auto& [name, value] : xml.attributes()) out += " " + std::string(name) + "=" + value;
    out += ";";
  }
  return out + (xml.problem().empty() ? "" : "!");
}

TEST(XmlReader, GivesElementsWithDepthAndAttributes) {
  EXPECT_EQ(
      Walk("<?xml version=\"1.0\"?>\n<system version=\"1\"><cpu numaid='0'>\n<gpu dev=\"3\"/></cpu><cpu/></system>\n"),
      "1system version=1;2cpu numaid=0;3gpu dev=3;2cpu;");
}

TEST(XmlReader, TellsWhereATagStands) {
  XmlReader xml("<a>\n  <b/>\n  <!-- <c/> -->\n  <d/>\n</a>");
  ASSERT_TRUE(xml.Next() && xml.Next());
  EXPECT_EQ(xml.line(), 2u);
  ASSERT_TRUE(xml.Next());
  EXPECT_EQ(xml.name(), "d");
  EXPECT_EQ(xml.line(), 4u);
  EXPECT_EQ(xml.offset(), 29u);
  EXPECT_FALSE(xml.Next());
}

TEST(XmlReader, ExpandsOnlyTheFiveEntitiesAndPlainCharacters) {
  EXPECT_EQ(Walk("<a b=\"&lt;&amp;&quot;&gt;&apos;&#65;&#x42;&other;&\"/>"), "1a b=<&\">'AB&other;&;");
}

TEST(XmlReader, RefusesDeclarationsThatDefineEntities) {
  EXPECT_EQ(Walk("<!DOCTYPE a [<!ENTITY b \"bbb\">]><a c=\"&b;\"/>"), "!");
  EXPECT_EQ(Walk("<!DOCTYPE a><a/>"), "1a;");
}

TEST(XmlReader, KeepsWhatStandsBeforeABreak) {
  EXPECT_EQ(Walk("<a><b c=\"1\"/><d e=\"2"), "1a;2b c=1;!");
  EXPECT_EQ(Walk("<a><b></c></b></a>"), "1a;2b;!");
  EXPECT_EQ(Walk("<a><b/>"), "1a;2b;!");
  EXPECT_EQ(Walk("<a b>"), "!");
  EXPECT_EQ(Walk("< a/>"), "!");
}

TEST(XmlReader, IsBoundedInDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  XmlReader xml(deep);
  size_t most = 0;
  while (xml.Next()) most = xml.depth();
  EXPECT_EQ(most, XmlReader::kDeepest);
  EXPECT_FALSE(xml.problem().empty());
}

}  // namespace
}  // namespace tacet
