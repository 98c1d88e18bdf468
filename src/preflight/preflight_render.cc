// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "base/json_writer.h"
#include "preflight/preflight_evidence.h"
#include "render/lint_render.h"
#include "render/render_words.h"
#include "render/text_layout.h"

namespace tacet {
namespace {

void WriteNames(JsonWriter& json, const std::vector<std::string>& names) {
  json.BeginArray();
  for (const std::string& name : names) json.String(name);
  json.EndArray();
}

void WriteHosts(JsonWriter& json, const PreflightEvidence& evidence) {
  json.Key("hosts").BeginArray();
  for (const PreflightHost& host : evidence.hosts) {
    json.BeginObject()
        .Key("name")
        .String(host.name)
        .Key("address")
        .String(host.address)
        .Key("interface")
        .String(host.interface);
    json.Key("ranks").Ints(host.ranks).Key("clock_ms");
    if (host.clock_ms)
      json.Double(*host.clock_ms);
    else
      json.Null();
    if (host.gpus) json.Key("gpu_bus_bytes_per_s").Double(host.gpus->bus_bytes_per_s);
    json.Key("loopback_bytes_per_s").Double(host.loopback_bytes_per_s).Key("facts");
    WriteFacts(json, host.facts);
    json.EndObject();
  }
  json.EndArray();
}

void WriteMeasurements(JsonWriter& json, const PreflightEvidence& evidence) {
  json.Key("links").BeginArray();
  for (const LinkMeasurement& link : evidence.links) {
    json.BeginObject()
        .Key("from")
        .String(evidence.hosts[link.from].name)
        .Key("to")
        .String(evidence.hosts[link.to].name);
    json.Key("bytes_per_s").Double(link.bytes_per_s).Key("rtt_us").Double(link.rtt_us).Key("alone").Bool(link.alone);
    json.Key("promised_bytes_per_s").Double(ExpectedBytesPerS(evidence.hosts[link.from], evidence.hosts[link.to]));
    json.Key("full_size_packets").Bool(link.large).Key("error").String(link.error).EndObject();
  }
  json.EndArray().Key("failed_connections").BeginArray();
  for (const FailedConnection& failed : evidence.failed)
    json.BeginObject()
        .Key("from")
        .String(evidence.hosts[failed.from].name)
        .Key("to")
        .String(evidence.hosts[failed.to].name)
        .Key("error")
        .String(failed.error)
        .EndObject();
  json.EndArray().Key("exchanges").BeginArray();
  for (const RingMeasurement& ring : evidence.rings) {
    json.BeginObject().Key("kind").String(ring.kind).Key("bytes").Int(ring.bytes).Key("seconds").Double(ring.seconds);
    json.Key("predicted_s").Double(ring.predicted_s).Key("error").String(ring.error).EndObject();
  }
  json.EndArray();
}

// "GPUs and PyTorch": a GO says nothing of them.
std::string UncheckedWords(const PreflightReport& report) {
  std::vector<std::string> names;
  names.reserve(report.checks.size());
  for (const PreflightCheck& check : report.checks) {
    if (check.level != CheckLevel::skipped) continue;
    names.push_back(check.id == "gpus"          ? "GPUs"
                    : check.id == "pytorch"     ? "PyTorch"
                    : check.id == "connections" ? "links between hosts"
                                                : check.id);
  }
  std::string words;
  for (size_t i = 0; i < names.size(); ++i)
    words.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
  const bool one = names.size() == 1 && names[0] == "PyTorch";
  return words.empty() ? words : ", but " + words + (one ? " was" : " were") + " not checked";
}

}  // namespace

std::string RenderPreflightJson(const PreflightReport& report) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.preflight.v1").Key("verdict").String(Name(report.verdict));
  json.Key("seconds").Double(report.evidence.seconds).Key("launcher").String(report.evidence.launcher);
  json.Key("size").Int(report.evidence.size).Key("checks").BeginArray();
  for (const PreflightCheck& check : report.checks) {
    json.BeginObject().Key("id").String(check.id).Key("level").String(Name(check.level)).Key("hosts");
    WriteNames(json, check.hosts);
    json.Key("says").String(check.says).Key("advice").String(check.advice).EndObject();
  }
  json.EndArray().Key("missing_ranks").Ints(report.evidence.missing_ranks);
  WriteHosts(json, report.evidence);
  WriteMeasurements(json, report.evidence);
  json.Key("lint").BeginArray();
  for (const LintFinding& finding : report.lint)
    json.BeginObject()
        .Key("kind")
        .String(Name(finding.kind))
        .Key("level")
        .String(Name(finding.level))
        .Key("name")
        .String(finding.name)
        .Key("headline")
        .String(finding.headline)
        .Key("advice")
        .String(finding.advice)
        .EndObject();
  return json.EndArray().EndObject().Take() + "\n";
}

std::string RenderPreflightText(const PreflightReport& report, bool colour, int width) {
  TextPage page(static_cast<size_t>(width), colour);
  const bool go = report.verdict == PreflightVerdict::go;
  const size_t failures =
      static_cast<size_t>(std::count_if(report.checks.begin(), report.checks.end(),
                                        [](const PreflightCheck& check) { return check.level == CheckLevel::fail; }));
  const std::string verdict = go ? "GO" + UncheckedWords(report) : failures > 0 ? "NO-GO" : "UNDETERMINED";
  char head[256];
  std::snprintf(head, sizeof head, "%s  (%s, %s, %.1f s)", verdict.c_str(),
                Count(report.evidence.hosts.size(), "host").c_str(),
                Count(static_cast<uint64_t>(report.evidence.size), "rank").c_str(), report.evidence.seconds);
  page.Line(page.Paint(head, go ? Ink::green : Ink::red));
  page.Blank();
  for (const PreflightCheck& check : report.checks) {
    const bool fail = check.level == CheckLevel::fail, warn = check.level == CheckLevel::warn;
    std::string mark(check.level == CheckLevel::skipped ? "skip" : Name(check.level));
    mark.resize(6, ' ');
    page.Paragraph(page.Paint(mark, fail   ? Ink::red
                                    : warn ? Ink::yellow
                                           : Ink::dim),
                   check.id + ": " + CleanText(check.says), fail ? Ink::strong : Ink::plain);
    if (!check.advice.empty()) page.Paragraph("      ", "do: " + check.advice);
  }
  std::vector<LintFinding> warnings;
  for (const LintFinding& finding : report.lint)
    if (finding.level == LintLevel::warning) warnings.push_back(finding);
  if (!warnings.empty()) {
    page.Heading("Settings");
    return page.Take() + RenderLintLines(warnings);
  }
  return page.Take();
}

}  // namespace tacet
