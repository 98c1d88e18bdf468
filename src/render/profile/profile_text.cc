// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_text.h"

#include <algorithm>
#include <cmath>

#include "render/profile/profile_strategy_text.h"
#include "render/profile/profile_words.h"
#include "render/render_words.h"
#include "render/text_layout.h"
#include "report/profile/profile_series.h"

namespace tacet {
namespace {

constexpr size_t kMostRanks = 16, kMostLines = 20;

// " (95 % interval 0.0 % to 28.9 %)"; an interval from 0 to 100 % says only that the value is not known well.
std::string DescribeInterval(double low, double high) {
  if (low < 0.005 && high > 0.995) return " (a rough figure: too few late steps for an interval)";
  return " (95 % interval " + DescribeShare(low) + " to " + DescribeShare(high) + ")";
}

void AddHead(TextPage& page, const ProfileReport& profile) {
  page.Line(page.Paint(UpperCase(HeadingWord(profile)), Ink::strong) +
            (profile.job.empty() ? "" : "  " + CleanLine(profile.job)));
  page.Paragraph("  ", CleanText(profile.headline));
  if (!profile.setup.empty()) page.Paragraph("  ", CleanText(profile.setup), Ink::yellow);
  const std::string article = profile.source == "pipeline timeline" ? "a " : "";
  std::string facts = profile.source.empty() ? "no times" : "from " + article + profile.source;
  const auto ranks = static_cast<uint64_t>(std::max<int64_t>(0, profile.world_size));
  const bool some = !profile.budgets.empty() && profile.budgets.size() < ranks;
  if (ranks > 0) facts += (some ? "; " + std::to_string(profile.budgets.size()) + " of " : "; ") + Count(ranks, "rank");
  if (profile.steps > 0) facts += "; " + Count(profile.steps, "step");
  if (profile.step_ns > 0) facts += "; step " + DescribeTime(static_cast<double>(profile.step_ns));
  page.Paragraph("  ", facts, Ink::dim);
}

// "saves at most 7.7 % of the step", "saves about 13.5 % of the step (95 % interval 0.0 % to 28.9 %)".
std::string DescribeGain(const Advice& advice) {
  const bool about = advice.high > advice.low;
  return std::string(advice.at_most ? "saves at most "
                     : about        ? "saves about "
                                    : "saves ") +
         DescribeShare(advice.gain) + " of the step" + (about ? DescribeInterval(advice.low, advice.high) : "");
}

void AddAdvice(TextPage& page, const ProfileReport& profile) {
  if (profile.advice.empty()) return;
  page.Heading("What would save most");
  int number = 0;
  for (const Advice& advice : profile.advice) {
    page.Paragraph("  " + std::to_string(++number) + ". ", CleanText(advice.what) + ": " + DescribeGain(advice));
    page.Paragraph("     ", CleanText(advice.why), Ink::dim);
  }
}

TextRow BudgetRow(const std::string& name, const TimeBudget& budget) {
  const auto step = static_cast<double>(std::max<int64_t>(1, budget.total_ns()));
  const auto share = [&](int64_t ns) { return TextCell{DescribeShare(static_cast<double>(ns) / step)}; };
  return {{name},
          {DescribeTime(static_cast<double>(budget.total_ns()))},
          share(budget.compute_only_ns),
          share(budget.hidden_ns),
          share(budget.exposed_ns),
          share(budget.copies_ns),
          share(budget.host_wait_ns),
          share(budget.launch_ns),
          share(budget.data_wait_ns)};
}

void AddBudgets(TextPage& page, const ProfileReport& profile, bool verbose) {
  if (profile.budgets.empty()) return;
  page.Heading("Time budget (mean step; the parts sum to it)");
  std::vector<TextRow> rows = {
      {{"RANK"}, {"STEP"}, {"ONLY COMPUTE"}, {"HIDDEN"}, {"EXPOSED"}, {"COPIES"}, {"HOST WAIT"}, {"LAUNCH"}, {"DATA"}}};
  if (profile.budgets.size() > 1) rows.push_back(BudgetRow("mean", profile.mean));
  std::vector<const ProfileRank*> ranks;
  for (const ProfileRank& rank : profile.budgets) ranks.push_back(&rank);
  const bool cut = !verbose && ranks.size() > kMostRanks;
  if (cut) {  // those that compute longest tell most
    std::stable_sort(ranks.begin(), ranks.end(), [](const ProfileRank* a, const ProfileRank* b) {
      return a->mean.compute_ns() > b->mean.compute_ns();
    });
    ranks.resize(kMostRanks);
  }
  for (const ProfileRank* rank : ranks)
    rows.push_back(BudgetRow(rank->rank.known() ? std::to_string(rank->rank.value) : "?", rank->mean));
  page.Table(rows, 2, true);
  page.Paragraph(
      "  ",
      "HIDDEN, EXPOSED: communication with and without compute beside it; HOST WAIT: the GPU is idle and "
      "nothing was launched; LAUNCH: it is idle although work was launched; DATA: host wait in a data loader",
      Ink::dim);
  if (cut)
    page.Paragraph("  ", "... the " + std::to_string(kMostRanks) + " that compute longest of " +
                             std::to_string(profile.budgets.size()) + "; --verbose shows all");
  if (profile.mean.communication_ns() > 0)
    page.Paragraph("  ",
                   DescribeShare(profile.overlap_ratio) + " of communication is hidden" +
                       (profile.mean.compute_ns() < profile.mean.communication_ns()
                            ? "; " + DescribeShare(profile.overlap_efficiency) + " of compute overlaps communication"
                            : "") +
                       (profile.communication_efficiency > 0
                            ? "; communication efficiency: " + DescribeSmallShare(profile.communication_efficiency)
                            : ""));
}

// "mesh_tp x32" sums 32 groups up.
std::string GroupCell(const ProfileTableRow& line) {
  return CleanLine(line.group) + (line.groups > 1 ? " x" + std::to_string(line.groups) : "");
}

// The members of one group, "0-7"; of several, or where they are not known, how many a group has.
std::string MembersCell(const ProfileTableRow& line) {
  std::string_view members = line.members;
  for (const std::string_view word : {"ranks ", "rank "})
    if (line.groups <= 1 && members.starts_with(word)) return CleanLine(members.substr(word.size()));
  if (line.row.group_size <= 0) return "";
  return std::to_string(line.row.group_size) + (line.groups > 1 ? " each" : "");
}

void AddTable(TextPage& page, const ProfileReport& profile, bool verbose) {
  if (profile.table.empty()) return;
  const bool lonely = profile.budgets.size() == 1;  // nobody to compare with: waiting counts as transfer
  page.Heading("Communication (sums over " + std::string(profile.step_ns > 0 ? "all steps" : "the whole recording") +
               std::string(lonely ? "; of one rank, TRANSFER includes its waiting)" : ")"));
  // What names a row comes first: it is repeated where the table is printed in parts.
  std::vector<TextRow> rows = {{{"GROUP"},
                                {"OPERATION", Ink::plain, true},
                                {"UP TO"},
                                {"RANKS"},
                                {"CALLS"},
                                {"BYTES"},
                                {"WAIT"},
                                {"TRANSFER"},
                                {"ALGBW"},
                                {"BUSBW"},
                                {"PEAK"}}};
  size_t shown = 0;
  const std::vector<ProfileTableRow>& table = verbose ? profile.table : profile.table_by_role;
  const bool known_peak =
      std::any_of(table.begin(), table.end(), [](const ProfileTableRow& line) { return line.share_of_peak > 0; });
  bool some_wait = false;
  for (const ProfileTableRow& line : table) {
    if (!verbose && shown++ >= kMostLines) break;
    const CommunicationRow& row = line.row;
    some_wait = some_wait || (row.compared > 0 && row.plausible);
    const bool sized = row.bytes > 0 && row.plausible;
    rows.push_back({{GroupCell(line)},
                    {std::string(Name(row.kind))},
                    {row.size_class > 0 ? DescribeSizeClass(row.size_class) : "?"},
                    {MembersCell(line)},
                    {std::to_string(row.calls)},
                    {row.bytes > 0 ? DescribeSize(row.bytes) : "?"},
                    {row.compared == 0 || !row.plausible ? "?" : DescribeTime(static_cast<double>(row.mean_wait_ns))},
                    {row.plausible ? DescribeTime(static_cast<double>(row.transfer_ns)) : "?"},
                    {sized ? DescribeRate(row.algorithm_gbs) : "?"},
                    {sized ? DescribeRate(row.bus_gbs) : "?"},
                    {line.share_of_peak > 0 ? DescribeSmallShare(line.share_of_peak)
                     : known_peak           ? "?"
                                            : ""}});
  }
  page.Table(rows, 2, verbose);
  page.Paragraph("  ",
                 std::string("UP TO: size of one operation; ") +
                     (some_wait ? "WAIT: for the last rank, mean of the ranks; " : "") +
                     "ALGBW, BUSBW: GB/s of the transfer, 1e9 bytes per second" +
                     (known_peak ? "; PEAK: BUSBW as a share of the link's peak" : ""),
                 Ink::dim);
  if (!verbose && table.size() > kMostLines)
    page.Paragraph("  ", "... and " + std::to_string(table.size() - kMostLines) + " more lines (--verbose)");
  if (profile.groups.size() < 2) return;
  std::string shares;
  for (size_t i = 0; i < profile.groups.size() && i < 8; ++i)
    shares += (i > 0 ? ", " : "") + CleanLine(profile.groups[i].group) + " " + DescribeShare(profile.groups[i].share);
  page.Paragraph("  share of the step by group: ", shares);
}

void AddClocks(TextPage& page, const ProfileReport& profile) {
  size_t compared = 0, applied = 0;
  int64_t largest = 0;
  for (const RankClock& clock : profile.clocks.clocks) {
    compared += clock.rounds > 0;
    applied += clock.applied;
    if (clock.applied) largest = std::max(largest, std::abs(clock.offset_ns));
  }
  if (compared < 2) return;
  page.Heading("Clocks");
  // The reference is one of those compared.
  std::string text =
      (compared == 2 ? "The clock of 1 rank was" : "The clocks of " + Count(compared - 1, "rank") + " were") +
      " compared with rank " + std::to_string(profile.clocks.reference.value) + "'s; " +
      (compared == 2 ? applied > 0 ? std::string("it needed correction") : std::string("it needed no correction")
                     : (applied > 0 ? std::to_string(applied) : std::string("none")) + " needed correction");
  if (applied > 0) text += " (by up to " + DescribeTime(static_cast<double>(largest)) + ")";
  text += profile.clocks.worst_error_ns > 0
              ? "; remaining error up to " + DescribeTime(static_cast<double>(profile.clocks.worst_error_ns))
              : (compared == 2 ? "; both agree" : "; all agree");
  page.Paragraph("  ", text);
}

void AddStragglers(TextPage& page, const ProfileReport& profile) {
  if (profile.table.empty() && profile.stragglers.stragglers.empty()) return;
  page.Heading("Stragglers");
  if (profile.stragglers.stragglers.empty()) {
    const std::string why = WhyNotJudged(profile);
    page.Paragraph("  ", !why.empty() ? "Not judged: " + why
                         : profile.stragglers.rounds > 0
                             ? "None: no rank costs the others " + DescribeShare(StragglerLimits::kMinCost) +
                                   " of the step or more (" + Count(profile.stragglers.rounds, "operation") + ")"
                             : "None");
    return;
  }
  std::vector<TextRow> rows = {{{"RANK"},
                                {"LATE BY"},
                                {"OF STEP"},
                                {"COST"},
                                {"95 % INTERVAL"},
                                {"Z"},
                                {"STEPS"},
                                {"WHEN"},
                                {"WHY"},
                                {"CONFIDENCE"}}};
  for (const Straggler& one : profile.stragglers.stragglers)
    rows.push_back({{std::to_string(one.rank.value)},
                    {DescribeTime(static_cast<double>(one.late_ns))},
                    {DescribeShare(one.share)},
                    {DescribeShare(one.cost)},
                    {one.high > one.low ? DescribeShare(one.low) + " to " + DescribeShare(one.high) : ""},
                    {one.z > 0 ? std::to_string(std::lround(one.z)) : ""},
                    {std::to_string(one.late_steps) + " of " + std::to_string(one.steps)},
                    {std::string(Name(one.pattern))},
                    {std::string(Name(one.origin))},
                    {std::string(Name(one.trust)) + (one.origin == StragglerOrigin::stage ? " (stage times)" : "")}});
  page.Table(rows, 2, true);
  const StragglerReport& found = profile.stragglers;
  const bool timed =
      std::any_of(found.stragglers.begin(), found.stragglers.end(), [](const Straggler& one) { return one.z > 0; });
  const bool stalls = std::any_of(found.stragglers.begin(), found.stragglers.end(),
                                  [](const Straggler& one) { return one.pattern == StragglerPattern::intermittent; });
  page.Paragraph("  ",
                 std::string("LATE BY: behind the median rank, per step") +
                     (stalls ? "; of an intermittent straggler the mean of its late steps" : "") +
                     (timed ? "; Z: lateness over its standard error" : "") +
                     "; CONFIDENCE: that the rank is late, not how much it costs",
                 Ink::dim);
  if (found.cost_share <= 0) return;
  const CostInterval interval = IntervalOfCost(found);
  page.Paragraph("  ", "cost: " + DescribeShare(found.cost_share) + " of every rank's step" +
                           (interval.known() ? DescribeInterval(interval.low, interval.high) : "") +
                           "; without it throughput would be " + DescribeShare(found.lost_throughput()) + " higher");
}

}  // namespace

std::string RenderProfileText(const ProfileReport& profile, const ProfileTextOptions& options) {
  TextPage page(static_cast<size_t>(std::max(60, options.width)), options.colour);
  AddHead(page, profile);
  AddAdvice(page, profile);
  AddBudgets(page, profile, options.verbose);
  AddTable(page, profile, options.verbose);
  AddStragglers(page, profile);
  AddStrategies(page, profile, options.verbose);
  AddClocks(page, profile);
  // What the stragglers' part says is not said again.
  std::vector<std::string> remarks = profile.remarks;
  if (const std::string why = WhyNotJudged(profile); !why.empty() && profile.stragglers.stragglers.empty())
    std::erase_if(remarks, [&](const std::string& remark) { return remark.starts_with(why); });
  if (!remarks.empty()) {
    page.Heading("Remarks");
    for (const std::string& remark : remarks) page.Paragraph("  - ", CleanText(remark));
  }
  return page.Take();
}

std::string RenderDefinitions(int width) {
  TextPage page(static_cast<size_t>(std::max(60, width)), false);
  for (const Definition& one : ProfileDefinitions()) {
    page.Line(one.name);
    page.Paragraph("    ", one.definition);
  }
  return page.Take();
}

}  // namespace tacet
