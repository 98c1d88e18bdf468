// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/file_rank.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsSeparator(char c) { return c == '_' || c == '-' || c == '.' || c == '=' || c == ':'; }

template <size_t N>
bool IsOneOf(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// No job has more ranks; larger numbers are dates, job numbers and process ids.
constexpr int32_t kLargestRank = 999'999;

std::optional<Rank> NumberAt(std::string_view text) {
  int32_t value = 0;
  if (text.empty() || !IsDigit(text.front()) || !TakeNumber(text, &value) || value > kLargestRank) return std::nullopt;
  return Rank{value};
}

// The letters that end at `end`.
std::string_view WordBefore(std::string_view name, size_t end) {
  size_t begin = end;
  while (begin > 0 && IsLetter(name[begin - 1])) --begin;
  return name.substr(begin, end - begin);
}

// "...rank3...", "...rank_3...", "...rank-03...": the last such number in the name ("node_rank1_rank3" is rank 3).
// "local_rank3" and "node_rank3" number something else, and "frank3" is a person.
std::optional<Rank> AfterRankWord(std::string_view name) {
  static constexpr std::string_view kGlobal[] = {"", "global", "world", "nccl", "mpi", "torch", "dist"};
  std::optional<Rank> found;
  for (size_t at = name.find("rank"); at != std::string_view::npos; at = name.find("rank", at + 4)) {
    if (!IsOneOf(WordBefore(name, at), kGlobal)) continue;
    if (at > 0 && IsSeparator(name[at - 1])) {
      const std::string_view before = WordBefore(name, at - 1);
      if (before == "local" || before == "node") continue;
    }
    size_t from = at + 4;
    while (from < name.size() && IsSeparator(name[from])) ++from;
    if (auto rank = NumberAt(name.substr(from))) found = rank;
  }
  return found;
}

// A number of a name and the word it belongs to.
struct NamedNumber {
  std::string_view word;    // "worker" of "worker3" and "worker_3"; empty for "3.log"
  bool attached = false;    // no separator between them
  bool in_a_title = false;  // words go on behind it: "cuda_802_not_ready", not "train_3_stdout"
  std::optional<Rank> rank;
};

std::vector<NamedNumber> NumbersIn(std::string_view name) {
  std::vector<NamedNumber> numbers;
  for (size_t i = 0; i < name.size();) {
    if (!IsDigit(name[i])) {
      ++i;
      continue;
    }
    NamedNumber number;
    number.attached = i > 0 && IsLetter(name[i - 1]);
    number.word = WordBefore(name, number.attached || i == 0 ? i : i - 1);
    number.rank = NumberAt(name.substr(i));
    while (i < name.size() && IsDigit(name[i])) ++i;
    const std::string_view behind = name.substr(i);
    number.in_a_title = behind.size() > 1 && (behind[0] == '_' || behind[0] == '-') && IsLetter(behind[1]) &&
                        !behind.substr(1).starts_with("std") && !behind.substr(1).starts_with("out") &&
                        !behind.substr(1).starts_with("err") && !behind.substr(1).starts_with("log");
    if (i < name.size() && IsLetter(name[i])) number = {"", true, false, std::nullopt};  // "70b", "8x", "2nd"
    numbers.push_back(number);
  }
  return numbers;
}

// "messages.1" and "train.log.1" are older turns of a log.
bool IsRotated(std::string_view name) {
  static constexpr std::string_view kLogs[] = {"log", "out", "err", "txt", "dmesg", "messages", "syslog", "kern"};
  const size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot + 1 < name.size() &&
         name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos &&
         IsOneOf(WordBefore(name, dot), kLogs);
}

// "_dump_12", "3.log", "worker3.out", "nccl_trace.7.pickle": the only number of the name, unless it is one of something
// else. A second number makes it doubtful: "nccl.node01.12345.log" ends in a process id.
std::optional<Rank> LoneNumber(std::string_view name) {
  static constexpr std::string_view kWorkers[] = {"worker", "trainer", "task", "proc", "process", "replica"};
  static constexpr std::string_view kOutputs[] = {"log",   "out",  "err",   "stdout", "stderr",
                                                  "trace", "dump", "stack", "profile"};
  static constexpr std::string_view kOthers[] = {
      "pid",       "node",  "host",    "slurm",   "job",   "jobid",   "step",       "steps", "iter",
      "iteration", "epoch", "attempt", "restart", "v",     "version", "port",       "core",  "seed",
      "run",       "ckpt",  "part",    "size",    "nodes", "spy",     "pyspy",      "gdb",   "strace",
      "perf",      "bt",    "dmesg",   "ip",      "rack",  "shard",   "checkpoint", "exp",   "nranks",
      "world",     "local", "issue",   "ticket",  "bug",   "thread",  "case",       "pr",    "cuda",
      "error",     "errno", "signal",  "exit",    "code",  "xid",     "status",     "rank"};  // one that was refused
                                                                                              // above
  for (const std::string_view packed : {".bz2", ".lz4"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  if (IsRotated(name)) return std::nullopt;
  std::optional<Rank> worker, lone;
  int others = 0;
  for (const NamedNumber& number : NumbersIn(name)) {
    if (IsOneOf(number.word, kWorkers)) {
      if (worker) return std::nullopt;
      worker = number.rank;
      continue;
    }
    ++others;
    const bool fits =
        number.attached ? IsOneOf(number.word, kOutputs) : !number.in_a_title && !IsOneOf(number.word, kOthers);
    lone = fits ? number.rank : std::nullopt;
  }
  if (worker) return worker;
  return others == 1 ? lone : std::nullopt;
}

std::string_view TakeLastPart(std::string_view& path) {
  const size_t slash = path.rfind('/');
  std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return part;
}

// torchrun's log tree: "attempt_0/3/stdout.log". A folder "2024" or "48213" elsewhere is a year or a job.
std::optional<Rank> FromNumberedFolder(std::string_view name, std::string_view folders) {
  const std::string_view folder = TakeLastPart(folders);
  if (folder.empty() || folder.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto rank = NumberAt(folder);
  if (!rank || TakeLastPart(folders).starts_with("attempt")) return rank;
  const bool output = name.starts_with("stdout") || name.starts_with("stderr") || name.starts_with("error");
  return output && rank->value < 1990 ? rank : std::nullopt;
}

}  // namespace

std::optional<Rank> RankFromPath(std::string_view path) {
  const std::string lower = LowerCase(path);
  std::string_view folders = lower;
  const std::string_view name = TakeLastPart(folders);
  if (auto rank = AfterRankWord(name)) return rank;
  std::string_view rest = folders;
  for (int level = 0; level < 3 && !rest.empty(); ++level) {
    if (auto rank = AfterRankWord(TakeLastPart(rest))) return rank;
  }
  if (auto rank = LoneNumber(name)) return rank;
  return FromNumberedFolder(name, folders);
}

std::optional<std::string> DoubtfulStem(std::string_view path) {
  // A worker's number is its own, and a dump or a trace is named by the program that wrote it.
  static constexpr std::string_view kTelling[] = {"worker", "trainer", "replica", "trace", "dump"};
  const std::string lower = LowerCase(path);
  std::string_view folders = lower;
  const std::string_view name = TakeLastPart(folders);
  if (AfterRankWord(name)) return std::nullopt;
  for (std::string_view rest = folders; !rest.empty();)
    if (AfterRankWord(TakeLastPart(rest))) return std::nullopt;
  std::string stem;
  if (!LoneNumber(name)) {
    // "3/stderr.log"; torchrun's own tree needs no neighbours.
    if (!FromNumberedFolder(name, folders) || TorchrunPlaceOf(lower)) return std::nullopt;
    TakeLastPart(folders);
    stem = std::string(folders) + "/#/";
    return stem.append(name);
  }
  for (const NamedNumber& number : NumbersIn(name))
    if (IsOneOf(number.word, kTelling)) return std::nullopt;
  stem = std::string(folders) + '/';
  for (const char c : name)
    if (!IsDigit(c))
      stem += c;
    else if (stem.back() != '#')
      stem += '#';
  return stem;
}

std::optional<TorchrunPlace> TorchrunPlaceOf(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789";
  TakeLastPart(path);
  const std::string_view local_rank = TakeLastPart(path);
  if (local_rank.empty() || local_rank.find_first_not_of(kDigits) != std::string_view::npos) return std::nullopt;
  TorchrunPlace place{{}, path};
  std::string_view attempt = TakeLastPart(path);
  if (!TakeLiteral(attempt, "attempt_") || attempt.empty() ||
      attempt.find_first_not_of(kDigits) != std::string_view::npos)
    return std::nullopt;
  place.run = path;
  return place;
}

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace tacet
