// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_states.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/char_set.h"
#include "base/pair_set.h"
#include "base/text_scan.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_subject.h"

namespace tacet {

std::string LowSentence(std::string_view text) { return LowerCase(text.substr(0, 2000)); }

static bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = FindText(text, word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !IsLetter(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !IsLetter(text[end]))) return true;
  }
  return false;
}

bool HasAnyWord(std::string_view text, WordList words) {
  constexpr size_t kFewWords = 6;
  if (words.size() < kFewWords)
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return HasWord(text, word); });
  const PairSet pairs(text);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return pairs.MayHold(word) && HasWord(text, word); });
}

std::string_view BehindKnownWhy(std::string_view part) {
  const size_t at = FindText(part, " why ");
  if (at == std::string_view::npos) return part;
  const std::string_view before = part.substr(0, at);
  const bool sought =
      HasAnyWord(before, {"figure",  "figured",  "know", "knows",     "idea",        "ideas",  "understand",
                          "sure",    "find out", "see",  "tell",      "clear",       "wonder", "wondering",
                          "explain", "reason",   "clue", "determine", "investigate", "debug",  "guess"});
  return sought ? part.substr(at + 5) : part;
}

bool AnyPartStates(std::string_view low, bool (*states)(std::string_view part)) {
  static constexpr CharSet kEnds(".,;:!()?");
  for (std::string_view rest = low; !rest.empty();) {
    const size_t end = kEnds.FindIn(rest);
    const std::string_view part = rest.substr(0, end);
    const std::string_view known = BehindKnownWhy(part);
    if (states(known)) {
      // What is asked is the reason alone: "does anybody know why it hangs?"
      if (known.size() != part.size()) return true;
      // A full stop inside of a number or a name ends no sentence.
      size_t close = 0;
      while ((close = rest.find_first_of(".!?", close)) != std::string_view::npos && rest[close] == '.' &&
             close + 1 < rest.size() && rest[close + 1] != ' ')
        ++close;
      if (close == std::string_view::npos || rest[close] != '?') return true;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return false;
}

// Supposed, asked or over.
static bool IsSupposed(std::string_view part) {
  return Contains(part, "?") || HasAnyWord(part, {"no longer", "fixed", "solved", "avoid", "avoids", "if", "would",
                                                  "could", "may", "might", "can", "should", "fix", "why", "how"});
}

// "the hang is gone", "no deadlock any more": it was there once. "The hang goes away with X" tells that it is there
// without X.
static bool IsGoneAgain(std::string_view part) {
  return HasAnyWord(part, {"no hang", "no hangs", "no deadlock", "no deadlocks", "no dead lock", "no freeze",
                           "no freezes", "no stall", "no stalls"}) ||
         (HasAnyWord(part, {"is gone", "are gone", "went away", "goes away", "disappeared", "disappears"}) &&
          !HasAnyWord(part, {"with", "when", "by", "after", "once"}));
}

// ... or denied.
bool IsDoubted(std::string_view part) {
  return IsSupposed(part) || IsGoneAgain(part) || Contains(part, "n't") || HasAnyWord(part, {"not", "never"}) ||
         // "works without hanging" denies it, "hangs without this setting" and "hangs without any message" do not.
         HasAnyWord(part,
                    {"without hanging",      "without a hang",       "without hangs",        "without any hang",
                     "without any hangs",    "without any hanging",  "without any issue",    "without any issues",
                     "without any problem",  "without any problems", "without any deadlock", "without any deadlocks",
                     "without any stall",    "without any stalls",   "without any freeze",   "without any nan",
                     "without any nans",     "without stalls",       "without deadlock",     "without deadlocks",
                     "without getting stuck"});
}

// `word`, and behind it nothing but the end of the part or one of the words: "then nothing" and "then nothing happens",
// not "then nothing failed".
static bool HasWordBefore(std::string_view part, std::string_view word, WordList behind) {
  for (size_t at = FindText(part, word); at != std::string_view::npos; at = part.find(word, at + 1)) {
    if (at > 0 && IsLetter(part[at - 1])) continue;
    const std::string_view rest = part.substr(at + word.size());
    const std::string_view next = Trim(rest);
    if (!rest.empty() && IsLetter(rest[0])) continue;
    if (next.empty() || !IsLetter(next[0])) return true;
    for (const std::string_view one : behind)
      if (next.starts_with(one) && (next.size() == one.size() || !IsLetter(next[one.size()]))) return true;
  }
  return false;
}

// "the training won't move on", "it does not proceed": what is denied here is that the job goes on, and not that its
// loss falls or that something is moved.
static bool DeniesProgress(std::string_view part) {
  if (IsSupposed(part) || HasAnyWord(part, {"loss", "accuracy", "metric", "metrics", "norm"})) return false;
  if (HasAnyWord(part, {"not moving", "not progressing", "not responding", "not proceeding"})) return true;
  // "never begins to load the model", "never returns from the save", "does not get past the barrier"
  if (HasAnyWord(part, {"never begins to", "never starts to", "never gets past", "never gets beyond", "never goes past",
                        "never goes beyond", "not get past", "not get beyond", "not go past", "not go beyond",
                        "n't get past", "n't get beyond", "n't go past", "n't go beyond"}) &&
      !HasAnyWord(part, {"gb/s", "bandwidth", "utilization", "throughput"}))
    return true;
  // "never returns None" and "never returns an error" are something else.
  for (const std::string_view verb : {"never returns", "never return", "never comes back", "never begins"})
    if (HasWordBefore(part, verb, {"from", "on", "in", "at", "when", "with", "after", "there", "here", "and", "but"}))
      return true;
  for (const std::string_view no :
       {"won't ", "wont ", "doesn't ", "does not ", "don't ", "do not ", "will not ", "never "})
    if (const auto verb = After(part, no)) {
      if (HasAnyWord(verb->substr(0, 20), {"proceed", "progress", "respond", "advance", "make progress"})) return true;
      if (verb->starts_with("move") &&
          HasWordBefore(*verb, "move",
                        {"on", "forward", "further", "past", "beyond", "any", "anymore", "from", "since"}))
        return true;
    }
  return false;
}

// "nothing is printed until it ends": an announcement, of what will be over.
static bool IsUntilItEnds(std::string_view part) {
  const auto behind = After(part, " until ");
  return behind && HasAnyWord(behind->substr(0, 40), {"ends", "end", "done", "finishes", "finished", "complete",
                                                      "completes", "completed", "over"});
}

// "freezes every 20 iterations", "hangs for a few seconds": it goes on each time.
bool GoesOnEachTime(std::string_view part) {
  if (IsUntilItEnds(part)) return true;
  if (HasAnyWord(part, {"for a few seconds", "for some seconds", "for several seconds", "then continues",
                        "then resumes", "and continues", "and resumes"}))
    return true;
  const auto rest = After(part, " every ");
  // "hangs every time after 100 steps" is a hang each time.
  if (rest && (rest->starts_with("time") || rest->starts_with("run") || rest->starts_with("attempt"))) return false;
  return rest && HasAnyWord(rest->substr(0, 40), {"iterations", "iteration", "iters", "steps", "batches", "seconds",
                                                  "minutes", "few steps", "n steps"});
}

// "for 23h", "more than two hours", "since yesterday": a time that is long for a job.
static bool TellsALongTime(std::string_view part) {
  if (HasAnyWord(part, {"hours", "minutes", "hour", "minute", "mins", "days", "a day", "overnight", "yesterday",
                        "since then", "last night"}))
    return true;
  for (size_t at = 0; at < part.size(); ++at) {
    if (!IsDigit(part[at]) || (at > 0 && part[at - 1] != ' ' && part[at - 1] != '~')) continue;
    while (at < part.size() && (IsDigit(part[at]) || part[at] == '.')) ++at;
    std::string_view unit = part.substr(at);
    unit = unit.substr(
        0, std::min(unit.find_first_not_of("abcdefghijklmnopqrstuvwxyz", unit.starts_with(' ')), unit.size()));
    unit = Trim(unit);
    for (const std::string_view known : {"h", "hr", "hrs", "min"})
      if (unit == known) return true;
  }
  return false;
}

// "no log output for 23h", "the job has not printed anything since yesterday", "no new steps are logged": what is
// denied is that anything more is printed.
static bool StatesSilence(std::string_view part) {
  if (IsSupposed(part)) return false;
  const bool denies =
      HasAnyWord(part, {"no", "not", "nothing", "without any", "never", "stopped"}) || Contains(part, "n't");
  if (!denies) return false;
  if (HasAnyWord(part, {"no new steps", "no new iterations", "no new logs", "no new lines", "no new log lines"}))
    return true;
  // "no step takes more than 2 minutes" speaks of what is printed.
  const bool prints = HasAnyWord(
      part, {"output", "outputs", "log", "logs", "logged", "print", "prints", "printed", "printing", "messages"});
  if (prints && HasAnyWord(part, {"stopped printing", "stopped logging", "stopped the output"})) return true;
  return prints && TellsALongTime(part) &&
         !HasAnyWord(part, {"normal", "expected", "only", "kept", "deleted", "rotated", "store", "stored"});
}

// A part of a sentence, up to its full stop or comma, that says it as a fact.
bool StatesAHang(std::string_view part) {
  if (SpeaksOfAQueue(part) || SpeaksOfATool(part)) return false;
  if (DeniesProgress(part)) return true;
  if (StatesSilence(part) && !GoesOnEachTime(part)) return true;
  const bool says =
      (HasWord(part, "for") && HasWord(part, "ever")) ||
      HasAnyWord(part, {"hangs",
                        "hanging",
                        "hung",
                        "hang at",
                        "hang in",
                        "hang after",
                        "hang during",
                        "goes into hang",
                        "goes into a hang",
                        "went into a hang",
                        "stuck",
                        "stucks",
                        "stucked",
                        "hanged",
                        "freezes",
                        "freezed",
                        "freeze",
                        "is frozen",
                        "froze",
                        "frooze",
                        "frozed",
                        "got frozen",
                        "gets frozen",
                        "deadlocks",
                        "deadlock",
                        "dead lock",
                        "dead locks",
                        "infinite wait",
                        "endless wait",
                        "see a hang",
                        "saw a hang",
                        "observe a hang",
                        "observed a hang",
                        "get a hang",
                        "hit a hang",
                        "is a hang",
                        "stalls",
                        "stalled",
                        "forever",
                        "no progress",
                        "stops moving",
                        "stops responding",
                        "just sits",
                        "sits there",
                        "nothing after that",
                        "nothing happens",
                        "nothing is printed",
                        "nothing more happens",
                        "nothing more is printed",
                        "nothing else happens",
                        "nothing else is printed",
                        "no further output",
                        "no more output",
                        "no new output",
                        "no output any more",
                        "no output anymore"}) ||
      HasAnyWord(part, {"simply stops", "just stops", "both stop", "all stop"}) ||
      HasWordBefore(part, "then nothing", {"for", "more", "else", "at all", "any more", "anymore", "until"}) ||
      (HasAnyWord(part, {"no output", "nothing more", "nothing else", "nothing new", "nothing further", "no step",
                         "no new step", "no new line"}) &&
       HasAnyWord(part, {"hours", "minutes", "hour", "minute", "min", "mins", "days", "h"}));
  return says && !IsDoubted(part) && !GoesOnEachTime(part);
}

// "all the ranks wait in synchronize() except the last one", "all but one rank are stuck at the barrier": whoever
// looked found one of them elsewhere.
bool StatesThatAllWaitButOne(std::string_view sentence) {
  return HasAnyWord(sentence, {"ranks", "processes", "gpus", "workers", "nodes"}) &&
         HasAnyWord(sentence,
                    {"are waiting", "waiting for", "waiting in", "waiting at", "wait for", "wait in", "wait at"}) &&
         HasAnyWord(sentence, {"except", "except for", "all but one", "all but rank", "but one", "but the last"}) &&
         !IsDoubted(sentence);
}

bool StatesThatOthersWait(std::string_view sentence) {
  return HasAnyWord(sentence, {"others", "other ranks", "other processes", "other gpus", "other workers", "other nodes",
                               "the rest", "remaining ranks", "remaining processes", "everyone else", "everybody else",
                               "all others"}) &&
         HasAnyWord(sentence, {"wait", "waits", "waiting", "stuck", "sit", "sits", "block", "blocked", "are in",
                               "is in", "hang", "hanging", "sitting", "idle in"}) &&
         HasAnyWord(sentence, {"all_reduce",    "allreduce",    "all-reduce",     "all reduce",     "allgather",
                               "all_gather",    "all-gather",   "reduce_scatter", "reduce-scatter", "broadcast",
                               "barrier",       "collective",   "collectives",    "nccl",           "gloo",
                               "backward",      "for it",       "for rank",       "for rank0",      "for that rank",
                               "for this rank", "for the rank", "for that one",   "for this one"}) &&
         !IsDoubted(sentence);
}

// "GPU 7 stays at 0% while the other GPUs are at 100 %": one does not run what the others wait in. What is idle because
// nobody uses it is several, or is said to be.
bool StatesThatOneIsIdle(std::string_view sentence) {
  if (!Contains(sentence, "gpu") || IsSupposed(sentence) || Contains(sentence, "n't") ||
      HasAnyWord(sentence,
                 {"only use", "only uses", "use only", "not used", "unused", "not use", "finished", "because"}))
    return false;
  std::string low(sentence);
  for (size_t at = low.find(" %"); at != std::string::npos; at = low.find(" %", at)) low.erase(at, 1);
  for (const std::string_view between : {" while ", " whereas ", " but ", " and ", ", "}) {
    const size_t cut = low.find(between);
    if (cut == std::string::npos) continue;
    std::string_view idle = std::string_view(low).substr(0, cut);
    std::string_view busy = std::string_view(low).substr(cut + between.size());
    if (!Contains(busy, "100%")) std::swap(idle, busy);
    const size_t none = idle.find("0%");
    if (none == std::string_view::npos || (none > 0 && idle[none - 1] != ' ') || !Contains(busy, "100%")) continue;
    const bool others = HasAnyWord(busy, {"others", "other", "rest", "all", "gpus", "gpu 0-6"}) || Contains(busy, "-");
    const bool one = Contains(idle, "gpu") && !HasAnyWord(idle, {"gpus", "others", "rest", "other"});
    if (one && others) return true;
  }
  return false;
}

static bool StatesStutter(std::string_view part) {
  return HasAnyWord(part, {"hangs", "freezes", "freeze", "stalls", "pauses", "gets stuck", "stuck"}) &&
         GoesOnEachTime(part) && !IsDoubted(part);
}

bool StatesAStop(std::string_view part) {
  return HasAnyWord(part, {"it stops", "it always stops", "it still stops", "stops at", "stops there", "stops here",
                           "stops after", "stops in", "stops during", "stops when it", "stops when the", "stopped at",
                           "stopped there"}) &&
         !IsDoubted(part);
}

// "takes longer than 30 minutes" before something is thrown names a limit, and no pace.
static bool NamesALimit(std::string_view part) {
  for (const std::string_view words :
       {"takes longer than ", "take longer than ", "takes more than ", "take more than "})
    if (auto rest = After(part, words); rest && !rest->empty() && IsDigit((*rest)[0]))
      return HasAnyWord(*rest, {"minutes", "min", "mins", "minute", "seconds", "s", "sec", "hours", "hour", "h"});
  return false;
}

// "slow" of the job, not of a thing: "is slow on two nodes", not "the slow tokenizer".
bool StatesSlowness(std::string_view part) {
  const bool says =
      HasWordBefore(part, "slow", {"here",     "with",          "when",       "on",   "as",    "than",    "compared",
                                   "and",      "but",           "in",         "for",  "after", "since",   "at",
                                   "although", "though",        "because",    "now",  "too",   "again",   "from",
                                   "over",     "across",        "while",      "even", "only",  "between", "training",
                                   "speed",    "communication", "performance"}) ||
      HasAnyWord(part, {"slower",
                        "slows down",
                        "slowed down",
                        "slowdown",
                        "far longer",
                        "much longer",
                        "very longer",
                        "longer than on one",
                        "longer than when",
                        "longer than with one",
                        "takes longer",
                        "take longer",
                        "times longer",
                        "times as long",
                        "twice as long",
                        "longer and longer",
                        "increasingly longer",
                        "takes longer each",
                        "time increases",
                        "times increase",
                        "time goes up",
                        "times go up",
                        "time doubles",
                        "times double",
                        "time keeps increasing",
                        "time is increasing",
                        "time grows",
                        "time keeps growing",
                        "more and more time",
                        "speed goes down",
                        "speed drops",
                        "throughput drops",
                        "throughput is low",
                        "low throughput",
                        "low bandwidth",
                        "bandwidth is low",
                        "performance is bad",
                        "bad performance",
                        "poor performance",
                        "varying performance",
                        "unstable performance",
                        "inconsistent performance",
                        "not as good as expected",
                        "not as good as i expected",
                        "not as high as expected",
                        "not as fast as expected",
                        "not as fast as i expected",
                        "lower than expected",
                        "less than expected",
                        "worse than expected",
                        "varying throughput"}) ||
      (HasAnyWord(part, {"busbw", "algbw", "bandwidth", "throughput", "performance", "speed"}) &&
       HasAnyWord(part, {"terrible", "awful", "horrible", "abysmal", "very low", "too low", "very bad", "poor"})) ||
      // "a huge delay between the epochs"
      (HasAnyWord(part, {"delay", "delays", "latency", "gap"}) &&
       HasAnyWord(part, {"excessive", "huge", "very long", "too long", "unacceptable", "enormous"})) ||
      StatesIdleBetweenSteps(part) || StatesStutter(part);
  // What is denied there is the expectation.
  const bool misses = HasAnyWord(part, {"not as good as", "not as high as", "not as fast as"});
  // "4 times slower than it should be" supposes nothing.
  std::string plain;
  if (HasAnyWord(part, {"should be", "should take"})) {
    plain = part;
    for (const std::string_view norm : {"than they should be", "than it should be", "than this should be",
                                        "than it should take", "than they should take", "than should be"})
      if (const size_t at = plain.find(norm); at != std::string::npos) plain.replace(at, norm.size(), "than usual");
    part = plain;
  }
  return says && !NamesALimit(part) && (misses ? !IsSupposed(part) : !IsDoubted(part)) &&
         !HasAnyWord(part, {"was slow", "was slower", "were slow", "were slower", "used to be", "will"}) &&
         // "it may cause shared memory traffic to be much slower than expected"
         (!HasAnyWord(part, {"to be much slower", "to be slower"}) ||
          HasAnyWord(part, {"seems", "seem", "appears", "appear", "turns out"})) &&
         (misses || !HasAnyWord(part, {"as expected"}));
}

std::string SlowCondition(std::string_view sentence) {
  const auto has = [&](WordList words) { return HasAnyWord(sentence, words); };
  const bool one_node = has({"one node", "1 node", "single node", "single-node", "one machine", "single machine",
                             "one host", "1 machine", "a single node", "one server", "intra-node", "single-machine"});
  const bool nodes = has({"two nodes", "2 nodes", "nodes", "multi-node", "multi node", "multinode", "multiple nodes",
                          "two machines", "2 machines", "two hosts", "several nodes", "across nodes", "inter-node",
                          "two servers", "machines", "multi-machine"});
  if (nodes && (one_node || has({"multi-node", "multi node", "multinode", "across nodes", "inter-node"})))
    return "the number of nodes";
  const bool one_gpu = has({"one gpu", "1 gpu", "single gpu", "single-gpu", "a single gpu"});
  if (one_gpu && has({"gpus", "multi-gpu", "multi gpu", "multiple gpus"})) return "the number of GPUs";
  if (has({"after upgrading", "after updating", "since upgrading", "after the update", "after the upgrade",
           "since the update", "since the upgrade", "older version", "newer version", "previous version"}))
    return "the version";
  return "";
}

// "the copy from cuda:0 to cuda:1 returns other numbers"
static bool StatesWrongCopy(std::string_view sentence) {
  return HasAnyWord(sentence, {"copy", "copies", "copied", "copying", "transfer", "transfers", "p2p", "peer-to-peer",
                               "peer to peer", "peer access"}) &&
         HasAnyWord(sentence, {"gpu", "gpus", "cuda:0", "cuda:1", "devices"}) &&
         HasAnyWord(sentence, {"wrong values", "wrong numbers", "wrong data", "other values", "other numbers",
                               "different values", "different numbers", "different data", "incorrect values",
                               "incorrect data", "garbage", "corrupted", "all zeros"}) &&
         !IsDoubted(sentence) && !HasAnyWord(sentence, {"check", "checks", "detect", "lead", "result in"});
}

bool StatesWrongResults(std::string_view sentence) {
  if (StatesWrongCopy(sentence)) return true;
  // Out of bounds values : 248 FAILED, quoted from the summary of nccl-tests
  if (const auto count = After(sentence, "out of bounds values : ")) {
    std::string_view rest = *count;
    int64_t failed = 0;
    return TakeNumber(rest, &failed) && failed > 0 && Trim(rest).starts_with("failed") && !Contains(sentence, "?");
  }
  return HasAnyWord(sentence, {"wrong result", "wrong results", "incorrect result", "incorrect results", "wrong values",
                               "incorrect values", "wrong numbers", "wrong sum", "wrong sums", "data corruption",
                               "corrupted data", "corrupts data", "garbage values", "results are wrong",
                               "result is wrong", "results are incorrect", "result is incorrect"}) &&
         HasAnyWord(sentence,
                    {"allreduce", "all_reduce", "all-reduce", "all reduce", "broadcast", "allgather", "all_gather",
                     "all-gather", "reduce_scatter", "reduce-scatter", "alltoall", "all-to-all", "all_to_all", "nccl",
                     "rccl", "collective", "collectives", "nccl-tests", "all_reduce_perf"}) &&
         !IsDoubted(sentence) && !HasAnyWord(sentence, {"check", "checks", "detect", "lead", "result in"});
}

// "the loss becomes NaN after 300 steps"
bool StatesNotFinite(std::string_view part) {
  return HasAnyWord(part, {"loss", "losses", "gradient", "gradients", "grad", "grads"}) &&
         HasAnyWord(part, {"nan", "nans", "inf"}) &&
         HasAnyWord(part, {"becomes", "become", "became", "is", "are", "was", "goes", "go", "went", "turns", "turned",
                           "gets", "get", "got", "to", "will be", "always"}) &&
         !IsDoubted(part) && !HasAnyWord(part, {"check", "checks", "detect", "skip", "skipped", "ignore"});
}

// A measure, a number, and what it should be: "busbw is at 12, I would expect 180".
bool MissesAnExpectation(std::string_view sentence) {
  const bool measures = HasAnyWord(sentence, {"busbw", "algbw", "bandwidth", "throughput", "speed", "tflops", "mfu"}) ||
                        ContainsAny(sentence, {"gb/s", "gbit/s", "gbps", "gib/s", "mb/s", "it/s", "s/it"});
  const bool misses =
      HasAnyWord(sentence, {"would expect",   "i expect",      "i expected",    "we expect",      "we expected",
                            "in theory",      "should be",     "should reach",  "supposed to be", "lower than expected",
                            "below what",     "reaches only",  "only reaches",  "reach only",     "only reach",
                            "gets only",      "get only",      "only get",      "only gets",      "drops to only",
                            "never provided", "never reaches", "never reached", "never exceeds",  "does not exceed",
                            "no more than"});
  const bool fits =
      Contains(sentence, "?") || HasAnyWord(sentence, {"as expected", "as i expected", "fixed", "solved"});
  // "samples per second fall to 10", "it/s drops from 12 to 3"
  const bool falls = HasAnyWord(sentence, {"falls to", "fall to", "fell to", "drops to", "drop to", "dropped to",
                                           "falls from", "drops from", "dropped from"});
  return measures && (misses || falls) && !fits && sentence.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace tacet
