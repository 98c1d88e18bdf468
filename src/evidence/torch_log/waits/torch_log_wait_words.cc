// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/waits/torch_log_wait_words.h"

#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

// What stands behind "waiting for" where other processes of the job are meant.
bool AreWaitedPeers(std::string_view behind) {
  return ContainsAny(behind.substr(0, 60),
                     {"rank", "other", "every", "all ", "peer", "worker", "barrier", "process", "collective", "reduce",
                      "gradient", "master", "main ", "leader", "member", "node", "group", "stage", "rendezvous"});
}

// "waited 3 s for the lock, got it", "done waiting for the cache": it is over.
bool IsWaitOver(const std::string& low) {
  return ContainsAny(low,
                     {"done waiting", "finished waiting", "no longer waiting", "stopped waiting", "without waiting",
                      "not waiting", "instead of waiting", "acquired", "got it", "gave up waiting"});
}

// Most lines hold none of these, and this is asked of every line: one pass over it.
bool MayTellWait(std::string_view text) {
  const auto small = [&](size_t at) { return static_cast<char>(text[at] | 0x20); };
  for (size_t at = 2; at < text.size(); ++at) {
    const char one = text[at];
    if (one == ']' || one == ')') {
      if (small(at - 1) == 'n' && text[at - 2] == '/') return true;  // [y/n]
      if (small(at - 1) == 't' && small(at - 2) == 'n') return true;  // [fingerprint]
      if (small(at - 1) == 'o' && small(at - 2) == 'n') return true;  // (yes/no)
      continue;
    }
    switch (one | 0x20) {
      case 't':
        if ((small(at - 1) == 'i' && small(at - 2) == 'a') || (small(at - 1) == 'e' && small(at - 2) == 'y'))
          return true;
        break;  // wait, yet
      case 's':
        if (small(at - 1) == 's' && small(at - 2) == 'e') return true;  // press
        break;
      case 'b':
        if (small(at - 1) == 'd' && small(at - 2) == 'p') return true;  // (pdb)
        break;
      case 'c':
        if (small(at - 1) == 'i' && small(at - 2) == 'o') return true;  // choice
        break;
      case 'w':
        if (small(at - 1) == 's' && small(at - 2) == 's') return true;  // password
        break;
      case 'n':
        if (small(at - 1) == 'r' && small(at - 2) == 'e') return true;  // username
        break;
      default: break;
    }
  }
  return false;
}

// "overwrite? [y/N]", "wandb: Enter your choice:", "Are you sure (yes/no/[fingerprint])?"
constexpr std::string_view kQuestions[] = {
    "press enter", "press any key",           "press return",      "[y/n]", "(y/n)", "[yes/no]",
    "(yes/no)",    "(yes/no/[fingerprint])?", "enter your choice:"};

// Where it ends in the lowercase text.
size_t QuestionEnd(const std::string& low) {
  for (const std::string_view question : kQuestions)
    if (const size_t at = low.find(question); at != std::string::npos) return at + question.size();
  const bool asks_git = low.starts_with("username for 'http") || low.starts_with("password for 'http");
  if (const size_t end = low.find("': "); asks_git && end != std::string::npos) return end + 2;
  return std::string::npos;
}

}  // namespace

size_t EndOfQuestion(std::string_view text) {
  text = text.substr(0, 400);
  return MayTellWait(text) ? QuestionEnd(LowerCase(text)) : std::string::npos;
}

LineWait WaitToldIn(std::string_view text) {
  text = text.substr(0, 400);
  if (!MayTellWait(text)) return LineWait::none;
  const std::string low = LowerCase(text);
  if (low.starts_with("(pdb)") || low.starts_with("ipdb>") || low.starts_with("(pdb++)")) return LineWait::person;
  if (QuestionEnd(low) != std::string::npos) return LineWait::person;
  if (!ContainsAny(low, {"wait", " yet"}) || IsWaitOver(low)) return LineWait::none;
  for (const std::string_view phrase :
       {"waiting for ", "waiting until ", "waiting on ", "waits for ", "waits until ", "wait for ", "wait until "}) {
    const size_t at = low.find(phrase);
    if (at == std::string::npos) continue;
    const std::string_view behind = std::string_view(low).substr(at + phrase.size());
    if (ContainsAny(behind,
                    {"debugger", "attach", "user input", "your input", "keypress", "key press", "confirmation"}))
      return LineWait::person;
    if (!phrase.starts_with("waiting") && !phrase.starts_with("waits")) continue;  // "will wait for ..."
    return AreWaitedPeers(behind) ? LineWait::peers : LineWait::thing;
  }
  // "another process holds tokens.cache.lock, waiting"
  if ((low.ends_with(", waiting") || low.ends_with(", waiting ...") || low.ends_with(", waiting...")) &&
      Contains(low, "lock"))
    return LineWait::thing;
  return ContainsAny(low, {"not exist yet", "n't exist yet", "not there yet", "not found yet", "not available yet",
                           "not ready yet", "not present yet", "n't there yet", "n't ready yet", "still missing"})
             ? LineWait::thing
             : LineWait::none;
}

}  // namespace tacet
