// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_html.h"

#include "base/json_writer.h"
#include "render/joined_pages.h"
#include "render/page_fill.h"
#include "render/profile/comparison_render.h"
#include "render/profile/profile_page_json.h"
#include "render/profile/profile_text.h"
#include "render/profile/profile_words.h"
#include "report/profile/profile_series.h"

namespace tacet {
namespace {

constexpr int kPlainWidth = 100;

// The parts of the budget of both runs, where both have one: two bars that can be laid side by side.
std::string BudgetsJson(const ProfileComparison& comparison) {
  JsonWriter json;
  json.BeginArray();
  for (const BudgetPart& part : BudgetParts())
    for (const ComparisonLine& line : comparison.lines)
      if (line.name == part.name && line.count_a > 0 && line.count_b > 0)
        json.BeginArray().String(part.name).Double(line.mean_a).Double(line.mean_b).EndArray();
  json.EndArray();
  return json.Take();
}

// In one word, as the exit code sees it: the step where there is one, else any line.
std::string_view Verdict(const ProfileComparison& comparison) {
  if (!comparison.faults.empty()) return "B is faulty";
  if (comparison.nothing_in_common()) return "not comparable";
  if (const ComparisonLine* step = comparison.StepTime()) return Name(step->kind);
  if (comparison.slower > 0) return Name(ChangeKind::slower);
  return Name(comparison.faster > 0 ? ChangeKind::faster : ChangeKind::none);
}

}  // namespace

std::string RenderProfileHtml(const std::vector<ProfileReport>& profiles) {
  std::string plain;
  for (const ProfileReport& profile : profiles)
    plain += (plain.empty() ? "" : "\n") + RenderProfileText(profile, {.width = kPlainWidth});
  const std::string title =
      "Tacet profile" + (profiles.empty() ? std::string() : ": " + std::string(HeadingWord(profiles.front())));
  return FillPage(ProfilePage(), {.title = title, .plain = plain, .json = RenderProfilePageJson(profiles)});
}

std::string RenderComparisonHtml(const ProfileComparison& comparison) {
  const std::string verdict(Verdict(comparison));
  const std::string json = "{\"verdict\":\"" + verdict + "\",\"budgets\":" + BudgetsJson(comparison) + "," +
                           RenderComparisonJson(comparison).substr(1);
  return FillPage(ComparisonPage(), {.title = "Tacet comparison: " + verdict,
                                     .plain = RenderComparisonText(comparison, kPlainWidth, false, false),
                                     .json = json});
}

}  // namespace tacet
