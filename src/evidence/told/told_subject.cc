// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_subject.h"

#include <cstddef>
#include <string>

#include "base/text_scan.h"
#include "evidence/told/told_states.h"

namespace tacet {

bool SpeaksOfAQueue(std::string_view part) {
  return HasAnyWord(part, {"pending", "queued", "in the queue", "in queue"}) &&
         HasAnyWord(part, {"job", "jobs", "pod", "pods", "task", "tasks"}) &&
         !HasAnyWord(part, {"collective", "collectives", "operation", "operations", "ops", "kernel", "kernels", "work",
                            "request", "requests", "hangs", "hung"});
}

bool SpeaksOfATool(std::string_view part) {
  return HasAnyWord(part, {"nvidia-bug-report.sh", "nvidia-bug-report", "py-spy", "gdb", "cuda-gdb", "dmesg", "lspci",
                           "dcgmi", "ibstat", "ibdiagnet", "kubectl", "docker pull", "docker build", "pip install",
                           "the browser", "the terminal", "tensorboard", "vscode"}) &&
         !HasAnyWord(part, {"job", "training", "program", "ranks", "processes", "script", "shows", "says", "rank"});
}

// "In most cases, `nvidia-bug-report.sh` freezes": code is no prose, but it may be what the verb is about.
bool BlamesATool(std::string_view line) {
  for (size_t open = line.find('`'); open != std::string_view::npos;) {
    const size_t close = line.find('`', open + 1);
    if (close == std::string_view::npos) return false;
    const std::string low = LowSentence(line.substr(open + 1, close - open - 1));
    if (SpeaksOfATool(low) && StatesAHang(LowSentence(line.substr(close + 1, 24)))) return true;
    open = line.find('`', close + 1);
  }
  return false;
}

bool StatesIdleBetweenSteps(std::string_view part) {
  return HasAnyWord(part, {"gpu", "gpus"}) && HasAnyWord(part, {"idle", "idles", "idling"}) &&
         HasAnyWord(
             part, {"between iterations", "between iteration", "between each iteration", "between the iterations",
                    "between two iterations", "between steps", "between step", "between each step", "between the steps",
                    "between two steps", "between batches", "between each batch", "between the batches"}) &&
         !IsDoubted(part);
}

bool StatesThatSomeAreIdle(std::string_view line) {
  std::string low(line);
  for (size_t at = low.find(" %"); at != std::string::npos; at = low.find(" %", at)) low.erase(at, 1);
  const size_t busy = low.find("100%");
  if (busy == std::string::npos || !HasAnyWord(low, {"gpu", "gpus"})) return false;
  for (size_t at = low.find("0%"); at != std::string::npos; at = low.find("0%", at + 1)) {
    if (at == 0 || low[at - 1] != ' ') continue;
    // The sentence that tells it.
    const size_t begin = low.rfind(". ", at) == std::string::npos ? 0 : low.rfind(". ", at);
    const std::string_view sentence = std::string_view(low).substr(begin, low.find(". ", at) - begin);
    if (HasAnyWord(sentence,
                   {"remaining", "others", "other", "rest", "some", "while", "whereas", "one of", "the last"}) &&
        HasAnyWord(sentence, {"gpu", "gpus", "utilization", "usage"}) && !IsDoubted(sentence))
      return true;
  }
  return false;
}

}  // namespace tacet
