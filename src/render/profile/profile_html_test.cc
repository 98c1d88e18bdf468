// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <regex>

#include "base/json_reader.h"
#include "render/joined_pages.h"
#include "render/profile/profile_page_json.h"
#include "render/profile/sample_profile.h"
#include "report/profile/recorded_profile.h"

namespace tacet {
namespace {

size_t Occurrences(std::string_view text, std::string_view part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

JsonValue Parse(const std::string& text) {
  JsonValue value;
  bool cut = true;
  EXPECT_TRUE(ParseJson(text, &value, &cut));
  EXPECT_FALSE(cut);
  return value;
}

TEST(ProfileHtml, FillsEveryMark) {
  const std::string html = RenderProfileHtml({SampleProfile(4, 3)});
  EXPECT_NE(html.find("<title>Tacet profile: communication-bound</title>"), std::string::npos);
  EXPECT_FALSE(std::regex_search(html, std::regex("\\{\\{[a-z_]+\\}\\}"))) << "a place was not filled";
  EXPECT_NE(html.find("<pre id=\"plain\">COMMUNICATION-BOUND\n"), std::string::npos);
  const std::string compared = RenderComparisonHtml(SampleComparison());
  EXPECT_NE(compared.find("<title>Tacet comparison: slower</title>"), std::string::npos);
  EXPECT_NE(compared.find("before/\\u003cb\\u003e"), std::string::npos);
  EXPECT_FALSE(std::regex_search(compared, std::regex("\\{\\{[a-z_]+\\}\\}"))) << "a place was not filled";
}

TEST(ProfileHtml, HostileNamesStayInsideTheirElement) {
  const std::string html = RenderProfileHtml({SampleHostileProfile()});
  EXPECT_EQ(Occurrences(html, "<script"), Occurrences(ProfilePage(), "<script"));
  EXPECT_EQ(Occurrences(html, "</script"), Occurrences(ProfilePage(), "</script"));
  EXPECT_EQ(Occurrences(html, "<img"), 0u);
}

TEST(ProfileHtml, NeedsNothingFromOutside) {
  for (const std::string_view page : {ProfilePage(), ComparisonPage()}) {
    EXPECT_EQ(Occurrences(page, "://"), Occurrences(page, "http://www.w3.org/2000/svg"));
    for (const char* part :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "unsafe-inline", "<link", "src=\"", "fetch("})
      EXPECT_EQ(Occurrences(page, part), 0u) << part;
    EXPECT_NE(page.find("default-src 'none'"), std::string_view::npos);
  }
}

TEST(ProfileHtml, AThousandRanksAndManyStepsStaySmall) {
  EXPECT_LT(RenderProfileHtml({SampleProfile(1024, 100)}).size(), 400u << 10);
  EXPECT_LT(RenderProfileHtml({SampleProfile(8, 100'000)}).size(), 160u << 10);
}

TEST(ProfilePageJson, JoinsStepsIntoColumnsAndLosesNone) {
  for (const int steps : {1, 239, 240, 241, 100'000}) {
    const JsonValue page = Parse(RenderProfilePageJson({SampleProfile(2, steps)}));
    const JsonValue* columns = page.Find("jobs")->items[0].Find("steps_drawn");
    ASSERT_LE(columns->items.size(), kMostStepColumns);
    int64_t next = 1, longest = 0;
    for (const JsonValue& column : columns->items) {
      ASSERT_EQ(column.items.size(), 5 + BudgetParts().size());
      EXPECT_EQ(column.items[0].Int(), next);
      next += column.items[1].Int();
      longest = std::max(longest, column.items[4].Int());
    }
    EXPECT_EQ(next, steps + 1);
    EXPECT_EQ(longest, 400'000'000) << "the one long step is not averaged away";
  }
}

TEST(ProfilePageJson, PartsOfARankSumToItsStep) {
  const ProfileReport profile = ProfileCase("straggler");
  const JsonValue page = Parse(RenderProfilePageJson({profile}));
  const JsonValue& ranks = *page.Find("jobs")->items[0].Find("ranks");
  ASSERT_EQ(ranks.items.size(), profile.budgets.size());
  for (size_t i = 0; i < ranks.items.size(); ++i) {
    int64_t sum = 0;
    for (size_t part = 6; part < ranks.items[i].items.size(); ++part) sum += ranks.items[i].items[part].Int();
    EXPECT_EQ(sum, profile.budgets[i].step_ns);
  }
}

TEST(ProfilePageJson, NumbersThatAreNoneBecomeNull) {
  ProfileReport profile = SampleProfile(2, 2);
  profile.overlap_ratio = std::numeric_limits<double>::quiet_NaN();
  profile.series[0].values[0] = std::numeric_limits<double>::infinity();
  const std::string text = RenderProfilePageJson({profile});
  EXPECT_EQ(Parse(text).Find("jobs")->items[0].Find("hidden_fraction")->kind, JsonValue::Kind::null);
  for (const char* bad : {":nan", ",nan", "[nan", ":inf", ",inf", "[inf"})
    EXPECT_EQ(text.find(bad), std::string::npos) << bad;
}

}  // namespace
}  // namespace tacet
