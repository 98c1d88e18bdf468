// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/program_record.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "base/json_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

template <size_t N>
bool IsOneOf(std::string_view key, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

constexpr std::array<std::string_view, 4> kRanks{"rank", "global_rank", "process_rank", "process_index"};
constexpr std::array<std::string_view, 6> kWords{"event", "message", "msg", "text", "name", "level"};
constexpr std::array<std::string_view, 5> kTraces{"traceback", "exc_info", "exception", "stack_trace", "exc_text"};
constexpr std::array<std::string_view, 9> kStamps{"ts",      "time", "timestamp", "@timestamp", "asctime",
                                                  "created", "date", "pid",       "host"};

// "SampleError: could not decode sample 40123", the last line of a traceback.
std::string LastLineOf(std::string_view trace) {
  while (!trace.empty() && std::string_view(" \r\n").find(trace.back()) != std::string_view::npos)
    trace.remove_suffix(1);
  const size_t newline = trace.rfind('\n');
  return std::string(newline == std::string_view::npos ? trace : Trim(trace.substr(newline + 1)));
}

// The frames above it, of the last error of a chain, as a terminal draws a line anew: all of them are one line of the
// text, since the record is.
std::string FramesOf(std::string_view trace, const std::string& mark) {
  const size_t begin = trace.rfind("Traceback (most recent call last)");
  while (!trace.empty() && std::string_view(" \r\n").find(trace.back()) != std::string_view::npos)
    trace.remove_suffix(1);
  const size_t last = trace.rfind('\n');
  if (begin == std::string_view::npos || last == std::string_view::npos || last < begin) return "";
  std::string frames;
  for (const char c : trace.substr(begin, last + 1 - begin))
    if (c == '\n')
      frames += "\r" + mark;
    else if (c != '\r')
      frames += c;
  return frames;
}

// "data_s" and "data_ms" are times: what names its unit in the name is told in seconds.
void AddNumber(std::string_view key, std::string_view raw, std::string& out) {
  std::string name(key);
  double factor = 0;
  for (const auto& [suffix, unit] :
       {std::pair<std::string_view, double>{"_s", 1}, {"_sec", 1}, {"_seconds", 1}, {"_ms", 1e-3}})
    if (key.size() > suffix.size() && key.ends_with(suffix)) {
      name = std::string(key.substr(0, key.size() - suffix.size()));
      if (!name.ends_with("time")) name += "_time";
      factor = unit;
    }
  std::string value(raw);
  double number = 0;
  std::string_view rest = raw;
  if (factor > 0 && factor != 1 && TakeDouble(rest, &number)) {
    char figure[32];
    std::snprintf(figure, sizeof figure, "%.6g", number * factor);
    value = figure;
  }
  out += (out.empty() ? "" : ", ") + name + ": " + value;
}

}  // namespace

bool ReadProgramRecord(std::string_view json, std::string* text) {
  constexpr size_t kLongest = 64 * 1024, kMostFigures = 40;
  json = Trim(json);
  if (json.size() < 12 || json.size() > kLongest || json.front() != '{' || json.back() != '}') return false;
  if (!Contains(json.substr(0, 4096), "rank\"") && !Contains(json.substr(0, 4096), "process_index\"")) return false;
  JsonReader reader(json);
  if (reader.Next() != Token::object_begin) return false;
  std::string key, words, figures, trace, error;
  int64_t rank = -1;
  size_t count = 0;
  for (Token token = reader.Next(); token != Token::object_end || reader.depth() > 0; token = reader.Next()) {
    if (token == Token::end || token == Token::error) return false;
    if (reader.depth() != 1) continue;  // nested figures belong to something else
    if (token == Token::key) {
      key = reader.String();
    } else if (token == Token::number) {
      if (IsOneOf(key, kRanks) && rank < 0)
        rank = reader.Int();
      else if (!IsOneOf(key, kStamps) && ++count <= kMostFigures)
        AddNumber(key, reader.raw(), figures);
    } else if (token == Token::string) {
      if (IsOneOf(key, kTraces))
        trace = reader.String();
      else if (key == "error")
        error = reader.String();
      else if (IsOneOf(key, kWords))
        words += (words.empty() ? "" : " ") + reader.String();
    }
  }
  if (rank < 0 || rank > 1'000'000 || (words.empty() && figures.empty() && trace.empty() && error.empty()))
    return false;
  const std::string mark = "[rank" + std::to_string(rank) + "]: ";
  std::string line;
  if (Contains(trace, "Traceback (most recent call last)")) {
    line = LastLineOf(trace);
    // Any class may be raised; a line by itself is known as an error by its name.
    const std::string_view type = std::string_view(line).substr(0, line.find(':'));
    if (!type.ends_with("Error") && !type.ends_with("Exception")) line.insert(0, "Exception: ");
    line = FramesOf(trace, mark) + line;
  } else {
    line = words;
    if (!error.empty()) line += (line.empty() ? "error: " : ", error: ") + error;
    line += (line.empty() ? "rank: " : ", rank: ") + std::to_string(rank);
    if (!figures.empty()) line += ", " + figures;
  }
  std::replace(line.begin(), line.end(), '\n', ' ');
  *text = mark + line;
  return true;
}

}  // namespace tacet
