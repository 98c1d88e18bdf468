// SPDX-License-Identifier: Apache-2.0
#include "render/report/junit_render.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "render/report/sample_report.h"

namespace tacet {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

size_t Times(const std::string& text, std::string_view part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(JunitRender, WhatIsTrueOfTheCauseIsNotToldOfThisRun) {
  Report report = SampleHang();
  report.findings[0].explanation = "A rank stalls. A frozen one shows no heartbeat.";
  EXPECT_FALSE(Has(RenderJunit(report), "In general"));
  report.findings[0].meaning = "A rank stalls.";
  report.findings[0].look_alikes = "A frozen one shows no heartbeat.";
  EXPECT_TRUE(
      Has(RenderJunit(report),
          "In general\nA rank stalls.\n\nHow it differs from its look-alikes\nA frozen one shows no heartbeat."));
}

TEST(JunitRender, HasACaseForEachFindingAboveNote) {
  Report report = SampleHang();
  report.findings.push_back(SampleFallbackFinding());
  report.findings.back().severity = Severity::note;
  const std::string xml = RenderJunit(report);
  EXPECT_EQ(Times(xml, "<failure"), 2u);
  EXPECT_TRUE(Has(xml, "<testsuites name=\"tacet\" tests=\"4\" failures=\"2\" errors=\"0\" time=\"1.418\">"));
  EXPECT_TRUE(Has(xml, "<testcase classname=\"tacet.hang\" name=\"rank-stuck-on-host (rank 5)\""));
  EXPECT_TRUE(Has(xml, "<failure type=\"rank-stuck-on-host\" message=\"Rank 5 never issued"));
  EXPECT_TRUE(Has(xml, "stack_rank5.txt:6"));
  EXPECT_TRUE(Has(xml, "What to do now"));
}

TEST(JunitRender, HasACaseForEachFileWithRemarks) {
  const std::string xml = RenderJunit(SampleHang());
  EXPECT_EQ(Times(xml, "classname=\"tacet.input\""), 2u) << "a mere note is no problem";
  EXPECT_EQ(Times(xml, "<skipped"), 2u) << "a cut file is told, and fails nobody's build";
  Report unreadable = SampleHang();
  unreadable.diagnostics[0].severity = "error";
  EXPECT_TRUE(Has(RenderJunit(unreadable), "<error type=\"truncated\" message=\"The last line is cut.\">"));
}

TEST(JunitRender, AHealthyReportIsOneCaseThatPasses) {
  const std::string xml = RenderJunit(SampleHealthy());
  EXPECT_TRUE(Has(xml, "tests=\"1\" failures=\"0\" errors=\"0\""));
  EXPECT_EQ(Times(xml, "<testcase"), 1u);
  EXPECT_EQ(Times(xml, "<failure") + Times(xml, "<error") + Times(xml, "<skipped"), 0u);
}

TEST(JunitRender, UndeterminedIsNotAPass) {
  Report report;
  report.verdict.headline = "The evidence does not tell.";
  EXPECT_TRUE(Has(RenderJunit(report), "<skipped message=\"The evidence does not tell.\">"));
}

TEST(JunitRender, AHangWithoutAKnownCauseFails) {
  Report report;
  report.verdict.status = Status::hang;
  report.verdict.headline = "The job stood still for 60 s; the cause is unknown.";
  report.cannot_tell.push_back({"Who holds it up?", "flight records"});
  const std::string text = RenderJunit(report);
  EXPECT_NE(text.find("failures=\"1\""), std::string::npos) << text;
  EXPECT_NE(text.find("flight records"), std::string::npos) << text;
}

TEST(JunitRender, EscapesWhatXmlCannotHold) {
  const std::string xml = RenderJunit(SampleHostile());
  EXPECT_FALSE(Has(xml, "</script>"));
  EXPECT_TRUE(Has(xml, "&lt;/script&gt;"));
  EXPECT_TRUE(Has(xml, "\\uffff"));
  EXPECT_FALSE(Has(xml, "]]>"));
  for (const char c : xml) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

TEST(JunitRender, IsWellFormedForXmllint) {
  if (std::system("command -v xmllint > /dev/null 2>&1") != 0) GTEST_SKIP() << "no xmllint";
  for (const Report& report : {SampleHang(), SampleHealthy(), SampleHostile(), Report()}) {
    std::FILE* lint = popen("xmllint --noout -", "w");
    ASSERT_NE(lint, nullptr);
    const std::string xml = RenderJunit(report);
    std::fwrite(xml.data(), 1, xml.size(), lint);
    EXPECT_EQ(pclose(lint), 0) << xml;
  }
}

TEST(JunitRender, NamesAConsequenceAsSuch) {
  Report report = SampleHang();
  EXPECT_FALSE(Has(RenderJunit(report), "a consequence of"));
  report.findings.push_back(SampleFallbackFinding());
  report.findings.back().explained_by = "rank-stuck-on-host";
  EXPECT_TRUE(Has(RenderJunit(report), "a consequence of: rank-stuck-on-host"));
}

}  // namespace
}  // namespace tacet
