// SPDX-License-Identifier: Apache-2.0
#include "render/report/json_render.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/json_writer.h"
#include "render/render_words.h"
#include "render/topology/topology_json.h"

namespace tacet {
namespace {

constexpr std::string_view kSchema = "tacet.report.v1";

// What is not known is null, never a magic number or an empty string that a script would have to know about.
void WriteKnown(JsonWriter& json, int64_t value) { value < 0 ? json.Null() : json.Int(value); }
void WriteKnown(JsonWriter& json, const std::string& value) { value.empty() ? json.Null() : json.String(value); }

void WriteSize(JsonWriter& json, uint64_t value) {
  json.Int(static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max())));
}

void WriteStrings(JsonWriter& json, const std::vector<std::string>& strings) {
  json.BeginArray();
  for (const std::string& text : strings) json.String(text);
  json.EndArray();
}

void WriteSubjects(JsonWriter& json, const std::vector<ReportSubject>& subjects) {
  json.BeginArray();
  for (const ReportSubject& subject : subjects) {
    json.BeginObject();
    WriteKnown(json.Key("rank"), subject.rank);
    WriteKnown(json.Key("host"), subject.host);
    WriteKnown(json.Key("pid"), subject.pid);
    WriteKnown(json.Key("device"), subject.device);
    json.EndObject();
  }
  json.EndArray();
}

void WriteGroup(JsonWriter& json, const ReportGroup& group) {
  json.BeginObject();
  json.Key("name").String(group.name);
  json.Key("description").String(group.description);
  json.Key("ranks").Ints(group.ranks);
  json.EndObject();
}

void WriteOperation(JsonWriter& json, const OperationRef& operation) {
  json.BeginObject();
  json.Key("kind").String(Name(operation.kind));
  WriteKnown(json.Key("seq"), operation.seq);
  WriteKnown(json.Key("bytes"), operation.bytes);
  json.EndObject();
}

void WriteEvidence(JsonWriter& json, const CitedEvidence& evidence) {
  json.BeginObject();
  WriteKnown(json.Key("file"), evidence.file);
  json.Key("line");
  evidence.line == 0 ? json.Null() : json.Int(evidence.line);
  WriteSize(json.Key("offset"), evidence.offset);
  json.Key("excerpt").String(evidence.excerpt);
  json.Key("says").String(evidence.says);
  WriteKnown(json.Key("quote"), evidence.quote);
  json.EndObject();
}

void WriteFinding(JsonWriter& json, const ReportFinding& finding) {
  json.BeginObject();
  json.Key("cause").String(finding.cause);
  json.Key("title").String(finding.title);
  json.Key("status").String(Name(finding.status));
  json.Key("severity").String(Name(finding.severity));
  json.Key("confidence").String(Name(finding.confidence));
  json.Key("ranks").Ints(finding.ranks);
  json.Key("affected_ranks").Ints(finding.affected_ranks);
  WriteSubjects(json.Key("subjects"), finding.subjects);
  WriteKnown(json.Key("explained_by"), finding.explained_by);
  json.Key("group");
  finding.group ? WriteGroup(json, *finding.group) : static_cast<void>(json.Null());
  json.Key("operation");
  finding.operation ? WriteOperation(json, *finding.operation) : static_cast<void>(json.Null());
  json.Key("headline").String(finding.headline);
  json.Key("explanation").String(finding.explanation);
  json.Key("evidence").BeginArray();
  for (const CitedEvidence& evidence : finding.evidence) WriteEvidence(json, evidence);
  json.EndArray();
  WriteStrings(json.Key("fix"), finding.fix);
  WriteStrings(json.Key("prevent"), finding.prevent);
  WriteKnown(json.Key("job"), finding.job);
  json.EndObject();
}

void WriteVerdict(JsonWriter& json, const ReportVerdict& verdict, const std::string& heading) {
  json.BeginObject();
  json.Key("status").String(Name(verdict.status));
  WriteKnown(json.Key("cause"), verdict.cause);
  json.Key("ranks").Ints(verdict.ranks);
  WriteSubjects(json.Key("subjects"), verdict.subjects);
  json.Key("confidence").String(Name(verdict.confidence));
  json.Key("headline").String(verdict.headline);
  json.Key("heading").String(heading);
  json.EndObject();
}

// Ranks with different versions of one library give the same key twice, which JSON parsers settle by dropping one.
void WriteVersions(JsonWriter& json, const std::vector<std::pair<std::string, std::string>>& versions) {
  std::map<std::string, std::string> joined;
  for (const auto& [what, version] : versions) {
    std::string& all = joined[what];
    all += (all.empty() ? "" : ", ") + version;
  }
  json.BeginObject();
  for (const auto& [what, version] : joined) json.Key(what).String(version);
  json.EndObject();
}

void WriteJob(JsonWriter& json, const ReportJob& job) {
  json.BeginObject();
  WriteKnown(json.Key("label"), job.label);
  WriteKnown(json.Key("world_size"), job.world_told ? job.world_size : -1);
  json.Key("ranks_seen").Ints(job.ranks_seen);
  WriteStrings(json.Key("hosts"), job.hosts);
  json.Key("groups").BeginArray();
  for (const ReportGroup& group : job.groups) WriteGroup(json, group);
  json.EndArray();
  WriteVersions(json.Key("versions"), job.versions);
  json.EndObject();
}

void WriteRank(JsonWriter& json, const ReportRank& rank) {
  json.BeginObject();
  WriteKnown(json.Key("rank"), rank.rank);
  WriteKnown(json.Key("host"), rank.host);
  WriteKnown(json.Key("pid"), rank.pid);
  WriteKnown(json.Key("role"), rank.role);
  WriteKnown(json.Key("last_operation"), rank.last_operation);
  WriteKnown(json.Key("doing"), rank.doing);
  WriteKnown(json.Key("last_sign"), rank.last_sign);
  WriteStrings(json.Key("evidence_kinds"), rank.evidence_kinds);
  json.EndObject();
}

void WriteWait(JsonWriter& json, const ReportWait& wait) {
  json.BeginObject();
  WriteKnown(json.Key("from"), wait.from);
  WriteKnown(json.Key("to"), wait.to);
  json.Key("where").String(wait.where);
  json.EndObject();
}

void WriteInput(JsonWriter& json, const ReportInput& input) {
  json.BeginObject();
  json.Key("file").String(input.file);
  WriteKnown(json.Key("format"), input.format);
  WriteKnown(json.Key("rank"), input.rank);
  WriteSize(json.Key("bytes"), input.bytes);
  WriteSize(json.Key("understood"), input.understood);
  WriteSize(json.Key("ignored"), input.ignored);
  WriteSize(json.Key("not_understood"), input.not_understood);
  json.EndObject();
}

void WriteDiagnostic(JsonWriter& json, const ReportDiagnostic& diagnostic) {
  json.BeginObject();
  json.Key("severity").String(diagnostic.severity);
  json.Key("code").String(diagnostic.code);
  json.Key("message").String(diagnostic.message);
  WriteKnown(json.Key("file"), diagnostic.file);
  json.Key("line");
  diagnostic.line == 0 ? json.Null() : json.Int(diagnostic.line);
  WriteKnown(json.Key("hint"), diagnostic.hint);
  WriteSize(json.Key("count"), diagnostic.count);
  json.Key("files").BeginArray();
  for (const std::string& file : diagnostic.files) json.String(file);
  json.EndArray();
  json.EndObject();
}

void WriteCannotTell(JsonWriter& json, const CannotTell& open) {
  json.BeginObject();
  json.Key("question").String(open.question);
  json.Key("missing").String(open.missing);
  json.EndObject();
}

void WriteClaim(JsonWriter& json, const ReportClaim& claim) {
  json.BeginObject();
  WriteKnown(json.Key("rank"), claim.rank);
  json.Key("supports").Bool(claim.supports);
  json.Key("reading").String(claim.reading);
  WriteKnown(json.Key("strength"), claim.strength);
  WriteKnown(json.Key("witness"), claim.witness);
  WriteEvidence(json.Key("because"), claim.because);
  json.EndObject();
}

void WriteRival(JsonWriter& json, const ReportRival& rival) {
  json.BeginObject();
  json.Key("cause").String(rival.cause);
  json.Key("ranks").Ints(rival.ranks);
  json.Key("found").Bool(rival.found);
  json.Key("because").String(rival.because);
  json.EndObject();
}

template <typename T>
void WriteList(JsonWriter& json, std::string_view key, const std::vector<T>& items,
               void (*write)(JsonWriter&, const T&)) {
  json.Key(key).BeginArray();
  for (const T& item : items) write(json, item);
  json.EndArray();
}

void WriteWhy(JsonWriter& json, const ReportWhy& why) {
  json.BeginObject();
  WriteEvidence(json.Key("status"), why.status);
  WriteList(json, "claims", why.claims, WriteClaim);
  WriteList(json, "rivals", why.rivals, WriteRival);
  json.EndObject();
}

}  // namespace

std::string RenderJson(const Report& report) {
  JsonWriter json;
  json.BeginObject();
  json.Key("schema").String(kSchema);
  WriteVerdict(json.Key("verdict"), report.verdict, HeadingWord(report));
  WriteList(json, "findings", report.findings, WriteFinding);
  WriteJob(json.Key("job"), report.jobs.empty() ? ReportJob() : report.jobs[0]);
  WriteList(json, "inputs", report.inputs, WriteInput);
  WriteList(json, "cannot_tell", report.cannot_tell, WriteCannotTell);
  WriteList(json, "jobs", report.jobs, WriteJob);
  WriteList(json, "ranks", report.ranks, WriteRank);
  WriteList(json, "waits", report.waits, WriteWait);
  WriteList(json, "diagnostics", report.diagnostics, WriteDiagnostic);
  WriteStrings(json.Key("assumptions"), report.assumptions);
  if (report.why) WriteWhy(json.Key("why"), *report.why);
  if (report.topology) WriteTopology(json.Key("topology"), *report.topology);
  json.Key("seconds").Double(report.seconds);
  json.EndObject();
  return json.Take() + '\n';
}

}  // namespace tacet
