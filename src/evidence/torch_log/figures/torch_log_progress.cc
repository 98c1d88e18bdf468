// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_progress.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kLookAhead = 600;  // a step number stands early in its line

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsAlphanumeric(char c) { return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z'); }

bool StartsWithWord(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i)
    if (Lower(text[i]) != word[i]) return false;
  return text.size() == word.size() || IsDigit(text[word.size()]) ||
         (!IsAlphanumeric(text[word.size()]) && text[word.size()] != '_');
}

// The number behind a word: "step 10", "step: 10", "Step[ 10/100]", "'epoch': 0.03", "iteration      100/  500".
std::optional<int64_t> NumberBehind(std::string_view text) {
  size_t marks = 0;
  while (!text.empty() && !IsDigit(text[0])) {
    if (text[0] != ' ' && text[0] != '\t') {
      if (std::string_view(":=[#('\"/").find(text[0]) == std::string_view::npos || ++marks > 3) return std::nullopt;
    }
    text.remove_prefix(1);
  }
  int64_t value = 0;
  if (!TakeNumber(text, &value)) return std::nullopt;
  // nccl-tests: "step: 1048576(bytes)", "step: 2(factor)" is how its sizes grow.
  if (text.starts_with("(bytes)") || text.starts_with("(factor)")) return std::nullopt;
  return value;
}

// "loss: nan", "'loss': nan": a value all the same. "best loss: inf" is where programs begin.
bool IsNanBehind(std::string_view text) {
  bool marked = false;
  while (!text.empty() && std::string_view(" \t:='\"").find(text[0]) != std::string_view::npos) {
    marked = marked || text[0] == ':' || text[0] == '=';
    text.remove_prefix(1);
  }
  TakeLiteral(text, "-");
  return marked && StartsWithWord(text, "nan");
}

// MMEngine: "Epoch(train)  [3][ 100/1832]", "Iter(train) [  100/40000]"; "Epoch(val)" is no progress of the training.
std::string_view WithoutPhase(std::string_view behind) {
  TakeLiteral(behind, "(train)");
  return behind;
}

// "max_step: 100" and "warmup_iter=10" are settings.
bool IsSetting(std::string_view before) {
  if (!before.ends_with('_')) return false;
  before.remove_suffix(1);
  for (const std::string_view word :
       {"max", "num", "total", "n", "per", "warmup", "every", "save", "eval", "log", "decay", "stop"})
    if (before.size() >= word.size() && StartsWithWord(before.substr(before.size() - word.size()), word) &&
        (before.size() == word.size() || !IsAlphanumeric(before[before.size() - word.size() - 1])))
      return true;
  return false;
}

// "Loading weights:  10%|", "Writing model shards: 100%|": what is counted comes before the training, or after it.
bool IsBarOfPreparation(std::string_view text) {
  text = text.substr(text.rfind('\r') + 1);
  const size_t begin = text.find_first_not_of(" ");
  if (begin == std::string_view::npos) return false;
  text.remove_prefix(begin);
  for (const std::string_view word :
       {"loading", "writing", "saving", "downloading", "fetching", "uploading", "extracting", "copying", "tokenizing",
        "running tokenizer", "map", "filter", "resolving", "preprocessing", "caching"})
    if (StartsWithWord(text, word)) return text.find('|') < 80;
  return false;
}

// " 45%|████▌     | 450/1000 [00:12<00:15, 36.1it/s]" -> 450
std::optional<int64_t> FindBarCount(std::string_view text) {
  const bool is_bar = (Contains(text, "it/s") || Contains(text, "s/it")) && !IsBarOfPreparation(text);
  for (size_t slash = text.find('/'); is_bar && slash != std::string_view::npos; slash = text.find('/', slash + 1)) {
    size_t begin = slash;
    while (begin > 0 && IsDigit(text[begin - 1])) --begin;
    std::string_view behind = text.substr(slash + 1), number = text.substr(begin, slash - begin);
    int64_t total = 0, value = 0;
    if (begin == slash || !TakeNumber(behind, &total) || !behind.starts_with(" [") || !TakeNumber(number, &value))
      continue;
    return value;
  }
  return std::nullopt;
}

// "Epoch: [0][ 10/5005]", "Train Epoch: 1 [6400/60000 (11%)]": the place in the epoch tells more.
std::optional<int64_t> PlaceInEpoch(std::string_view text) {
  const size_t digit = std::min(text.find_first_of("0123456789"), text.size());
  text = text.substr(digit);
  int64_t epoch = 0, place = 0;
  if (!TakeNumber(text, &epoch)) return std::nullopt;
  TakeLiteral(text, "]");
  SkipBlanks(text);
  if (!TakeLiteral(text, "[")) return std::nullopt;
  SkipBlanks(text);
  if (!TakeNumber(text, &place)) return std::nullopt;
  SkipBlanks(text);
  return text.starts_with('/') ? std::optional<int64_t>(place) : std::nullopt;
}

// "batch 7 mse 0.021", "batch 12: loss 0.4, 31 ms", "batch 3 took 0.2 s": what came of it stands behind its number.
// "batch 32 lr 0.1" are settings.
bool TellsWhatCameOfIt(std::string_view behind) {
  const size_t digit = behind.find_first_of("0123456789");
  if (digit == std::string_view::npos || digit > 3) return false;
  behind = behind.substr(std::min(behind.find_first_not_of("0123456789", digit), behind.size()));
  behind = behind.substr(std::min(behind.find_first_not_of(" ,:|-"), behind.size()));
  for (const std::string_view word : {"loss", "mse", "mae", "acc", "accuracy", "error", "ppl", "took", "time", "done"})
    if (StartsWithWord(behind, word)) return true;
  return false;
}

struct ProgressWords {
  std::optional<int64_t> step, epoch;
  bool loss = false;  // or the time of a step: progress without its number
};

// "Iteration took 31.2 s": a step whose number is not told.
bool TellsWhatItTook(std::string_view rest) {
  for (const std::string_view word : {"iteration", "iter", "step", "batch"})
    if (StartsWithWord(rest, word) && rest.substr(word.size()).starts_with(" took ")) {
      const std::string_view behind = rest.substr(word.size() + 6);
      return !behind.empty() && IsDigit(behind[0]);
    }
  return false;
}

void TryWord(std::string_view text, size_t at, ProgressWords& found) {
  const std::string_view rest = text.substr(at);
  if (TellsWhatItTook(rest)) found.loss = true;
  const auto number_behind = [&](std::string_view word) -> std::optional<int64_t> {
    if (!StartsWithWord(rest, word) || IsSetting(text.substr(0, at))) return std::nullopt;
    const auto number = NumberBehind(WithoutPhase(rest.substr(word.size())));
    // "step: 1048576(bytes)", "step: 2(factor)": how a benchmark goes on, and no place in a run
    if (number && ContainsAny(rest.substr(0, 40), {"(bytes)", "(factor)"})) return std::nullopt;
    return number;
  };
  switch (Lower(rest[0])) {
    case 's':
      if (!found.step) found.step = number_behind("step");
      break;
    case 'i':
      for (const std::string_view word : {"iteration", "iter"})
        if (!found.step) found.step = number_behind(word);
      // MXNet: "Iter[0] Batch [10]  Speed: ...": the batch tells more.
      if (found.step && ContainsAny(rest.substr(0, 24), {" Batch [", " batch ["}))
        found.epoch = std::exchange(found.step, std::nullopt);
      break;
    case 'e':
      if (found.epoch) break;
      found.epoch = number_behind("epoch");
      if (found.epoch) found.step = PlaceInEpoch(rest);
      break;
    case 'b':
      // "batch 32" is a size, "batch 10/500", "Batch [2400]" and "epoch 0 batch 100" are places.
      if (!found.step && StartsWithWord(rest, "batch") &&
          (found.epoch || Contains(rest.substr(0, 24), "/") || rest.substr(5).starts_with(" [") ||
           TellsWhatCameOfIt(rest.substr(5))))
        found.step = number_behind("batch");
      break;
    case 'l':
      if (StartsWithWord(rest, "loss") && (NumberBehind(rest.substr(4)) || IsNanBehind(rest.substr(4))))
        found.loss = true;
      break;
    default: break;
  }
}

bool IsAnyOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "train ERROR: gradient norm 5.8e+08 at step 6 is above 1000": the level of a line, not a figure ("ERROR: 0.12").
bool IsErrorByItsLevel(std::string_view text) {
  for (const std::string_view level : {"ERROR", "CRITICAL", "FATAL"}) {
    const size_t at = text.find(level);
    if (at == std::string_view::npos || (at > 0 && (IsAlphanumeric(text[at - 1]) || text[at - 1] == '_'))) continue;
    std::string_view rest = text.substr(at + level.size());
    if (rest.empty() || (rest[0] != ':' && rest[0] != ']' && rest[0] != '|' && !rest.starts_with(" -"))) continue;
    rest.remove_prefix(1);
    rest = rest.substr(std::min(rest.find_first_not_of(" -|"), rest.size()));
    if (!rest.empty() && !IsDigit(rest[0])) return true;
  }
  return false;
}

// Nothing but a logger's head stands before it: "| INFO | train | ", "2026-11-15 00:20:00 - ", "(\"".
bool BeginsSentence(std::string_view lower, size_t at) {
  const std::string_view before = Trim(lower.substr(0, at));
  return before.empty() || before == "total" ||
         std::string_view(":]|-)(\"'").find(before.back()) != std::string_view::npos;
}

}  // namespace

std::optional<int64_t> FindProgress(std::string_view text, bool* of_epoch) {
  text = text.substr(0, kLookAhead);
  if (IsErrorByItsLevel(text)) return std::nullopt;
  ProgressWords found;
  bool in_word = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool letter = IsAlphanumeric(text[at]);
    if (letter && !in_word) TryWord(text, at, found);
    if (found.step) return found.step;
    in_word = letter;
  }
  if (const auto count = FindBarCount(text)) return count;
  if (found.epoch) {
    if (of_epoch) *of_epoch = true;
    return found.epoch;
  }
  // "why is my loss 0 all of a sudden? fp16, 4x3090": somebody asks.
  const bool asks = text.ends_with('?') || Contains(text, "? ");
  return found.loss && !asks ? std::optional<int64_t>(-1) : std::nullopt;
}

bool IsDonePod(std::string_view text) { return TakeLiteral(text, "Status: ") && Trim(text) == "Succeeded"; }

FinishSign FindFinishSign(std::string_view text) {
  text = Trim(text);
  if (text.size() < 4 || text.size() > 400) return FinishSign::none;
  std::array<char, 400> buffer;
  std::transform(text.begin(), text.end(), buffer.begin(), Lower);
  const std::string_view lower(buffer.data(), text.size());
  // Lightning: `Trainer.fit` stopped: `max_epochs=3` reached. Megatron: [after training is done] datetime: ...
  for (const std::string_view phrase :
       {"training complete", "training finished", "training is finished", "training done", "training is done",
        "training is complete", "training has finished", "training has completed", "training ended",
        "finished training", "completed training", "end of training", "`trainer.fit` stopped", "exiting normally",
        "exited normally", "'train_runtime'",
        // torchrun's agent of its workers, and Slurm (scontrol show job) of the whole job
        "worker group successfully finished", "(workerstate.succeeded)", "jobstate=completed"})
    // "Training completed. Do not forget to share your model": what denies it stands before it.
    if (const size_t at = lower.find(phrase);
        at != std::string_view::npos && !Contains(lower, "no training batches") &&
        !ContainsAny(lower.substr(0, at), {"not ", "n't ", "until ", "when ", "if ", "once ", "before ", "will "}))
      return FinishSign::strong;
  // "Training time 0:17:30", as torchvision's and Detectron's scripts end; "Epoch 3 training time 0:03:10" is no end.
  if (const size_t at = lower.find("training time "); at != std::string_view::npos && BeginsSentence(lower, at)) {
    std::string_view clock = lower.substr(at + 14);
    int64_t part = 0;
    if (TakeNumber(clock, &part) && TakeLiteral(clock, ":") && TakeNumber(clock, &part) && clock.size() <= 4)
      return FinishSign::strong;
  }
  // fairseq, verl
  for (const std::string_view phrase : {"done training in ", "final validation metrics: "})
    if (const size_t at = lower.find(phrase); at != std::string_view::npos && BeginsSentence(lower, at))
      return FinishSign::strong;
  // "done, best val acc 0.74": the word with a mark behind it begins the sentence.
  for (const std::string_view word : {"done", "finished", "completed"})
    if (lower.starts_with(word) && lower.size() > word.size() &&
        std::string_view(",.!;").find(lower[word.size()]) != std::string_view::npos &&
        !ContainsAny(lower, {"load", "download", "start", "next", "begin", "prepar", "initializ", "setup", "saving"}))
      return FinishSign::weak;
  // kubectl describe pod: "Status:       Succeeded"
  if (IsDonePod(text)) return FinishSign::strong;
  // Otherwise every word must be a harmless one: "loading data finished" says nothing of the end.
  bool says_end = false;
  std::string_view rest = lower;
  // 2026-11-16 18:52:31,011 trainer.loop INFO: run complete
  if (const size_t level = rest.find(" info"); level != std::string_view::npos) rest.remove_prefix(level + 5);
  while (!rest.empty()) {
    size_t n = 0;
    while (n < rest.size() && (IsAlphanumeric(rest[n]) || rest[n] == '.')) ++n;
    std::string_view word = rest.substr(0, n);
    rest.remove_prefix(n == 0 ? 1 : n);
    while (word.ends_with('.')) word.remove_suffix(1);
    while (word.size() > 1 && IsDigit(word.back()) && !IsDigit(word.front())) word.remove_suffix(1);  // "rank0"
    // "40", "9.3", and the parts of "2026-11-19T01:31:38Z"
    if (word.empty() || (IsDigit(word[0]) && word.find_first_not_of("0123456789.tz") == std::string_view::npos))
      continue;
    if (IsAnyOf(word, {"finished", "completed", "complete", "done", "exiting", "success"})) {
      says_end = true;
    } else if (!IsAnyOf(word,
                        {"rank",    "worker", "process", "training", "train", "trainer", "run",          "job",
                         "program", "script", "main",    "all",      "is",    "has",     "successfully", "normally",
                         "info",    "in",     "after",   "s",        "sec",   "seconds", "min",          "minutes",
                         "hours",   "steps",  "local",   "node",     "host",  "epochs",  "iterations",   "batches",
                         "updates", "rounds", "of",      "status",   "ok",    "cleanly", "level",        "event",
                         "end",     "ts",     "t",       "msg",      "time"})) {
      return FinishSign::none;
    }
  }
  return says_end ? FinishSign::weak : FinishSign::none;
}

bool BeginsWork(std::string_view text) {
  text = Trim(text).substr(0, kLookAhead);
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), Lower);
  for (const std::string_view word : {"start", "begin", "running ", "resum", "loading ", "evaluating", "launching",
                                      "entering", "next phase", "phase 2", "continu"})
    if (const size_t at = low.find(word); at != std::string::npos && (at == 0 || !IsAlphanumeric(low[at - 1])))
      return true;
  return false;
}

int64_t FindOwnPid(std::string_view text) {
  text = text.substr(0, kLookAhead);
  for (size_t at = 0; at + 4 < text.size(); ++at) {
    if (Lower(text[at]) != 'p' || (at > 0 && (IsAlphanumeric(text[at - 1]) || text[at - 1] == '_'))) continue;
    if (!StartsWithWord(text.substr(at), "pid")) continue;
    const auto number = NumberBehind(text.substr(at + 3));
    if (number && *number > 1 && *number < (int64_t{1} << 32)) return *number;
  }
  return -1;
}

}  // namespace tacet
