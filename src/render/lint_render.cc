// SPDX-License-Identifier: Apache-2.0
#include "render/lint_render.h"

#include <algorithm>

#include "base/json_writer.h"
#include "render/render_words.h"
#include "render/text_layout.h"

namespace tacet {
namespace {

std::string PlaceWords(const LintPlace& place) {
  std::string words = place.file;
  if (place.line != 0 && !words.empty()) words += ":" + std::to_string(place.line);
  if (!place.holder.empty()) words += (words.empty() ? "" : " (") + place.holder + (words.empty() ? "" : ")");
  return words.empty() ? "the environment" : words;
}

std::string PlacesWords(const LintFinding& finding) {
  std::string words;
  constexpr size_t kMostShown = 3;
  for (size_t i = 0; i < finding.places.size() && i < kMostShown; ++i)
    words += (i == 0 ? "" : ", ") + PlaceWords(finding.places[i]);
  if (finding.place_count > kMostShown) words += " and " + std::to_string(finding.place_count - kMostShown) + " more";
  return words;
}

// "default: 20, 18 before 2.23; read since 2.14 and until 2.29".
std::string HistoryWords(const LintFinding& finding) {
  const bool chosen = finding.standard == "-1" || finding.standard == "-2";
  std::string words =
      finding.standard.empty() ? "" : "default: " + finding.standard + (chosen ? " (chosen by NCCL)" : "");
  if (!words.empty() && !finding.earlier.empty()) words += ", " + finding.earlier;
  if (!finding.since.empty() || !finding.until.empty()) {
    words += words.empty() ? "" : "; ";
    words += "read";
    const std::string product = std::string(ProductOf(finding.name)) + " ";
    const bool one = finding.since == finding.until;
    if (one) words += " by " + product + finding.since + " only";
    if (!one && !finding.since.empty()) words += " since " + product + finding.since;
    if (!one && !finding.until.empty())
      words += (finding.since.empty() ? " until " + product : " and until ") + finding.until;
  }
  return words;
}

void PutFinding(TextPage& page, const LintFinding& finding) {
  const bool warning = finding.level == LintLevel::warning;
  const std::string head = std::string(Name(finding.level)) + "  ";
  page.Paragraph(page.Paint(head, warning ? Ink::yellow : Ink::dim), CleanText(finding.headline),
                 warning ? Ink::strong : Ink::plain);
  const std::string indent = "    ";
  const std::string places = PlacesWords(finding);
  page.Paragraph(indent, (places.starts_with("the command line") ? "on " : "in ") + CleanText(places));
  if (!finding.effect.empty()) page.Paragraph(indent, "meaning: " + finding.effect);
  if (const std::string history = HistoryWords(finding); !history.empty()) page.Paragraph(indent, history);
  page.Paragraph(indent, "fix: " + finding.advice);
}

}  // namespace

std::string RenderLintText(const LintReport& report, const LintTextOptions& options) {
  TextPage page(static_cast<size_t>(options.width), options.colour);
  size_t warnings = 0;
  for (const LintFinding& finding : report.result.findings) warnings += finding.level == LintLevel::warning;
  const size_t notes = report.result.findings.size() - warnings;
  std::string head = Count(report.result.variables, report.environments.size() > 1 ? "setting" : "variable") + " in " +
                     Count(report.environments.size(), "environment");
  const std::string last = report.result.last_nccl > report.result.nccl
                               ? " to " + ReleaseWords(report.result.last_nccl) + ", each process against its own"
                               : "";
  head += report.result.nccl != 0 ? ", checked against NCCL " + ReleaseWords(report.result.nccl) + last
                                  : ", checked against the newest NCCL (--nccl VERSION selects another)";
  std::string counts = warnings > 0 ? Count(warnings, "warning") : "";
  if (notes > 0) counts += (counts.empty() ? "" : " and ") + Count(notes, "note");
  if (report.result.variables == 0 && report.result.findings.empty()) {
    page.Paragraph("", "No variable that lint knows is set here.", Ink::green);
  } else {
    page.Line(
        page.Paint(counts.empty() ? "Nothing to report." : counts + ".", warnings > 0 ? Ink::yellow : Ink::green));
    page.Paragraph("", head + ".");
  }
  for (const LintFinding& finding : report.result.findings) {
    page.Blank();
    PutFinding(page, finding);
  }
  if (!report.not_understood.empty()) {
    page.Blank();
    page.Paragraph("", "No variable was found in " + Count(report.not_understood.size(), "file") + ": " +
                           CleanLine(report.not_understood.front()) +
                           (report.not_understood.size() > 1 ? ", ..." : ""));
  }
  return page.Take();
}

std::string RenderLintJson(const LintReport& report) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.lint.v1").Key("nccl");
  if (report.result.nccl != 0)
    json.String(ReleaseWords(report.result.nccl));
  else
    json.Null();
  json.Key("variables").Int(static_cast<int64_t>(report.result.variables)).Key("findings").BeginArray();
  for (const LintFinding& finding : report.result.findings) {
    json.BeginObject().Key("kind").String(Name(finding.kind)).Key("level").String(Name(finding.level));
    json.Key("name").String(finding.name).Key("value").String(finding.value).Key("headline").String(finding.headline);
    json.Key("default").String(finding.standard).Key("effect").String(finding.effect);
    json.Key("since").String(finding.since).Key("until").String(finding.until).Key("advice").String(finding.advice);
    json.Key("place_count").Int(static_cast<int64_t>(finding.place_count)).Key("places").BeginArray();
    for (const LintPlace& place : finding.places)
      json.BeginObject()
          .Key("file")
          .String(place.file)
          .Key("line")
          .Int(place.line)
          .Key("holder")
          .String(place.holder)
          .EndObject();
    json.EndArray().EndObject();
  }
  json.EndArray().Key("environments").BeginArray();
  for (const GivenEnvironment& environment : report.environments) {
    json.BeginObject().Key("source").String(Name(environment.source)).Key("file").String(environment.file);
    json.Key("holder").String(environment.holder).Key("host").String(environment.host).EndObject();
  }
  json.EndArray().Key("not_understood").BeginArray();
  for (const std::string& file : report.not_understood) json.String(file);
  return json.EndArray().EndObject().Take() + "\n";
}

std::string RenderLintLines(std::span<const LintFinding> findings) {
  std::string text;
  for (const LintFinding& finding : findings)
    text += "  " + std::string(Name(finding.level)) + ": " + CleanLine(finding.headline) + "; " + finding.advice + "\n";
  return text;
}

}  // namespace tacet
