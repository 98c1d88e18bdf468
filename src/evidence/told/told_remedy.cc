// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_remedy.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "base/text_scan.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_states.h"

namespace tacet {
namespace {

// In small letters. `value`: what the setting must have; "*" for any, empty where the words are no variable.
struct RemedyWords {
  std::string_view name, value;
  RemedyOf of;
};

constexpr RemedyWords kRemedies[] = {
    {"nccl_p2p_disable", "1", RemedyOf::peer_access},
    {"nccl_p2p_level", "loc", RemedyOf::peer_access},
    {"nccl_p2p_level", "0", RemedyOf::peer_access},
    {"nccl_p2p_level", "nvl", RemedyOf::peer_access},
    {"disable-custom-all-reduce", "", RemedyOf::peer_access},
    {"disable_custom_all_reduce", "", RemedyOf::peer_access},
    {"disabling p2p", "", RemedyOf::peer_access},
    {"p2p disabled", "", RemedyOf::peer_access},
    {"nccl_ib_disable", "1", RemedyOf::infiniband},
    {"nccl_net", "socket", RemedyOf::infiniband},
    {"disabling infiniband", "", RemedyOf::infiniband},
    {"infiniband disabled", "", RemedyOf::infiniband},
    {"nccl_net_gdr_level", "0", RemedyOf::gpu_direct},
    {"nccl_net_gdr_level", "loc", RemedyOf::gpu_direct},
    {"nccl_ib_cuda_support", "0", RemedyOf::gpu_direct},
    {"nccl_dmabuf_enable", "0", RemedyOf::gpu_direct},
    {"nccl_shm_disable", "1", RemedyOf::shared_memory},
    {"nccl_socket_ifname", "*", RemedyOf::interface},
    {"gloo_socket_ifname", "*", RemedyOf::interface},
};

bool IsNameChar(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

// "=1", " = 1", "` to `1`", " set to 1", "=\"1\"": the value behind a variable; empty where none stands there.
std::string_view ValueBehind(std::string_view rest) {
  constexpr std::string_view kMarks = "`'\"*";
  const auto skip = [&] {
    while (!rest.empty() && (rest[0] == ' ' || kMarks.find(rest[0]) != std::string_view::npos)) rest.remove_prefix(1);
  };
  skip();
  bool joined = false;
  for (const std::string_view join : {"=", ":", "set to ", "to ", "is set to ", "as "})
    if (TakeLiteral(rest, join)) {
      joined = true;
      break;
    }
  if (!joined) return {};
  skip();
  size_t end = 0;
  while (end < rest.size() && (IsNameChar(rest[end]) || rest[end] == '^' || rest[end] == '-')) ++end;
  return rest.substr(0, end);
}

struct Found {
  const RemedyWords* words = nullptr;
  size_t begin = 0, end = 0;
  std::string_view value;
};

// Most lines hold none of these, and one of them is in each name.
constexpr std::string_view kPiecesOfNames[] = {"disab", "nccl_", "gloo_"};
static_assert(std::all_of(std::begin(kRemedies), std::end(kRemedies), [](const RemedyWords& one) {
  return std::any_of(std::begin(kPiecesOfNames), std::end(kPiecesOfNames),
                     [&](std::string_view piece) { return one.name.find(piece) != std::string_view::npos; });
}));

Found FindSetting(std::string_view low) {
  if (std::none_of(std::begin(kPiecesOfNames), std::end(kPiecesOfNames),
                   [&](std::string_view piece) { return Contains(low, piece); }))
    return {};
  for (const RemedyWords& one : kRemedies)
    for (size_t at = low.find(one.name); at != std::string_view::npos; at = low.find(one.name, at + 1)) {
      const size_t end = at + one.name.size();
      if ((at > 0 && IsNameChar(low[at - 1])) || (end < low.size() && IsNameChar(low[end]))) continue;
      if (one.value.empty()) return {&one, at, end, {}};
      const std::string_view value = ValueBehind(low.substr(end));
      if (value.empty() || (one.value != "*" && value != one.value)) continue;
      return {&one, at, static_cast<size_t>(value.data() - low.data()) + value.size(), value};
    }
  return {};
}

// What goes wrong without the setting.
bool TellsTrouble(std::string_view part) {
  return Contains(part, "n't work") ||
         HasAnyWord(part, {"hang",      "hangs",   "hanging",   "hung",     "stuck",     "freezes", "freeze",
                           "deadlock",  "stalls",  "deadlocks", "fails",    "fail",      "failed",  "crashes",
                           "crash",     "error",   "errors",    "wrong",    "garbage",   "nan",     "corrupt",
                           "corrupted", "timeout", "times out", "segfault", "segfaults", "not work"});
}

// The word before the setting that takes it away: "without X", "unless X is set". Its place; npos for none.
size_t WordOfLack(std::string_view low, size_t setting) {
  const std::string_view before = low.substr(0, setting);
  for (const std::string_view word :
       {"without ", "unless ", "if i don't ", "if i do not ", "if we don't ", "if we do not "}) {
    const size_t at = before.rfind(word);
    if (at != std::string_view::npos && setting - at <= word.size() + 30) return at;
  }
  return std::string_view::npos;
}

// "hangs without X", "without X it hangs"
bool FailsWithout(std::string_view low, size_t lack, size_t setting) {
  return TellsTrouble(low.substr(0, lack)) || TellsTrouble(low.substr(setting));
}

// "the hang goes away", "it no longer hangs", "runs without hanging"
bool TroubleIsGone(std::string_view part) {
  return HasAnyWord(part, {"no longer hangs", "no longer hang", "not hang", "n't hang", "no more hang", "no more hangs",
                           "goes away", "went away", "go away", "disappears", "disappeared", "is gone", "vanishes",
                           "without hanging", "without a hang", "without any hang", "without hangs", "no hang"}) ||
         ContainsAny(part, {"doesn't hang", "does not hang", "don't hang", "do not hang", "didn't hang"});
}

bool Helps(std::string_view part) {
  return HasAnyWord(part, {"works",         "worked",         "working",         "workaround",
                           "work around",   "works around",   "helps",           "helped",
                           "fixes",         "fixed",          "solves",          "solved",
                           "resolves",      "resolved",       "runs fine",       "run fine",
                           "ran fine",      "is fine",        "runs well",       "runs through",
                           "succeeds",      "succeeded",      "passes",          "passed",
                           "finishes",      "completes",      "makes it work",   "made it work",
                           "did the trick", "does the trick", "correct results", "results are correct",
                           "trains fine",   "successfully",   "runs normally",   "ran successfully"});
}

// "with X it does load", "it starts only with X": what did not happen before.
bool GoesOnThen(std::string_view part, size_t begin, size_t end) {
  const std::string_view before = part.substr(0, begin), behind = part.substr(std::min(end, part.size()));
  const size_t with = before.rfind("with ");
  if (with == std::string_view::npos || begin - with > 24 || (with > 0 && IsLetter(before[with - 1]))) return false;
  const auto goes_on = [](std::string_view words) {
    return !TellsTrouble(words) &&
           HasAnyWord(words, {"loads",     "does load",   "loads up",   "starts",     "does start",   "runs",
                              "does run",  "begins",      "does begin", "proceeds",   "does proceed", "continues",
                              "comes up",  "gets past",   "goes on",    "gets going", "goes through", "gets through",
                              "trains",    "does train",  "responds",   "serves",     "boots",        "moves on",
                              "goes past", "does finish", "starts up"});
  };
  return goes_on(behind) || (before.substr(0, with).ends_with("only ") && goes_on(before.substr(0, with)));
}

// "only with X it hangs, else it works"
bool FailsThen(std::string_view part) {
  return HasAnyWord(part, {"hangs", "freezes", "fails", "crashes", "deadlocks", "stalls", "gets stuck"}) &&
         !HasAnyWord(part, {"fixes", "fixed", "solves", "solved", "resolves", "resolved", "workaround", "works around",
                            "helps", "helped"});
}

bool IsAdviceOrQuestion(std::string_view low) {
  if (Contains(low, "?")) return true;
  if (HasAnyWord(low, {"try", "please", "you can", "you could", "you may", "could", "would", "should", "might", "may",
                       "suggest", "recommend", "recommended", "whether", "have you", "did you", "docs", "documentation",
                       "according to"}))
    return true;
  // "if I set it, it works" is told; "if you set it ..." is advice.
  for (size_t at = low.find("if "); at != std::string_view::npos; at = low.find("if ", at + 1)) {
    if (at > 0 && IsLetter(low[at - 1])) continue;
    const std::string_view who = low.substr(at + 3);
    if (!who.starts_with("i ") && !who.starts_with("we ") && !who.starts_with("nccl_")) return true;
  }
  return false;
}

bool IsWithoutEffect(std::string_view part) {
  return Contains(part, "n't") || HasAnyWord(part, {"not", "no", "nor", "neither", "still", "even", "never", "same",
                                                    "in vain", "useless", "without success", "nothing"});
}

// The sentence that names it.
std::string_view SentenceAround(std::string_view whole, const Found& setting) {
  const auto is_end = [&](size_t i) {
    return (whole[i] == '.' || whole[i] == '!' || whole[i] == '?' || whole[i] == ';') &&
           (i + 1 == whole.size() || whole[i + 1] == ' ');
  };
  size_t begin = setting.begin, end = setting.end;
  while (begin > 0 && !is_end(begin - 1)) --begin;
  while (end < whole.size() && !is_end(end)) ++end;
  if (end < whole.size()) ++end;
  return whole.substr(begin, end - begin);
}

}  // namespace

std::optional<ToldRemedy> ReadRemedy(std::string_view line) {
  line = line.substr(0, std::min<size_t>(line.size(), 2000));
  const std::string whole = LowSentence(line);
  const Found any = FindSetting(whole);
  if (any.words == nullptr) return std::nullopt;
  const std::string_view sentence = SentenceAround(whole, any);
  const auto begin = static_cast<size_t>(sentence.data() - whole.data());
  if (std::count(sentence.begin(), sentence.end(), ' ') < 2 || IsAdviceOrQuestion(sentence)) return std::nullopt;
  // "it works with X but is slow": what stands behind does not take it back, unless the trouble is there again.
  std::string_view first = sentence, behind;
  const size_t setting = any.begin - begin;
  if (const size_t but = sentence.find(" but ", setting); but != std::string_view::npos) {
    first = sentence.substr(0, but);
    behind = sentence.substr(but + 5);
  } else if (const size_t turn = sentence.substr(0, setting).rfind(" but "); turn != std::string_view::npos) {
    first = sentence.substr(turn + 5);
  }
  if (HasAnyWord(behind, {"still", "again", "later"}) && TellsTrouble(behind)) return std::nullopt;
  const Found here = FindSetting(first);
  if (here.words == nullptr) return std::nullopt;
  const size_t lack = WordOfLack(first, here.begin);
  const bool told = lack != std::string_view::npos
                        ? FailsWithout(first, lack, here.begin)
                        : TroubleIsGone(first) || ((Helps(first) || GoesOnThen(first, here.begin, here.end)) &&
                                                   !IsWithoutEffect(first) && !FailsThen(first));
  if (!told || HasAnyWord(first, {"no effect", "still", "even"})) return std::nullopt;
  ToldRemedy remedy;
  remedy.of = here.words->of;
  // As it is written: letters keep their case.
  const size_t from = begin + static_cast<size_t>(first.data() - sentence.data()) + here.begin;
  remedy.setting = std::string(line.substr(from, here.words->name.size()));
  if (!here.value.empty())
    remedy.setting += "=" + std::string(line.substr(begin + static_cast<size_t>(here.value.data() - sentence.data()),
                                                    here.value.size()));
  return remedy;
}

std::string ReadSlowSetting(std::string_view line) {
  line = line.substr(0, std::min<size_t>(line.size(), 2000));
  const std::string whole = LowSentence(line);
  if (FindSetting(whole).words == nullptr || ReadRemedy(line)) return "";
  // Each sentence that names one.
  for (size_t from = 0; from < whole.size();) {
    Found found = FindSetting(std::string_view(whole).substr(from));
    if (found.words == nullptr) return "";
    found.begin += from;
    found.end += from;
    const std::string_view sentence = SentenceAround(whole, found);
    const auto begin = static_cast<size_t>(sentence.data() - whole.data());
    from = std::max(begin + sentence.size(), found.end);
    if (found.value.empty() || IsAdviceOrQuestion(sentence) || IsWithoutEffect(sentence)) continue;
    const bool lacks = WordOfLack(sentence, found.begin - begin) != std::string_view::npos;
    const bool faster = HasAnyWord(sentence, {"faster", "full speed", "full bandwidth", "speeds up", "doubles"});
    if (!(lacks ? faster : AnyPartStates(sentence, StatesSlowness))) continue;
    return std::string(line.substr(found.begin, found.words->name.size())) + "=" +
           std::string(line.substr(static_cast<size_t>(found.value.data() - whole.data()), found.value.size()));
  }
  return "";
}

}  // namespace tacet
