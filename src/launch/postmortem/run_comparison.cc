// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem/run_comparison.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_set>

#include "analysis/process/stack_reading.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/load.h"
#include "launch/collect/bundle_entry.h"
#include "launch/run_folder.h"
#include "model/assembly/assembly.h"
#include "model/assembly/file_rank.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostLogBytes = 64 << 20;
constexpr size_t kMostLines = 2'000'000;

bool IsLogName(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".log") || name.ends_with(".out") || name.ends_with(".err");
}

std::vector<fs::path> LogsOf(const std::string& run) {
  std::vector<fs::path> logs;
  std::error_code error;
  for (fs::recursive_directory_iterator it(run, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(error) && IsLogName(it->path())) logs.push_back(it->path());
  std::sort(logs.begin(), logs.end());
  return logs;
}

bool IsHex(std::string_view word) {
  return word.size() > 3 && word.find_first_not_of("0123456789abcdefABCDEFx") == std::string_view::npos &&
         word.find_first_of("0123456789") != std::string_view::npos;
}

// "W1115 20:34:31.196000 9202 torch/distributed/run.py:851] " and what a launcher prints before any job: its own words
// about variables, lines of stars.
bool SaysNothing(std::string_view line) {
  line = Trim(line);
  if (line.size() > 5 && std::string_view("IWEF").find(line[0]) != std::string_view::npos &&
      line.substr(1, 4).find_first_not_of("0123456789") == std::string_view::npos)
    if (const size_t head = line.find(']'); head != std::string_view::npos) line = Trim(line.substr(head + 1));
  TakeLiteral(line, "WARNING:torch.distributed.run:");
  const bool has_letter = std::any_of(line.begin(), line.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
  });
  return !has_letter || line.starts_with("Setting OMP_NUM_THREADS environment variable");
}

}  // namespace

// 2026-11-15T00:20:00.123456789Z stdout F step 17 loss 0.312 (node7:4711) -> "stdout F step N loss N.N (nodeN:N)"
std::string NormaliseLine(std::string_view line) {
  std::string out;
  const auto is_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (line.size() > 30 && IsDigit(line[0]) && line[4] == '-' && line.find("Z std") < 40) TakeWord(line);
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && is_word(line[end])) ++end;
    if (end == i) {
      out += line[i++];
      continue;
    }
    const std::string_view word = line.substr(i, end - i);
    i = end;
    if (IsHex(word)) {
      out += 'N';
      continue;
    }
    for (size_t k = 0; k < word.size(); ++k)
      if (!IsDigit(word[k]))
        out += word[k];
      else if (k == 0 || !IsDigit(word[k - 1]))
        out += 'N';
  }
  return out;
}

std::optional<DivergingLine> FindDivergingLine(const std::string& run, const std::string& baseline) {
  std::unordered_set<std::string> known;
  for (const fs::path& log : LogsOf(baseline)) {
    const std::string text = ReadSmallFile(log.string(), kMostLogBytes);
    LineReader lines(text);
    for (std::string_view line; known.size() < kMostLines && lines.Next(&line);) known.insert(NormaliseLine(line));
  }
  if (known.empty()) return std::nullopt;
  for (const fs::path& log : LogsOf(run)) {
    const std::string text = ReadSmallFile(log.string(), kMostLogBytes);
    LineReader lines(text);
    uint32_t number = 0;
    for (std::string_view line; lines.Next(&line);) {
      ++number;
      if (SaysNothing(line) || known.contains(NormaliseLine(line))) continue;
      return DivergingLine{fs::path(log).lexically_relative(run).string(), number, std::string(line.substr(0, 2000))};
    }
  }
  return std::nullopt;
}

// "node7:4711:4711 [0] NCCL INFO Channel 00/02 :    0   1   2   3"
std::vector<std::string> FindRings(const std::string& run, size_t most) {
  std::vector<std::string> rings;
  std::set<std::string> seen;
  for (const fs::path& log : LogsOf(run)) {
    const std::string text = ReadSmallFile(log.string(), kMostLogBytes);
    LineReader lines(text);
    for (std::string_view line; rings.size() < most && lines.Next(&line);) {
      const auto rest = After(line, "NCCL INFO Channel ");
      if (!rest) continue;
      std::string_view numbers = *rest;
      int channel = 0, channels = 0;
      if (!TakeNumber(numbers, &channel) || !TakeLiteral(numbers, "/") || !TakeNumber(numbers, &channels)) continue;
      SkipBlanks(numbers);
      // "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0" is a connection, no ring.
      if (!TakeLiteral(numbers, ":") || numbers.find_first_not_of(" \t\r0123456789") != std::string_view::npos)
        continue;
      std::string ring = "channel " + std::to_string(channel) + " of " + std::to_string(channels) + ":";
      while (!numbers.empty()) {
        const std::string_view word = TakeWord(numbers);
        if (!word.empty()) ring += " " + std::string(word);
      }
      if (seen.insert(ring).second) rings.push_back(std::move(ring));
    }
  }
  return rings;
}

std::vector<std::pair<int, std::string>> FindStacks(const std::string& run, const std::vector<int>& ranks) {
  std::vector<Fragment> fragments;
  std::error_code error;
  for (fs::recursive_directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto rank = RankFromPath(name);
    if (!it->is_regular_file(error) || !name.starts_with("stack") || !rank) continue;
    if (std::find(ranks.begin(), ranks.end(), rank->value) == ranks.end()) continue;
    fragments.push_back(ReadFragment(it->path().string(), ReadSmallFile(it->path().string(), 16 << 20), {}));
  }
  std::vector<std::pair<int, std::string>> stacks;
  if (fragments.empty()) return stacks;
  for (const Incident& incident : Assemble(std::move(fragments)))
    for (const StackReading& reading : ReadStacks(incident)) {
      if (reading.thread == nullptr) continue;
      std::string text;
      for (const Frame& frame : incident.stacks.Get(reading.thread->stack)) {
        const std::string file = fs::path(incident.strings.Get(frame.file)).filename().string();
        text +=
            std::string(incident.strings.Get(frame.function)) + " (" + file + ":" + std::to_string(frame.line) + ")\n";
      }
      stacks.emplace_back(reading.rank.value, std::move(text));
    }
  std::sort(stacks.begin(), stacks.end());
  return stacks;
}

Environment VariablesOf(const RunManifest& manifest) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : manifest.inherited) all[name] = value;
  for (const RunSetting& setting : manifest.settings)
    all[setting.name] = setting.kept ? setting.users_value : setting.value;
  return {all.begin(), all.end()};
}

}  // namespace tacet
