// SPDX-License-Identifier: Apache-2.0
#include "render/report/sarif_render.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json_reader.h"
#include "render/report/sample_report.h"

namespace tacet {
namespace {

struct Sarif {
  explicit Sarif(const Report& report) {
    bool truncated = true;
    EXPECT_TRUE(ParseJson(RenderSarif(report), &whole, &truncated));
    EXPECT_FALSE(truncated);
    const JsonValue* runs = whole.Find("runs");
    if (runs && runs->items.size() == 1) run = &runs->items[0];
    EXPECT_NE(run, nullptr);
  }
  const std::vector<JsonValue>& results() const { return run->Find("results")->items; }
  const std::vector<JsonValue>& rules() const { return run->Find("tool")->Find("driver")->Find("rules")->items; }

  JsonValue whole;
  const JsonValue* run = nullptr;
};

const JsonValue& Place(const JsonValue& location) { return *location.Find("physicalLocation"); }

TEST(SarifRender, HasTheShapeOfVersion210) {
  const Sarif sarif(SampleHang());
  EXPECT_EQ(sarif.whole.Find("version")->text, "2.1.0");
  EXPECT_EQ(sarif.run->Find("tool")->Find("driver")->Find("name")->text, "tacet");
  EXPECT_TRUE(sarif.run->Find("invocations")->items.at(0).Find("executionSuccessful")->boolean);
  ASSERT_EQ(sarif.results().size(), 2u);
  for (const JsonValue& result : sarif.results()) {
    const size_t rule = static_cast<size_t>(result.Find("ruleIndex")->Int());
    EXPECT_EQ(sarif.rules().at(rule).Find("id")->text, result.Find("ruleId")->text);
    EXPECT_FALSE(result.Find("message")->Find("text")->text.empty());
  }
  EXPECT_EQ(sarif.results()[0].Find("level")->text, "error");
  EXPECT_EQ(sarif.results()[1].Find("level")->text, "warning");
}

TEST(SarifRender, OneRuleServesAllFindingsOfACause) {
  Report report = SampleHang();
  report.findings.push_back(SampleFallbackFinding());
  const Sarif sarif(report);
  EXPECT_EQ(sarif.rules().size(), 2u);
  EXPECT_EQ(sarif.results().size(), 3u);
  EXPECT_EQ(sarif.results()[2].Find("ruleIndex")->Int(), 1);
}

TEST(SarifRender, PutsTheBestPlaceFirstAndTheOthersBeside) {
  const Sarif sarif(SampleHang());
  const JsonValue& result = sarif.results()[0];
  ASSERT_EQ(result.Find("locations")->items.size(), 1u);
  const JsonValue& best = Place(result.Find("locations")->items[0]);
  EXPECT_EQ(best.Find("artifactLocation")->Find("uri")->text, "stack_rank5.txt");
  EXPECT_EQ(best.Find("region")->Find("startLine")->Int(), 6);
  const auto& related = result.Find("relatedLocations")->items;
  ASSERT_EQ(related.size(), 3u);
  EXPECT_EQ(Place(related[0]).Find("region")->Find("startLine"), nullptr) << "a binary file has no lines";
  EXPECT_EQ(Place(related[0]).Find("region")->Find("byteOffset")->Int(), 188211);
  EXPECT_NE(result.Find("message")->Find("text")->text.find("No kernel log mentions"), std::string::npos)
      << "a statement without a place is told in the message";
}

TEST(SarifRender, WritesPathsAsUris) {
  Report report = SampleHang();
  report.findings[0].evidence[0].file = "a:b c/100%\xc3\xa9.log";
  report.findings[0].evidence[1].file = "/var/log/x.log";
  const Sarif sarif(report);
  const JsonValue& result = sarif.results()[0];
  EXPECT_EQ(Place(result.Find("locations")->items[0]).Find("artifactLocation")->Find("uri")->text,
            "a%3Ab%20c/100%25%C3%A9.log");
  EXPECT_EQ(Place(result.Find("relatedLocations")->items[0]).Find("artifactLocation")->Find("uri")->text,
            "file:///var/log/x.log");
}

TEST(SarifRender, TellsRemarksOnTheInputAsNotifications) {
  const Sarif sarif(SampleHang());
  const auto& notifications = sarif.run->Find("invocations")->items[0].Find("toolExecutionNotifications")->items;
  ASSERT_EQ(notifications.size(), 3u);
  EXPECT_EQ(notifications[0].Find("level")->text, "warning");
  EXPECT_EQ(notifications[0].Find("descriptor")->Find("id")->text, "truncated");
  EXPECT_EQ(notifications[2].Find("level")->text, "note");
}

TEST(SarifRender, ACrashWithoutAKnownCauseIsAResult) {
  Report report;
  report.verdict.status = Status::crash;
  report.verdict.headline = "The job crashed; the cause is unknown.";
  const std::string text = RenderSarif(report);
  EXPECT_NE(text.find("\"ruleId\":\"cause-unknown\""), std::string::npos) << text;
  EXPECT_NE(text.find("the cause is unknown"), std::string::npos);
}

TEST(SarifRender, AHealthyReportHasNoResults) {
  const Sarif sarif(SampleHealthy());
  EXPECT_TRUE(sarif.results().empty());
  EXPECT_TRUE(sarif.rules().empty());
}

TEST(SarifRender, HostileEvidenceCannotBreakTheDocument) {
  const Sarif sarif(SampleHostile());
  const std::string& text = sarif.results()[0].Find("message")->Find("text")->text;
  EXPECT_NE(text.find("\\x1b[31mred"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (const char c : Place(sarif.results()[0].Find("locations")->items[0]).Find("artifactLocation")->Find("uri")->text)
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) ||
                std::string_view("-._~/%").find(c) != std::string_view::npos)
        << c;
}

}  // namespace
}  // namespace tacet
