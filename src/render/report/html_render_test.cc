// SPDX-License-Identifier: Apache-2.0
#include "render/report/html_render.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/json_reader.h"
#include "render/joined_pages.h"
#include "render/report/json_render.h"
#include "render/report/sample_report.h"

namespace tacet {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

size_t Times(std::string_view text, std::string_view part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

std::string_view EmbeddedJson(std::string_view html) {
  constexpr std::string_view kOpen = "id=\"report-json\">";
  const size_t begin = html.find(kOpen);
  if (begin == std::string_view::npos) return {};
  html.remove_prefix(begin + kOpen.size());
  return html.substr(0, html.find("</script>"));
}

TEST(HtmlRender, FillsEveryMark) {
  const std::string html = RenderHtml(SampleHang());
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(Has(html, "<title>Tacet: hang</title>"));
  EXPECT_FALSE(std::regex_search(html, std::regex("\\{\\{[a-z_]+\\}\\}"))) << "a place was not filled";
  EXPECT_TRUE(Has(html, "function waitGraph("));
  EXPECT_TRUE(Has(html, "prefers-color-scheme: dark"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
}

TEST(HtmlRender, CarriesTheWholeReport) {
  for (const Report& report : {SampleHang(), SampleHostile(), SampleHealthy()}) {
    const std::string html = RenderHtml(report);
    JsonValue embedded, plain;
    bool cut = true;
    ASSERT_TRUE(ParseJson(EmbeddedJson(html), &embedded, &cut));
    EXPECT_FALSE(cut);
    ASSERT_TRUE(ParseJson(RenderJson(report), &plain, &cut));
    EXPECT_EQ(embedded.Find("verdict")->Find("headline")->text, plain.Find("verdict")->Find("headline")->text);
    EXPECT_EQ(embedded.Find("inputs")->items.size(), plain.Find("inputs")->items.size());
  }
}

TEST(HtmlRender, HostileEvidenceStaysInsideItsElement) {
  const std::string html = RenderHtml(SampleHostile());
  const size_t own = Times(ReportPage(), "<script");
  EXPECT_EQ(Times(html, "<script"), own);
  EXPECT_EQ(Times(html, "</script"), own);
  EXPECT_EQ(Times(html, "<img"), 0u);
  const std::string_view json = EmbeddedJson(html);
  ASSERT_FALSE(json.empty());
  EXPECT_EQ(json.find_first_of("<>&"), std::string_view::npos);
  EXPECT_FALSE(Has(json, "\xe2\x80\xa8"));
  EXPECT_TRUE(Has(json, "\\u003c/script\\u003e"));
}

TEST(HtmlRender, AMarkInTheEvidenceIsNotFilled) {
  Report report = SampleHang();
  report.findings[0].headline = report.verdict.headline = "{{report}} {{plain}} {{title}}";
  const std::string html = RenderHtml(report);
  EXPECT_EQ(Times(html, "<title>"), 1u);
  EXPECT_EQ(Times(html, "\"schema\":\"tacet.report.v1\""), 1u);
  EXPECT_TRUE(Has(EmbeddedJson(html), "{{report}} {{plain}} {{title}}"));
}

TEST(HtmlRender, ShowsTheTextReportWhereScriptsMayNotRun) {
  const std::string html = RenderHtml(SampleHang());
  EXPECT_TRUE(Has(html, "<pre id=\"plain\">HANG  rank 5 on node-b\n"));
  EXPECT_TRUE(Has(html, "File &quot;/srv/train/train.py&quot;, line 124"));
}

TEST(HtmlRender, NeedsNothingFromOutside) {
  const std::string_view page = ReportPage();
  EXPECT_TRUE(Has(page, "default-src 'none'"));
  EXPECT_FALSE(Has(page, "unsafe-inline"));
  EXPECT_FALSE(Has(page, "src=\""));
  EXPECT_FALSE(Has(page, "<link"));
  EXPECT_FALSE(Has(page, "@import"));
  EXPECT_FALSE(Has(page, "innerHTML"));
  EXPECT_FALSE(Has(page, "outerHTML"));
  EXPECT_FALSE(Has(page, "insertAdjacentHTML"));
  EXPECT_FALSE(Has(page, "eval("));
  EXPECT_EQ(Times(page, "://"), Times(page, "http://www.w3.org/2000/svg")) << "the SVG namespace is the only address";
}

TEST(HtmlRender, SixteenThousandRanksStaySmall) {
  const Report report = SampleLarge(16384);
  const std::string html = RenderHtml(report);
  EXPECT_LT(html.size(), 8u << 20);
  EXPECT_LT(RenderHtml(SampleHang()).size(), 128u << 10);
}

}  // namespace
}  // namespace tacet
