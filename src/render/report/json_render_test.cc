// SPDX-License-Identifier: Apache-2.0
#include "render/report/json_render.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json_reader.h"
#include "render/report/sample_report.h"

namespace tacet {
namespace {

using Kind = JsonValue::Kind;

JsonValue Parsed(const Report& report) {
  JsonValue value;
  bool truncated = true;
  EXPECT_TRUE(ParseJson(RenderJson(report), &value, &truncated));
  EXPECT_FALSE(truncated);
  return value;
}

// Walks a path of keys; a number is an index.
const JsonValue& At(const JsonValue& value, std::initializer_list<const char*> path) {
  static const JsonValue kMissing;
  const JsonValue* at = &value;
  for (const char* step : path) {
    if (at->is_array()) {
      const size_t index = static_cast<size_t>(std::stoi(step));
      EXPECT_LT(index, at->items.size());
      if (index >= at->items.size()) return kMissing;
      at = &at->items[index];
    } else {
      const JsonValue* next = at->Find(step);
      EXPECT_NE(next, nullptr) << "no key " << step;
      if (!next) return kMissing;
      at = next;
    }
  }
  return *at;
}

std::string Keys(const JsonValue& value) {
  std::string keys;
  for (const auto& [key, member] : value.members) keys += (keys.empty() ? "" : " ") + key;
  return keys;
}

TEST(JsonRender, HasTheKeysOfTheContract) {
  const JsonValue report = Parsed(SampleHang());
  EXPECT_EQ(At(report, {"schema"}).text, "tacet.report.v1");
  for (const char* key : {"schema", "verdict", "findings", "job", "inputs", "cannot_tell", "jobs", "ranks", "waits",
                          "diagnostics", "assumptions", "seconds"})
    EXPECT_NE(report.Find(key), nullptr) << key;
  EXPECT_EQ(Keys(At(report, {"verdict"})), "status cause ranks subjects confidence headline heading");
  EXPECT_EQ(Keys(At(report, {"findings", "0", "group"})), "name description ranks");
  EXPECT_EQ(Keys(At(report, {"findings", "0", "operation"})), "kind seq bytes");
  EXPECT_EQ(Keys(At(report, {"findings", "0", "evidence", "0"})), "file line offset excerpt says quote");
  EXPECT_EQ(Keys(At(report, {"inputs", "0"})), "file format rank bytes understood ignored not_understood");
  EXPECT_EQ(Keys(At(report, {"cannot_tell", "0"})), "question missing");
  for (const char* key : {"cause", "severity", "confidence", "ranks", "affected_ranks", "subjects", "explained_by", "group", "operation",
                          "headline", "explanation", "evidence", "fix", "prevent", "title", "status"})
    EXPECT_NE(At(report, {"findings", "0"}).Find(key), nullptr) << key;
  for (const char* key : {"world_size", "ranks_seen", "hosts", "groups", "versions"})
    EXPECT_NE(At(report, {"job"}).Find(key), nullptr) << key;
}

TEST(JsonRender, WritesTheValues) {
  const JsonValue report = Parsed(SampleHang());
  EXPECT_EQ(At(report, {"verdict", "status"}).text, "hang");
  EXPECT_EQ(At(report, {"verdict", "cause"}).text, "rank-stuck-on-host");
  EXPECT_EQ(At(report, {"verdict", "ranks", "0"}).Int(), 5);
  EXPECT_EQ(At(report, {"verdict", "confidence"}).text, "certain");
  EXPECT_EQ(At(report, {"findings", "0", "operation", "kind"}).text, "all_reduce");
  EXPECT_EQ(At(report, {"findings", "0", "operation", "seq"}).Int(), 13);
  EXPECT_EQ(At(report, {"findings", "0", "operation", "bytes"}).Int(), 4198400);
  EXPECT_EQ(At(report, {"findings", "0", "evidence", "0", "line"}).Int(), 6);
  EXPECT_EQ(At(report, {"findings", "1", "severity"}).text, "warning");
  EXPECT_EQ(At(report, {"job", "world_size"}).Int(), 8);
  EXPECT_EQ(At(report, {"job", "versions", "nccl"}).text, "2.28.9");
  EXPECT_EQ(At(report, {"ranks", "5", "role"}).text, "guilty");
  EXPECT_EQ(At(report, {"ranks", "5", "pid"}).Int(), 1555);
  EXPECT_EQ(At(report, {"waits", "0", "to"}).Int(), 5);
  EXPECT_EQ(At(report, {"diagnostics", "0", "count"}).Int(), 1);
  EXPECT_DOUBLE_EQ(At(report, {"seconds"}).Double(), 1.418);
}

TEST(JsonRender, WritesNullForWhatIsNotKnown) {
  Report hang = SampleHang();
  hang.findings[0].operation->bytes = -1;
  hang.jobs[0].world_size = -1;
  const JsonValue report = Parsed(hang);
  EXPECT_EQ(At(report, {"findings", "0", "operation", "bytes"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"findings", "0", "evidence", "1", "line"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"findings", "0", "evidence", "4", "file"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"findings", "1", "group"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"findings", "1", "operation"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"job", "world_size"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"inputs", "24", "rank"}).kind, Kind::null);
  EXPECT_EQ(At(report, {"inputs", "24", "format"}).kind, Kind::null);
  EXPECT_EQ(At(Parsed(SampleHealthy()), {"verdict", "cause"}).kind, Kind::null);
}

TEST(JsonRender, AnEmptyReportKeepsItsShape) {
  const JsonValue report = Parsed(Report());
  EXPECT_EQ(At(report, {"verdict", "status"}).text, "undetermined");
  EXPECT_EQ(At(report, {"job", "world_size"}).kind, Kind::null);
  EXPECT_TRUE(At(report, {"job", "versions"}).is_object());
  EXPECT_TRUE(At(report, {"findings"}).is_array());
}

TEST(JsonRender, KeepsTheAccountingOfEveryFile) {
  const JsonValue report = Parsed(SampleHang());
  for (const JsonValue& input : At(report, {"inputs"}).items)
    EXPECT_EQ(At(input, {"understood"}).Int() + At(input, {"ignored"}).Int() + At(input, {"not_understood"}).Int(),
              At(input, {"bytes"}).Int());
}

TEST(JsonRender, JoinsTheVersionsOfOneLibrary) {
  Report mixed = SampleHang();
  mixed.jobs[0].versions = {{"nccl", "2.27.5"}, {"torch", "2.11.0"}, {"nccl", "2.28.9"}};
  const JsonValue report = Parsed(mixed);
  EXPECT_EQ(At(report, {"job", "versions", "nccl"}).text, "2.27.5, 2.28.9");
  EXPECT_EQ(At(report, {"job", "versions"}).members.size(), 2u);
}

TEST(JsonRender, HostileEvidenceCannotBreakTheDocument) {
  const std::string json = RenderJson(SampleHostile());
  for (const char c : json.substr(0, json.size() - 1)) ASSERT_GE(static_cast<unsigned char>(c), 0x20);
  const JsonValue report = Parsed(SampleHostile());
  const std::string& excerpt = At(report, {"findings", "0", "evidence", "0", "excerpt"}).text;
  EXPECT_EQ(excerpt.find("</script><script>document.title"), 0u);
  EXPECT_NE(excerpt.find("\x1b[31mred"), std::string::npos);
  EXPECT_NE(excerpt.find(std::string("nul\0here", 8)), std::string::npos);
  EXPECT_NE(excerpt.find("bad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd("), std::string::npos)
      << "malformed bytes are replaced";
}

TEST(JsonRender, ClampsSizesThatJsonReadersCannotHold) {
  Report report;
  report.inputs.push_back({"x", "y", 0, UINT64_MAX, UINT64_MAX, 0, 0});
  EXPECT_EQ(At(Parsed(report), {"inputs", "0", "bytes"}).Int(), INT64_MAX);
}

}  // namespace
}  // namespace tacet
