// SPDX-License-Identifier: Apache-2.0
#include "render/profile/comparison_render.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json_writer.h"
#include "render/markup_escape.h"
#include "render/profile/profile_words.h"
#include "render/render_words.h"
#include "render/text_layout.h"

namespace tacet {
namespace {

std::string Change(double share) {
  if (!std::isfinite(share)) return "";
  constexpr double kLeastShown = 0.0005;
  char text[32];
  std::snprintf(text, sizeof text, std::fabs(share) < kLeastShown ? "0.0 %%" : "%+.1f %%", share * 100);
  return text;
}

constexpr double kLeastP = 0.001;

std::string Probability(double p) {
  if (p < kLeastP) return "< 0.001";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", p);
  return text;
}

// "p = 0.040", "p < 0.001"
std::string PWords(double p) { return (p < kLeastP ? "p " : "p = ") + Probability(p); }

// "95 % interval"
std::string IntervalName(const ProfileComparison& comparison) {
  char text[48];
  std::snprintf(text, sizeof text, "%.4g %% interval", (1 - comparison.options.alpha) * 100);
  return text;
}

std::string Bandwidth(double gbs) {
  char text[32];
  std::snprintf(text, sizeof text, gbs < 10 ? "%.2f" : "%.1f", gbs);
  return text;
}

bool Differs(const ComparisonLine& line) {
  return line.kind == ChangeKind::slower || line.kind == ChangeKind::faster || line.kind == ChangeKind::more_overlap ||
         line.kind == ChangeKind::less_overlap;
}
bool OnOneSide(const ComparisonLine& line) {
  return line.kind == ChangeKind::only_a || line.kind == ChangeKind::only_b;
}

Ink InkOf(ChangeKind kind) {
  if (kind == ChangeKind::slower) return Ink::red;
  return kind == ChangeKind::faster ? Ink::green : Ink::dim;
}

std::string Headline(const ProfileComparison& comparison) {
  if (!comparison.headline.empty()) return comparison.headline;
  std::string out;
  if (const ComparisonLine* step = comparison.StepTime()) {
    out = "step time: " + std::string(Name(step->kind)) + " (" + DescribeTime(step->mean_a) + " -> " +
          DescribeTime(step->mean_b) + ", " + Change(step->change);
    if (step->count_a > 1 && step->count_b > 1)
      out += ", " + IntervalName(comparison) + " " + Change(step->low) + " to " + Change(step->high) + ", " +
             PWords(step->adjusted_p);
    return out + ")" + comparison.proviso;
  }
  if (comparison.nothing_in_common()) return "not comparable: the two runs have no measure in common";
  if (comparison.tested == 0) return "not comparable: too few values to tell a change from noise";
  return comparison.differs() ? "the operations differ" : std::string(Name(ChangeKind::none));
}

// "+15.0 % to +16.1 %"
std::string Interval(const ComparisonLine& line) {
  char text[64];
  const double low = std::max(line.low, -1.0);  // nothing takes less than no time
  std::snprintf(text, sizeof text, "%+.1f %% to %+.1f %%", low * 100, line.high * 100);
  return text;
}

bool IsTested(const ComparisonLine& line) {
  return line.count_a > 1 && line.count_b > 1 && line.kind != ChangeKind::other_amount;
}

// The test tells the two apart, and the difference is below the least one that counts.
bool IsTooSmall(const ComparisonLine& line, const ComparisonOptions& options) {
  return line.kind == ChangeKind::none && IsTested(line) && line.adjusted_p <= options.alpha;
}

// Tables have no room for sentences.
std::string_view ShortName(const ComparisonLine& line, const ComparisonOptions& options) {
  if (line.kind == ChangeKind::none) return IsTooSmall(line, options) ? "too small" : "-";
  return line.kind == ChangeKind::untested ? "untested" : Name(line.kind);
}

TextRow RowOf(const ComparisonLine& line, const ComparisonOptions& options) {
  const bool tested = IsTested(line);
  return {{CleanLine(line.name)},
          {line.count_a > 0 ? DescribeTime(line.mean_a) : ""},
          {line.count_b > 0 ? DescribeTime(line.mean_b) : ""},
          {Change(line.change)},
          {tested && std::isfinite(line.low) ? Interval(line) : ""},
          {tested ? Probability(line.adjusted_p) : ""},
          {std::string(ShortName(line, options)), InkOf(line.kind)}};
}

// Names of operations are long: in a page's width they stand on a line of their own.
void AddChange(TextPage& page, const ComparisonLine& line, const ComparisonOptions& options) {
  page.Paragraph("  ", CleanLine(line.name));
  const bool both = line.count_a > 0 && line.count_b > 0;
  const bool tested = IsTested(line);
  std::string text = both ? DescribeTime(line.mean_a) + " -> " + DescribeTime(line.mean_b)
                          : DescribeTime(line.count_a > 0 ? line.mean_a : line.mean_b);
  if (line.bus_gbs_a > 0 && line.bus_gbs_b > 0)
    text += " (bus " + Bandwidth(line.bus_gbs_a) + " -> " + Bandwidth(line.bus_gbs_b) + " GB/s)";
  if (both && std::isfinite(line.change)) text += ", " + Change(line.change);
  if (tested && std::isfinite(line.low)) text += " (" + Interval(line) + ")";
  if (tested) text += std::string(line.name == "step time" ? ", " : ", corrected ") + PWords(line.adjusted_p);
  const std::string_view result = IsTooSmall(line, options) ? "too small to count" : Name(line.kind);
  page.Paragraph("      ", text + ": " + page.Paint(result, InkOf(line.kind)));
}

void AddTable(TextPage& page, std::string_view heading, const std::vector<const ComparisonLine*>& lines,
              const ProfileComparison& comparison) {
  const ComparisonOptions& options = comparison.options;
  const bool some_small =
      std::any_of(lines.begin(), lines.end(), [&](const ComparisonLine* line) { return IsTooSmall(*line, options); });
  const bool some_same = std::any_of(lines.begin(), lines.end(), [&](const ComparisonLine* line) {
    return line->kind == ChangeKind::none && !IsTooSmall(*line, options);
  });
  if (lines.empty()) return;
  std::string interval = IntervalName(comparison);
  for (char& c : interval) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  const bool corrected = comparison.tested > 1;
  std::vector<TextRow> rows = {{{"LINE"},
                                {"A", Ink::plain, true},
                                {"B", Ink::plain, true},
                                {"CHANGE"},
                                {interval},
                                {corrected ? "P (CORRECTED)" : "P-VALUE"},
                                {"RESULT"}}};
  for (const ComparisonLine* line : lines) rows.push_back(RowOf(*line, options));
  page.Heading(std::string(heading));
  // Where it does not fit, the result would stand in a part of its own, far from its line.
  if (page.Fits(rows, 2)) {
    page.Table(rows, 2, true);
    page.Paragraph("  ",
                   std::string("CHANGE: of the time from A to B, + is slower") +
                       (some_small ? "; too small: a difference that the test sees, below the least that counts" : "") +
                       (some_same ? "; RESULT -: no significant difference" : "") +
                       (corrected ? "; P is corrected for " + Count(comparison.tested, "measure") +
                                        ", an interval is that of its line alone"
                                  : ""),
                   Ink::dim);
    return;
  }
  for (const ComparisonLine* line : lines) AddChange(page, *line, options);
}

void SortByCost(std::vector<const ComparisonLine*>& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const ComparisonLine* a, const ComparisonLine* b) {
    if (Differs(*a) != Differs(*b)) return Differs(*a);
    return std::fabs(a->mean_b - a->mean_a) > std::fabs(b->mean_b - b->mean_a);
  });
}

std::string Sentence(const ComparisonLine& line) {
  std::string out =
      std::string(Name(line.kind)) + ": " + DescribeTime(line.mean_a) + " -> " + DescribeTime(line.mean_b);
  if (std::isfinite(line.change)) out += " (" + Change(line.change) + ")";
  // The step time is tested by itself.
  return out + (line.name == "step time" ? ", " : ", corrected ") + PWords(line.adjusted_p);
}

std::string TestedLines(const ProfileComparison& comparison) {
  std::string out = Count(comparison.tested, "measure") + " tested: " + std::to_string(comparison.slower) +
                    " slower, " + std::to_string(comparison.faster) + " faster";
  size_t same = comparison.tested - comparison.slower - comparison.faster;
  for (const ChangeKind kind : {ChangeKind::more_overlap, ChangeKind::less_overlap}) {
    const auto count =
        static_cast<size_t>(std::count_if(comparison.lines.begin(), comparison.lines.end(),
                                          [kind](const ComparisonLine& line) { return line.kind == kind; }));
    same -= count;
    if (count > 0) out += ", " + std::to_string(count) + " with " + std::string(Name(kind));
  }
  return out + ", " + std::to_string(same) + " without a significant difference";
}

}  // namespace

std::string RenderComparisonText(const ProfileComparison& comparison, int width, bool colour, bool verbose) {
  TextPage page(static_cast<size_t>(std::max(60, width)), colour);
  bool first = true;
  for (const std::string& line : Wrap(Headline(comparison), page.width() - 4)) {
    page.Line((first ? "" : "    ") + page.Paint(line, Ink::strong));
    first = false;
  }
  page.Line("  A " + CleanLine(comparison.name_a));
  page.Line("  B " + CleanLine(comparison.name_b));
  if (comparison.name_a == comparison.name_b) page.Paragraph("  note: ", "A and B are the same path");
  if (comparison.tested > 0) page.Paragraph("  ", TestedLines(comparison));
  for (const std::string& one : comparison.stragglers) page.Paragraph("  ", CleanText(one), Ink::strong);
  for (const std::string& fault : comparison.faults)
    if (fault != comparison.headline) page.Paragraph("  ", CleanText(fault), Ink::red);
  size_t hidden = 0, untested = 0, one_sided = 0, other_amounts = 0;
  std::vector<const ComparisonLine*> summary, lines;
  for (const ComparisonLine& line : comparison.lines) {
    one_sided += OnOneSide(line);
    other_amounts += line.kind == ChangeKind::other_amount;
    // What the headline has told is not told again, but in a list of everything.
    if (!verbose && comparison.headline.empty() && &line == comparison.StepTime()) continue;
    if (line.summary) {
      summary.push_back(&line);
    } else if (verbose || Differs(line)) {
      lines.push_back(&line);
    } else {
      ++hidden;
      untested += line.kind == ChangeKind::untested;
    }
  }
  AddTable(page, "Size classes (geometric means)", summary, comparison);
  // Tables of benchmarks are read by size; the lines of a job by what they cost.
  if (!verbose || summary.empty()) SortByCost(lines);
  if (verbose) {
    AddTable(page, summary.empty() ? "All measures" : "All sizes", lines, comparison);
  } else if (!lines.empty()) {
    page.Heading(std::string("What changed (mean") + (comparison.StepTime() ? " per step" : "") +
                 " of A -> B, change, " + IntervalName(comparison) + ")");
    for (const ComparisonLine* line : lines) AddChange(page, *line, comparison.options);
  }
  if (one_sided > 0)
    page.Paragraph("  ", Count(one_sided, "measure") + (one_sided == 1 ? " occurs" : " occur") +
                             " in one run only: different operations, sizes or groups");
  if (other_amounts > 0)
    page.Paragraph("  ", Count(other_amounts, "measure") + " with different amounts of data: not compared by time");
  if (hidden > 0)
    page.Paragraph("  ", "--verbose shows " + Count(hidden, "more measure") +
                             (untested == 0       ? ""
                              : untested < hidden ? ", " + std::to_string(untested) + " with too few values for a test"
                              : hidden == 1       ? ", which has too few values for a test"
                                                  : ", which have too few values for a test"));
  for (const std::string& remark : comparison.remarks) page.Paragraph("  note: ", CleanText(remark), Ink::dim);
  return page.Take();
}

std::string RenderComparisonJson(const ProfileComparison& comparison) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.compare.v1");
  json.Key("a").String(comparison.name_a);
  json.Key("b").String(comparison.name_b);
  json.Key("differs").Bool(comparison.differs());
  json.Key("regressed").Bool(comparison.Regressed(false));
  json.Key("headline").String(Headline(comparison));
  json.Key("alpha").Double(comparison.options.alpha);
  json.Key("min_change").Double(comparison.options.min_change);
  json.Key("tested").Int(static_cast<int64_t>(comparison.tested));
  json.Key("slower").Int(static_cast<int64_t>(comparison.slower));
  json.Key("faster").Int(static_cast<int64_t>(comparison.faster));
  json.Key("lines").BeginArray();
  for (const ComparisonLine& line : comparison.lines) {
    json.BeginObject();
    json.Key("name").String(line.name);
    json.Key("result").String(Name(line.kind));
    json.Key("summary").Bool(line.summary);
    json.Key("count_a").Int(static_cast<int64_t>(line.count_a));
    json.Key("count_b").Int(static_cast<int64_t>(line.count_b));
    json.Key("mean_a_ns").Double(line.mean_a);
    json.Key("mean_b_ns").Double(line.mean_b);
    json.Key("change").Double(line.change);
    json.Key("interval").BeginArray().Double(line.low).Double(line.high).EndArray();
    json.Key("p").Double(line.p);
    json.Key("adjusted_p").Double(line.adjusted_p);
    if (line.bus_gbs_a >= 0) json.Key("bus_gbs_a").Double(line.bus_gbs_a);
    if (line.bus_gbs_b >= 0) json.Key("bus_gbs_b").Double(line.bus_gbs_b);
    json.EndObject();
  }
  json.EndArray().Key("stragglers").BeginArray();
  for (const std::string& one : comparison.stragglers) json.String(one);
  json.EndArray().Key("faults").BeginArray();
  for (const std::string& fault : comparison.faults) json.String(fault);
  json.EndArray().Key("remarks").BeginArray();
  for (const std::string& remark : comparison.remarks) json.String(remark);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string RenderComparisonJunit(const ProfileComparison& comparison, bool any_line) {
  const ComparisonLine* step = comparison.StepTime();
  const auto gates = [&](const ComparisonLine& line) { return any_line || !step || &line == step; };
  size_t failures = 0, skipped = 0;
  std::string cases;
  for (const std::string& fault : comparison.faults) {
    ++failures;
    cases +=
        "    <testcase classname=\"tacet.compare\" name=\"B works\" time=\"0\">\n      <failure type=\"fault\" "
        "message=\"" +
        EscapeForXml(fault, true) + "\"></failure>\n    </testcase>\n";
  }
  for (const ComparisonLine& line : comparison.lines) {
    if (OnOneSide(line)) continue;
    cases += "    <testcase classname=\"tacet.compare\" name=\"" + EscapeForXml(line.name, true) + "\" time=\"0\">\n";
    const std::string sentence = EscapeForXml(Sentence(line), true);
    if (line.kind == ChangeKind::slower && gates(line)) {
      ++failures;
      cases += "      <failure type=\"slower\" message=\"" + sentence + "\"></failure>\n";
    } else if (line.kind == ChangeKind::untested) {
      ++skipped;
      cases += "      <skipped message=\"" + sentence + "\"></skipped>\n";
    } else {
      cases += "      <system-out>" + sentence + "</system-out>\n";
    }
    cases += "    </testcase>\n";
  }
  const size_t tests = static_cast<size_t>(std::count_if(comparison.lines.begin(), comparison.lines.end(),
                                                         [](const ComparisonLine& line) { return !OnOneSide(line); })) +
                       comparison.faults.size();
  const std::string totals =
      " tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) + "\" errors=\"0\" time=\"0\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tacet\"" + totals +
         ">\n  <testsuite name=\"tacet compare\"" + totals + " skipped=\"" + std::to_string(skipped) + "\">\n" + cases +
         "  </testsuite>\n</testsuites>\n";
}

}  // namespace tacet
