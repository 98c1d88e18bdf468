// SPDX-License-Identifier: Apache-2.0
#include "golden_case.h"

#include <algorithm>
#include <stdexcept>

#include "base/json_reader.h"
#include "recorded_files.h"

namespace tacet {
namespace {

std::vector<std::string> TextList(const JsonValue& array) {
  std::vector<std::string> texts;
  for (const JsonValue& item : array.items) texts.emplace_back(item.Text());
  return texts;
}

void Take(const std::string& key, const JsonValue& value, GoldenCase& golden) {
  if (key == "what") return;  // for the reader
  if (key == "status") {
    golden.status = value.Text();
  } else if (key == "cause") {
    golden.cause = value.Text();
  } else if (key == "ranks") {
    for (const JsonValue& rank : value.items) golden.ranks.push_back(static_cast<int>(rank.Int()));
  } else if (key == "seq") {
    if (value.kind == JsonValue::Kind::number) golden.seq = value.Int();
  } else if (key == "headline") {
    golden.headline = TextList(value);
  } else if (key == "remarks") {
    golden.remarks = TextList(value);
  } else if (key == "not_found") {
    golden.not_found = TextList(value);
  } else if (key == "jobs") {
    golden.jobs = static_cast<size_t>(value.Int());
  } else if (key == "exit_code") {
    golden.exit_code = static_cast<int>(value.Int());
  } else {
    throw std::runtime_error(golden.name + "/expected.json: unknown key '" + key + "'");
  }
}

GoldenCase ReadCase(const std::filesystem::path& folder) {
  GoldenCase golden{.name = folder.filename().string(), .input = folder / "input"};
  JsonValue document;
  bool truncated = false;
  if (!ParseJson(ReadWhole(folder / "expected.json"), &document, &truncated) || truncated)
    throw std::runtime_error(golden.name + "/expected.json is no JSON");
  for (const JsonMember& member : document.members) Take(member.name, member.value, golden);
  if (golden.status.empty() || golden.headline.empty())
    throw std::runtime_error(golden.name + "/expected.json: status and headline must be there");
  return golden;
}

}  // namespace

std::vector<GoldenCase> AllGoldenCases() {
  std::vector<GoldenCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(TestFolder("golden")))
    if (entry.is_directory() && std::filesystem::exists(entry.path() / "input"))
      cases.push_back(ReadCase(entry.path()));
  std::sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

}  // namespace tacet
