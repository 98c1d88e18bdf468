// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_milestones.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_progress.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

constexpr size_t kMarksWithin = 100;  // of a line: behind that it is text
constexpr size_t kMostMarked = 4096;
constexpr size_t kLongestQuote = 200;

char LowerOf(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsLetter(char c) { return LowerOf(c) >= 'a' && LowerOf(c) <= 'z'; }

// "rank0", "Rank 0", "RANK=0", "rank: 0" at the front.
bool TakeRankWord(std::string_view& text, int32_t* rank) {
  constexpr std::string_view kWord = "rank";
  if (text.size() <= kWord.size() || LowerCase(text.substr(0, kWord.size())) != kWord) return false;
  std::string_view rest = text.substr(kWord.size());
  if (!TakeLiteral(rest, "=") && TakeLiteral(rest, ":")) SkipBlanks(rest);
  TakeLiteral(rest, " ");
  if (rest.empty() || !IsDigit(rest[0]) || !TakeNumber(rest, rank) || *rank < 0) return false;
  text = rest;
  return true;
}

// Nothing but times, levels and other marks: no sentence.
bool IsHeadOfLine(std::string_view before) {
  before = Trim(before);
  for (const std::string_view level : {"INFO", "WARNING", "WARN", "DEBUG", "ERROR", "CRITICAL"})
    if (before.ends_with(level)) return true;
  return before.empty() || before.ends_with(']') || before.ends_with(':') || before.ends_with('-') ||
         before.ends_with('|') || before.ends_with(')') || IsDigit(before.back());
}

// What begins behind the opening bracket: "rank0]", "INFO|RANK=0]", "RANK 0)".
RankMark MarkInBrackets(std::string_view inside, char close) {
  const size_t end = inside.substr(0, 48).find(close);
  if (end == std::string_view::npos) return {};
  const std::string_view mark = inside.substr(0, end);
  if (ContainsAny(mark, {"PG ", "ocal", "eer", "roup", "world"})) return {};
  for (size_t at = 0; at < mark.size(); ++at) {
    if (at > 0 && (IsLetter(mark[at - 1]) || mark[at - 1] == '_' || mark[at - 1] == '-')) continue;
    std::string_view rest = mark.substr(at);
    int32_t rank = -1;
    if (!TakeRankWord(rest, &rank) || (!rest.empty() && (IsLetter(rest[0]) || rest[0] == '.'))) continue;
    return {rank, Trim(inside.substr(end + 1))};
  }
  return {};
}

void Keep(int32_t rank, std::string_view text, const SourceRef& source, std::vector<LineOfRank>& lines) {
  const auto at = std::lower_bound(lines.begin(), lines.end(), rank,
                                   [](const LineOfRank& one, int32_t wanted) { return one.rank < wanted; });
  LineOfRank line{rank, std::string(text.substr(0, kLongestQuote)), source};
  if (at != lines.end() && at->rank == rank)
    *at = std::move(line);
  else if (lines.size() < kMostMarked)
    lines.insert(at, std::move(line));
}

// The words that name what was saved: "iteration 18203", "checkpoint-486"; a path without its folders.
std::string NameOfSaved(std::string_view text, const std::string& low) {
  for (const std::string_view word : {"iteration", "step"})
    if (const size_t at = low.find(word); at != std::string::npos) {
      std::string_view rest = text.substr(at + word.size());
      SkipBlanks(rest);
      int64_t number = -1;
      if (TakeNumber(rest, &number) && number >= 0) return std::string(word) + " " + std::to_string(number);
    }
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return "";
  std::string_view name = text.substr(slash + 1);
  name = name.substr(0, name.find_first_of(" \t,;'\")]"));
  while (name.ends_with('.')) name.remove_suffix(1);
  return name.size() >= 3 && name.size() <= 60 ? std::string(name) : "";
}

bool TellsOfSaving(const std::string& low) {
  if (!Contains(low, "checkpoint") && !Contains(low, "model") && !Contains(low, "ckpt")) return false;
  if (!ContainsAny(low, {"saved checkpoint", "checkpoint saved", "saved model", "model saved", "saved the checkpoint",
                         "saved a checkpoint", "saved ckpt", "checkpoint was saved", "last_model_checkpoint: "}))
    return false;
  return !ContainsAny(low, {"not ", "n't", "fail", "error", "will ", "should", "load", "resum", "restor", "previous"});
}

// 10.0.0.7:42118 - "POST /v1/chat/completions HTTP/1.1" 200 OK
std::string AnsweredRequest(std::string_view text, int* status) {
  const size_t protocol = text.find(" HTTP/1.");
  if (protocol == std::string_view::npos) return "";
  const size_t quote = text.substr(0, protocol).rfind('"');
  std::string_view rest = text.substr(protocol + 9);
  if (quote == std::string_view::npos || !TakeLiteral(rest, "\"")) return "";
  SkipBlanks(rest);
  if (!TakeNumber(rest, status)) return "";
  const std::string_view request = text.substr(quote + 1, protocol - quote - 1);
  for (const std::string_view verb : {"GET ", "POST ", "PUT "})
    if (request.starts_with(verb) && request.size() < 120) return std::string(request);
  return "";
}

bool IsFullBar(std::string_view text) { return Contains(text, "100%|"); }

}  // namespace

RankMark FindRankMark(std::string_view line) {
  line = Trim(line);
  const std::string_view head = line.substr(0, kMarksWithin);
  for (size_t at = head.find_first_of("[("); at != std::string_view::npos; at = head.find_first_of("[(", at + 1)) {
    if (!IsHeadOfLine(head.substr(0, at))) break;
    const RankMark mark = MarkInBrackets(line.substr(at + 1), head[at] == '[' ? ']' : ')');
    if (mark.rank >= 0 && !mark.rest.empty()) return mark;
  }
  std::string_view rest = line;
  int32_t rank = -1;
  if (!TakeRankWord(rest, &rank)) return {};
  if (!TakeLiteral(rest, ": ") && !TakeLiteral(rest, " | ") && !TakeLiteral(rest, " - ") && !TakeLiteral(rest, "| "))
    return {};
  return {rank, Trim(rest)};
}

int32_t FindRankAtFront(std::string_view line) {
  if (const RankMark mark = FindRankMark(line); mark.rank >= 0) return mark.rank;
  std::string_view rest = Trim(line);
  int32_t rank = -1;
  return TakeRankWord(rest, &rank) && rest.starts_with(' ') ? rank : -1;
}

void MilestoneReader::Read(std::string_view text, int32_t rank, const SourceRef& source, LogOutline& out) {
  // A bar that is drawn anew: the last state of it counts.
  if (const size_t drawn = text.rfind('\r'); drawn != std::string_view::npos && drawn + 1 < text.size())
    text = text.substr(drawn + 1);
  text = Trim(text);
  if (text.empty() || text.size() > 2000) return;
  bool of_epoch = false;
  const auto progress = FindProgress(text, &of_epoch);
  const bool counts = progress && *progress >= 0 && !of_epoch;
  if (counts && rank >= 0 && (progress_of_.size() < kMostMarked || progress_of_.contains(rank))) {
    const auto [before, is_new] = progress_of_.try_emplace(rank, *progress);
    if (!is_new && *progress > before->second) Keep(rank, text, source, out.at_work);
    before->second = *progress;
  }
  if (FindFinishSign(text) == FinishSign::strong) out.trained = {"training had finished", source};
  const std::string low = LowerCase(text.substr(0, 600));
  // "End time of running main: ..." begins nothing.
  if (out.trained && out.trained.source.line != source.line &&
      ((counts && !IsFullBar(text)) ||
       (BeginsWork(text) && !ContainsAny(low, {"end ", "ended", "finish", "saving", "saved", "complet"}))))
    out.trained = {};
  if (TellsOfSaving(low)) {
    const std::string name = NameOfSaved(text.substr(0, 600), low);
    const bool of_number = name.starts_with("iteration ") || name.starts_with("step ");
    out.saved = {name.empty() ? "a checkpoint"
                 : of_number  ? "the checkpoint of " + name
                              : "checkpoint " + name,
                 source};
    if (name.starts_with("checkpoint")) out.saved.words = name;
  }
  int status = 0;
  if (const std::string request = AnsweredRequest(text, &status); !request.empty()) {
    out.served = status < 400 ? Milestone{request + " " + std::to_string(status), source} : Milestone{};
  } else if (!out.served && Contains(text, "Application startup complete")) {
    out.served = {"Application startup complete", source};
  } else if (ContainsAny(text, {"Application shutdown complete", "Shutting down", "shutting down"})) {
    out.served = {};
  }
  // "Received Signals.SIGTERM death signal, shutting down workers" is torchrun's.
  if (ContainsAny(low, {"sigterm", "sigusr"}) && !Contains(low, "death signal, shutting down workers") &&
      ContainsAny(low, {"exiting", "graceful", "stopping", "shutting down"}))
    out.stopped = {std::string(text.substr(0, kLongestQuote)), source};
}

}  // namespace tacet
