// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_figure_names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostWords = 12;

// The words of a name in small letters: "dataLoad_time(ms)" -> data, load, time, ms.
struct NameWords {
  std::array<std::string, kMostWords> words;
  size_t count = 0;
  const std::string* begin() const { return words.data(); }
  const std::string* end() const { return words.data() + count; }
  bool HasAny(std::initializer_list<std::string_view> list) const {
    return std::any_of(begin(), end(), [&](const std::string& word) {
      return std::any_of(list.begin(), list.end(), [&](std::string_view one) {
        return one.back() == '*' ? word.starts_with(one.substr(0, one.size() - 1)) : word == one;
      });
    });
  }
};

NameWords WordsOfName(std::string_view name) {
  NameWords found;
  bool open = false, small = false;
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z', letter = capital || (c >= 'a' && c <= 'z');
    if (!letter && !IsDigit(c)) {
      open = small = false;
      continue;
    }
    if (!open || (capital && small)) {
      if (found.count == kMostWords) break;
      ++found.count;
      open = true;
    }
    small = letter && !capital;
    found.words[found.count - 1] += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return found;
}

struct WordMeaning {
  std::string_view word;  // "*": whatever follows
  FigureKind kind;
  bool plain = true;  // enough for a bare decimal to be a time
};
// The first that fits names the part of the step: waiting for data is data, a backward pass in which an all-reduce is
// timed is waiting.
constexpr WordMeaning kParts[] = {
    {"data*", FigureKind::data},
    {"load", FigureKind::data, false},
    {"loading", FigureKind::data},
    {"loader", FigureKind::data},
    {"fetch*", FigureKind::data},
    {"input*", FigureKind::data, false},
    {"prefetch*", FigureKind::data},
    {"reader", FigureKind::data, false},
    {"read", FigureKind::data, false},
    {"preproc*", FigureKind::data},
    {"decode", FigureKind::data, false},
    {"collate", FigureKind::data},
    {"tokenize", FigureKind::data},
    {"tokenizer", FigureKind::data, false},
    {"tokenization", FigureKind::data},
    {"tokenizing", FigureKind::data},
    {"augment*", FigureKind::data},
    {"generator", FigureKind::data, false},
    {"wait*", FigureKind::wait},
    {"sync*", FigureKind::wait},
    {"comm", FigureKind::wait},
    {"comms", FigureKind::wait},
    {"communicat*", FigureKind::wait},
    {"allreduce*", FigureKind::wait},
    {"allgather*", FigureKind::wait},
    {"alltoall*", FigureKind::wait},
    {"reducescatter", FigureKind::wait},
    {"reduce", FigureKind::wait, false},
    {"gather", FigureKind::wait, false},
    {"collective*", FigureKind::wait},
    {"barrier", FigureKind::wait},
    {"nccl", FigureKind::wait, false},
    {"idle*", FigureKind::wait},
    {"bubble*", FigureKind::wait},
    {"blocked", FigureKind::wait, false},
    {"stall*", FigureKind::wait, false},
    {"recv", FigureKind::wait, false},
    {"receive", FigureKind::wait, false},
    {"send", FigureKind::wait, false},
    {"bwd", FigureKind::shared},
    {"backward*", FigureKind::shared},
    {"fwd", FigureKind::work},
    {"forward*", FigureKind::work},
    {"comput*", FigureKind::work},
    {"comp", FigureKind::work},
    {"busy", FigureKind::work},
    {"work", FigureKind::work, false},
    {"calc*", FigureKind::work},
    {"kernel*", FigureKind::work, false},
    {"device", FigureKind::work, false},
    {"model", FigureKind::work, false},
    {"gpu", FigureKind::work, false},
    {"opt", FigureKind::shared},
    {"optim*", FigureKind::shared},
    {"train*", FigureKind::shared, false},
};
// A name of these words alone is that of a whole step.
constexpr std::string_view kWholeWords[] = {"step",  "iter", "iteration", "batch",    "update", "dt",      "took",
                                            "time",  "t",    "timing",    "ms",       "msec",   "s",       "sec",
                                            "secs",  "us",   "seconds",   "avg",      "mean",   "median",  "cur",
                                            "total", "wall", "elapsed",   "duration", "it",     "current", "clock"};

bool IsWhole(const NameWords& words) {
  if (words.count == 1 && words.words[0] == "t") return false;  // a moment
  return std::all_of(words.begin(), words.end(), [](const std::string& word) {
    return std::find(std::begin(kWholeWords), std::end(kWholeWords), word) != std::end(kWholeWords);
  });
}

FigureKind PartOf(const NameWords& words, bool* plain) {
  for (const WordMeaning& one : kParts)
    if (words.HasAny({one.word})) {
      *plain = one.plain;
      // "fwd_bwd" holds what the backward pass waits for.
      return one.kind;
    }
  return FigureKind::other;
}

// Shares, rates, sizes and counts are no times; best values, limits and estimates are of no step.
bool IsOfNoStep(const NameWords& words) {
  return words.HasAny({"best",    "eta",       "max",    "maximum",  "lowest",    "highest", "limit",   "timeout",
                       "every",   "interval",  "warmup", "patience", "remaining", "left",    "until",   "since",
                       "speedup", "scale",     "lr",     "decay",    "per",       "rate",    "num",     "count",
                       "size",    "bytes",     "mb",     "gb",       "mib",       "gib",     "memory",  "mem",
                       "util*",   "mfu",       "tflops", "flops",    "tokens",    "samples", "tps",     "wps",
                       "fps",     "ips",       "frac",   "fraction", "ratio",     "pct",     "percent", "accum*",
                       "std",     "var",       "p99",    "p95",      "p90",       "world",   "workers", "seed",
                       "coef",    "weighting", "version"});
}

bool IsParameters(const NameWords& words) {
  if (words.HasAny({"grad*",  "update", "local",  "shard*",  "partition", "ema",     "averaged", "data*",
                    "batch",  "input*", "file",   "sample*", "layer",     "init*",   "expert*",  "moe",
                    "optim*", "opt",    "adam*",  "moment*", "buffer*",   "running", "stats",    "bn",
                    "rng",    "token*", "vocab*", "table*",  "worker*"}))
    return false;
  const bool sum = words.HasAny({"checksum*", "fingerprint", "crc*", "md5", "sha1", "sha256", "digest", "hash"});
  const bool norm = words.HasAny({"norm", "l2", "l1", "sum", "mean", "abs", "signature"});
  const bool of_model = words.HasAny(
      {"param", "params", "parameter", "parameters", "weight", "weights", "model", "theta", "state", "w", "replica"});
  return (of_model && (sum || norm)) || words.HasAny({"checksum*", "fingerprint"});
}

bool IsRank(const NameWords& words) {
  return words.count > 0 && words.words[words.count - 1] == "rank" && words.count <= 4 &&
         !words.HasAny({"local", "node",   "group", "tp",       "dp",     "cp",   "ep", "pp",
                        "peer",  "src",    "dst",   "from",     "to",     "for",  "by", "with",
                        "num",   "tensor", "data",  "pipeline", "expert", "lora", "on"});
}

void ReadTime(const NameWords& words, FigureName& found) {
  if (words.count == 0) return;
  for (const std::string& word : words) {
    // Not "microstep", of gradient accumulation.
    if (word == "ms" || word == "msec" || word == "millis" || word.starts_with("millisec"))
      found.seconds = 1e-3, found.has_unit = true;
    if (word == "us" || word == "usec" || word == "micros" || word.starts_with("microsec"))
      found.seconds = 1e-6, found.has_unit = true;
    if (word == "s" || word == "sec" || word == "secs" || word == "seconds") found.has_unit = true;
  }
  found.timed = found.has_unit || words.HasAny({"time", "timing", "latency", "took", "duration", "elapsed", "dt"});
  found.inner = words.HasAny({"inner"});
  found.kind = PartOf(words, &found.plain);
  if (words.HasAny({"fwd", "forward*"}) && words.HasAny({"bwd", "backward*"}) && found.kind == FigureKind::work)
    found.kind = FigureKind::shared;
  if (found.inner && found.kind == FigureKind::shared) found.kind = FigureKind::work;
  if (found.kind != FigureKind::other) return;
  const bool sums = words.HasAny({"total", "wall", "elapsed", "duration"});
  if (IsWhole(words)) {
    found.kind = FigureKind::whole;
    found.sums = sums;
    found.plain = false;
  }
}

}  // namespace

FigureName MeaningOf(std::string_view name) {
  FigureName found;
  if (name.empty() || name.size() > 80) return found;
  const NameWords words = WordsOfName(name);
  if (words.count == 0) return found;
  found.held_out = words.HasAny({"val", "valid", "validation", "eval*", "test", "dev", "holdout"});
  const bool counted = words.HasAny({"step", "iter", "iteration", "it", "itr", "update", "round", "batch", "epoch"});
  if (IsRank(words)) return found.kind = FigureKind::rank, found;
  if (words.HasAny({"stage"}) || (words.HasAny({"pp", "pipeline"}) && words.HasAny({"rank"}))) {
    found.kind = words.HasAny({"zero"}) || words.count > 3 ? FigureKind::other : FigureKind::stage;
    return found;
  }
  if (IsParameters(words)) return found.kind = FigureKind::parameters, found;
  if (words.HasAny({"gnorm"}) ||
      (words.HasAny({"grad", "grads", "gradient", "gradients"}) && words.HasAny({"norm", "l2"})))
    return found.kind = words.HasAny({"clip*", "max", "threshold"}) ? FigureKind::setting : FigureKind::gradient, found;
  ReadTime(words, found);
  // "step 12" is a number; with a unit behind it, it is a time after all.
  if (counted && ((found.kind == FigureKind::whole && !found.timed) || found.kind == FigureKind::other))
    found.kind = words.HasAny({"epoch"}) ? FigureKind::epoch : FigureKind::step;
  if (words.HasAny({"num"}) && words.HasAny({"updates"})) return found.kind = FigureKind::step, found;
  found.counted = counted;
  if (IsOfNoStep(words) || words.HasAny({"save", "log", "total", "micro*", "n"})) {
    // DeepSpeed's "fwd_microstep" is a time, without a word that says so.
    const bool of_part = (found.timed || (found.plain && words.HasAny({"microstep"}))) &&
                         found.kind != FigureKind::other && !IsOfNoStep(words);
    if (!of_part && !(found.sums && found.kind == FigureKind::whole && !IsOfNoStep(words)) &&
        !words.HasAny({"loss", "losses"}))
      return found.kind = FigureKind::setting, found;
  }
  if (words.HasAny({"loss*", "nll", "xent", "ce", "bce", "mse", "objective", "elbo", "residual*"}) && !found.timed)
    found.kind = IsOfNoStep(words) && !words.HasAny({"per"}) ? FigureKind::setting : FigureKind::loss;
  if (found.held_out && found.kind >= FigureKind::whole && found.kind <= FigureKind::wait)
    found.kind = FigureKind::setting;
  return found;
}

FigureName FigureNames::Of(std::string_view name) {
  constexpr size_t kMostNames = 4096;
  if (const auto known = known_.find(name); known != known_.end()) return known->second;
  const FigureName meaning = MeaningOf(name);
  if (known_.size() < kMostNames) known_.emplace(name, meaning);
  return meaning;
}

double SecondsOf(const NamedNumber& number, const FigureName& name, double usual_unit, bool beside) {
  constexpr double kMoment = 1e8;  // seconds since 1970
  if (!std::isfinite(number.value) || number.value < 0 || number.value > kMoment || number.digest) return -1;
  const std::string_view unit = number.unit;
  if (unit == "s" || unit.starts_with("sec")) return number.value;
  if (unit == "ms" || unit == "msec") return number.value * 1e-3;
  if (unit == "us") return number.value * 1e-6;
  if (unit == "ns") return number.value * 1e-9;
  if (unit.starts_with("min")) return number.value * 60;
  if (!unit.empty()) return -1;
  if (name.has_unit) return number.value * name.seconds;
  if (name.timed) return number.value * usual_unit;
  const bool decimal = number.word.find_first_of(".eE") != std::string_view::npos;
  return decimal && (name.plain || beside) ? number.value * usual_unit : -1;
}

}  // namespace tacet
