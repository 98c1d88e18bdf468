// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_processes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostListed = 24;

std::vector<std::string_view> ListedNames(std::string_view text, size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most && !(text = Trim(text)).empty()) words.push_back(TakeWord(text));
  return words;
}

bool IsAmong(std::string_view word, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

struct ListColumns {
  size_t pid = kMostListed, state = kMostListed, command = kMostListed;
  bool whole() const { return pid < kMostListed && state < kMostListed && command < kMostListed; }
};

// The command is the last column: only it has blanks.
ListColumns ReadListHead(std::string_view text) {
  ListColumns columns;
  const std::vector<std::string_view> names = ListedNames(text, kMostListed);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "PID") columns.pid = i;
    if (IsAmong(names[i], {"STAT", "STATE", "S"})) columns.state = i;
    if (IsAmong(names[i], {"COMMAND", "CMD", "ARGS"}) && i + 1 == names.size()) columns.command = i;
  }
  return columns;
}

// "Ssl+": the first letter is the state. "t" is a process that a debugger looks at, often for a moment only.
bool ReadTaskState(std::string_view word, char* state) {
  if (word.empty() || word.find_first_not_of("<NLsl+", 1) != std::string_view::npos) return false;
  if (std::string_view("TDZRSIt").find(word[0]) == std::string_view::npos) return false;
  *state = std::string_view("TDZ").find(word[0]) == std::string_view::npos ? 'R' : word[0];
  return true;
}

// The number behind "rank", where nothing but dashes stands before the word.
int32_t RankBehind(std::string_view lower, std::string_view word) {
  for (size_t at = lower.find(word); at != std::string_view::npos; at = lower.find(word, at + 1)) {
    size_t before = at;
    while (before > 0 && lower[before - 1] == '-') --before;
    if (before > 0 && std::string_view(" \t#([,").find(lower[before - 1]) == std::string_view::npos) continue;
    std::string_view rest = lower.substr(at + word.size());
    if (!rest.empty() && (rest[0] == '=' || rest[0] == ':')) rest.remove_prefix(1);
    SkipBlanks(rest);
    int32_t rank = -1;
    constexpr int32_t kLargest = 10'000'000;
    if (!rest.empty() && IsDigit(rest[0]) && TakeNumber(rest, &rank) && rank <= kLargest) return rank;
  }
  return -1;
}

}  // namespace

int32_t RankOfCommand(std::string_view command) {
  const std::string lower = LowerCase(command);
  if (const int32_t rank = RankBehind(lower, "rank"); rank >= 0) return rank;
  for (const std::string_view node : {"node_rank", "node-rank", "machine_rank"})
    if (RankBehind(lower, node) > 0) return -1;
  const int32_t local = RankBehind(lower, "local_rank");
  return local >= 0 ? local : RankBehind(lower, "local-rank");
}

bool ProcessTable::IsHead(std::string_view text) { return ReadListHead(text).whole(); }

bool ProcessTable::TakeHead(std::string_view text) {
  const ListColumns columns = ReadListHead(text);
  if (!columns.whole()) return false;
  pid_ = columns.pid, state_ = columns.state, command_ = columns.command;
  open_ = true;
  return true;
}

bool ProcessTable::TakeRow(std::string_view text, ProcessRow& row) {
  if (!open_) return false;
  std::string_view rest = text;
  std::vector<std::string_view> words;
  while (words.size() < command_ && !(rest = Trim(rest)).empty()) words.push_back(TakeWord(rest));
  const std::string_view command = Trim(rest);
  int64_t pid = -1;
  open_ = words.size() == command_ && !command.empty();
  if (!open_) return false;
  std::string_view digits = words[pid_];
  if (!TakeNumber(digits, &pid) || !digits.empty() || pid <= 0 || !ReadTaskState(words[state_], &row.state))
    return false;
  row.pid = pid;
  row.rank = RankOfCommand(command);
  return true;
}

}  // namespace tacet
