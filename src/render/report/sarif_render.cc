// SPDX-License-Identifier: Apache-2.0
#include "render/report/sarif_render.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string_view>

#include "base/json_writer.h"
#include "render/render_words.h"

namespace tacet {
namespace {

std::string_view LevelOf(Severity severity) {
  switch (severity) {
    case Severity::critical: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "none";
}

std::string_view LevelOf(std::string_view diagnostic_severity) {
  return diagnostic_severity == "error" || diagnostic_severity == "warning" ? diagnostic_severity : "note";
}

// A path as a URI reference. Everything but unreserved characters and the slash is encoded, the colon too: "a:b" would
// read as a scheme.
std::string UriOf(std::string_view path) {
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || c == '/';
    if (plain) {
      out += c;
      continue;
    }
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "%%%02X", static_cast<unsigned char>(c));
    out += buffer;
  }
  return out;
}

void WriteText(JsonWriter& json, std::string_view key, std::string_view text) {
  json.Key(key).BeginObject();
  json.Key("text").String(CleanText(text));
  json.EndObject();
}

void WriteLocation(JsonWriter& json, const CitedEvidence& evidence) {
  json.BeginObject();
  json.Key("physicalLocation").BeginObject();
  json.Key("artifactLocation").BeginObject();
  json.Key("uri").String(UriOf(evidence.file));
  json.EndObject();
  json.Key("region").BeginObject();
  if (evidence.line > 0) {
    json.Key("startLine").Int(evidence.line);
  } else {  // a binary file has no lines, and a region must say where it begins
    json.Key("byteOffset")
        .Int(static_cast<int64_t>(std::min<uint64_t>(evidence.offset, std::numeric_limits<int64_t>::max())));
  }
  if (!QuoteOf(evidence).empty()) WriteText(json, "snippet", QuoteOf(evidence));
  json.EndObject().EndObject();
  if (const std::string says = SaysOf(evidence); !says.empty()) WriteText(json, "message", says);
  json.EndObject();
}

constexpr std::string_view kUnknownCause = "cause-unknown";

std::string HelpOf(const ReportFinding& finding) {
  std::string out;
  for (const std::string& step : finding.fix) out += "- " + step + "\n";
  if (!finding.prevent.empty()) out += "Prevent it:\n";
  for (const std::string& step : finding.prevent) out += "- " + step + "\n";
  return out.empty() ? finding.title : out;
}

void WriteRule(JsonWriter& json, const ReportFinding& finding) {
  json.BeginObject();
  json.Key("id").String(finding.cause);
  WriteText(json, "shortDescription", finding.title.empty() ? finding.cause : finding.title);
  WriteText(json, "fullDescription",
            !finding.meaning.empty()
                ? finding.meaning + "\n\nHow it differs from its look-alikes: " + finding.look_alikes
            : finding.explanation.empty() ? finding.headline
                                          : finding.explanation);
  WriteText(json, "help", HelpOf(finding));
  json.Key("defaultConfiguration").BeginObject();
  json.Key("level").String(LevelOf(finding.severity));
  json.EndObject();
  json.EndObject();
}

// The best place comes first and stands for the finding, the others are related. Statements that rest on an absence
// have no place; they are named in the message.
void WriteResult(JsonWriter& json, const ReportFinding& finding, size_t rule_index) {
  std::vector<const CitedEvidence*> cited;
  std::string message = finding.headline;
  for (const CitedEvidence& evidence : finding.evidence) {
    if (!evidence.file.empty()) cited.push_back(&evidence);
    if (evidence.file.empty() && !evidence.says.empty()) message += "\n" + evidence.says;
  }
  json.BeginObject();
  json.Key("ruleId").String(finding.cause);
  json.Key("ruleIndex").Int(static_cast<int64_t>(rule_index));
  json.Key("level").String(LevelOf(finding.severity));
  WriteText(json, "message", message);
  json.Key("locations").BeginArray();
  if (!cited.empty()) WriteLocation(json, *cited[0]);
  json.EndArray();
  if (cited.size() > 1) {
    json.Key("relatedLocations").BeginArray();
    for (size_t i = 1; i < cited.size(); ++i) WriteLocation(json, *cited[i]);
    json.EndArray();
  }
  json.Key("properties").BeginObject();
  json.Key("status").String(Name(finding.status));
  json.Key("confidence").String(Name(finding.confidence));
  json.Key("ranks").Ints(finding.ranks);
  json.Key("affectedRanks").Ints(finding.affected_ranks);
  if (const std::string place = DescribePlace(finding); !place.empty()) json.Key("operation").String(CleanLine(place));
  json.EndObject().EndObject();
}

void WriteNotification(JsonWriter& json, const ReportDiagnostic& diagnostic) {
  json.BeginObject();
  json.Key("level").String(LevelOf(diagnostic.severity));
  json.Key("descriptor").BeginObject();
  json.Key("id").String(diagnostic.code);
  json.EndObject();
  WriteText(json, "message", diagnostic.message + (diagnostic.hint.empty() ? "" : " " + diagnostic.hint));
  if (!diagnostic.file.empty()) {
    CitedEvidence place;
    place.file = diagnostic.file;
    place.line = diagnostic.line;
    json.Key("locations").BeginArray();
    WriteLocation(json, place);
    json.EndArray();
  }
  json.EndObject();
}

void WriteInvocation(JsonWriter& json, const Report& report) {
  json.BeginObject();
  json.Key("executionSuccessful").Bool(true);
  json.Key("toolExecutionNotifications").BeginArray();
  for (const ReportDiagnostic& diagnostic : report.diagnostics) WriteNotification(json, diagnostic);
  json.EndArray();
  json.EndObject();
}

}  // namespace

std::string RenderSarif(const Report& report) {
  // What happened without a known cause is a result too, or a gate would pass on it.
  std::vector<ReportFinding> findings = report.findings;
  for (ReportFinding& finding : findings) {
    if (!finding.cause.empty()) continue;
    finding.cause = kUnknownCause;
    for (const CannotTell& question : report.cannot_tell)
      finding.fix.push_back(question.question + " " + question.missing);
  }
  if (FailedForUnknownCause(report)) {
    ReportFinding& open = *findings.emplace(findings.begin());
    open.cause = kUnknownCause;
    open.title = "Cause unknown";
    open.status = report.verdict.status;
    open.severity = Severity::critical;
    open.headline = report.verdict.headline;
    for (const CannotTell& question : report.cannot_tell)
      open.fix.push_back(question.question + " " + question.missing);
  }
  std::vector<const ReportFinding*> rules;  // the first finding of each cause
  const auto rule_of = [&](const ReportFinding& finding) {
    return std::find_if(rules.begin(), rules.end(),
                        [&](const ReportFinding* rule) { return rule->cause == finding.cause; });
  };
  for (const ReportFinding& finding : findings)
    if (rule_of(finding) == rules.end()) rules.push_back(&finding);

  JsonWriter json;
  json.BeginObject();
  json.Key("$schema").String("https://json.schemastore.org/sarif-2.1.0.json");
  json.Key("version").String("2.1.0");
  json.Key("runs").BeginArray().BeginObject();
  json.Key("tool").BeginObject();
  json.Key("driver").BeginObject();
  json.Key("name").String("tacet");
  json.Key("rules").BeginArray();
  for (const ReportFinding* rule : rules) WriteRule(json, *rule);
  json.EndArray().EndObject().EndObject();
  json.Key("invocations").BeginArray();
  WriteInvocation(json, report);
  json.EndArray();
  json.Key("results").BeginArray();
  for (const ReportFinding& finding : findings)
    WriteResult(json, finding, static_cast<size_t>(rule_of(finding) - rules.begin()));
  json.EndArray();
  json.EndObject().EndArray().EndObject();
  return json.Take() + '\n';
}

}  // namespace tacet
