// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem/document.h"

#include <gtest/gtest.h>

#include "launch/postmortem/run_comparison.h"

namespace tacet {
namespace {

Document Hostile() {
  Document document;
  document.title = "Postmortem: <img src=x onerror=alert(1)>";
  DocumentSection& section = document.sections.emplace_back();
  section.title = "A";
  section.Say("# not a heading\n[link](http://x) <b>");
  section.Code("``` \n</pre><script>");
  section.Table({{"a|b", "c"}, {"x\ny", "</td>"}});
  return document;
}

TEST(Document, MarkdownKeepsEvidenceFromBecomingMarkup) {
  const std::string text = RenderMarkdown(Hostile());
  EXPECT_NE(text.find("\\# not a heading"), std::string::npos);
  EXPECT_NE(text.find("\\[link\\]"), std::string::npos);
  EXPECT_NE(text.find("````text\n"), std::string::npos);  // longer than any fence inside
  EXPECT_NE(text.find("| a\\|b | c |"), std::string::npos);
  EXPECT_NE(text.find("| x y | \\</td\\> |"), std::string::npos);
}

TEST(Document, ANameWithUnderscoresCanBeCopiedFromMarkdown) {
  Document document;
  document.title = "t";
  document.sections.push_back({"A", {}});
  document.sections.back().Say("NCCL_DEBUG and _emphasis_ and __init__");
  EXPECT_NE(RenderMarkdown(document).find("NCCL_DEBUG and \\_emphasis\\_ and \\_\\_init\\_\\_"), std::string::npos)
      << RenderMarkdown(document);
}

TEST(Document, HtmlHoldsNoTagOfTheEvidence) {
  const std::string text = RenderDocumentHtml(Hostile());
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find("<b>"), std::string::npos);
}

TEST(Document, AnEmptySectionIsLeftOut) {
  Document document;
  document.title = "t";
  document.sections.push_back({"Empty", {}});
  EXPECT_EQ(RenderMarkdown(document).find("Empty"), std::string::npos);
}

TEST(RunComparison, ALineIsTheSameWhateverItsNumbersAre) {
  EXPECT_EQ(NormaliseLine("2026-11-15T00:20:00.123456789Z stdout F step 17 loss 0.312"),
            NormaliseLine("2027-01-05T10:21:07.000000001Z stdout F step 2 loss 1.5"));
  EXPECT_EQ(NormaliseLine("node7:4711 comm 0x55d0c8f0"), NormaliseLine("node12:99 comm 0x7f3a"));
  EXPECT_NE(NormaliseLine("rank 3 reads shard 4"), NormaliseLine("rank 3 cannot read shard 4"));
}

}  // namespace
}  // namespace tacet
