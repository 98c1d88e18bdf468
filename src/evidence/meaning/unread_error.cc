// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/unread_error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/test_result.h"
#include "base/text_scan.h"
#include "evidence/told/told_lines.h"

namespace tacet {
namespace {

// A word by itself: not "TORCH_NCCL_ASYNC_ERROR_HANDLING".
bool HasBareWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char behind = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if (!IsLetter(before) && before != '_' && !IsLetter(behind) && behind != '_') return true;
  }
  return false;
}

// "[W1210 11:04:01.455238000 TCPStore.cpp:347]", "[W socket.cpp:601]": PyTorch's own warnings.
bool IsWarningOfPyTorch(std::string_view line) {
  const auto rest = After(line, "[W");
  return rest && !rest->empty() && (IsDigit((*rest)[0]) || (*rest)[0] == ' ');
}

// " exited with code 3", not " exited with code 0"
bool HasFailedCode(std::string_view line) {
  for (const std::string_view words :
       {"exited with code ", "exit code ", "exit code: ", "Exit code: ", "exit status ", "exitcode: "}) {
    const auto rest = After(line, words);
    int64_t code = 0;
    std::string_view number = rest.value_or("");
    if (rest && TakeNumber(number, &code) && code != 0) return true;
  }
  return false;
}

// "class_error: 99.64", "val error: 0.231": a measure, and no address
bool IsFigure(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && IsDigit(text[at])) ++at;
  if (at == 0 || at >= text.size() || text[at] != '.') return false;
  const size_t fraction = ++at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at > fraction && (at == text.size() || (text[at] != '.' && text[at] != ':'));
}

// "**read/write error**", "bus error", "KVS connection error!": a few words whose last one says it, and no figure.
bool IsBareError(std::string_view line) {
  line = Trim(line);
  while (!line.empty() && (line.back() == '*' || line.back() == '!' || line.back() == '.')) line.remove_suffix(1);
  while (!line.empty() && line.front() == '*') line.remove_prefix(1);
  if (line.size() > 40 || !(line.ends_with(" error") || line.ends_with(" ERROR"))) return false;
  // "no error", "without error", "val error", "mean squared error", "prediction error" are results.
  if (ContainsAny(line, {"no ", "No ", "without", "on ", "ignore"})) return false;
  return ContainsAny(line, {"onnection", "ystem ", "nternal ", "emory ", "us error", "I/O", "nput/output",
                            "nput/Output", "read/write", "river ", "evice ", "nknown ", "rotocol ", "egmentation "});
}

// slurmstepd: error: NVML: Failed to get usage(15): ...    "program: error: ", as GNU's rules for messages have it
bool IsErrorOfProgram(std::string_view line) {
  const size_t colon = std::min(line.find(": "), line.size());
  const std::string_view name = line.substr(0, colon);
  if (name.size() < 2 || name.size() > 60 || name.find_first_of(" \t'\"`") != std::string_view::npos) return false;
  const std::string_view rest = line.substr(std::min(colon + 2, line.size()));
  return rest.starts_with("error: ") || rest.starts_with("fatal: ") || rest.starts_with("fatal error: ");
}

// "### Error messages and logs", "**Error log**": the headings of a form that somebody filled in.
bool IsHeading(std::string_view line) {
  line = Trim(line);
  const size_t marks = std::min(line.find_first_not_of('#'), line.size());
  if (marks >= 2 && marks <= 6 && line.substr(marks).starts_with(' ')) return true;
  if (!TakeLiteral(line, "**") || !line.ends_with("**") || line.size() > 60) return false;
  line.remove_suffix(2);
  return std::all_of(line.begin(), line.end(), [](char c) { return IsLetter(c) || c == ' ' || c == ':'; });
}

// "Error: ", "error: " before anything but a measure
bool HasErrorWord(std::string_view line) {
  constexpr std::string_view kWord = "rror: ";
  for (size_t at = line.find(kWord); at != std::string_view::npos; at = line.find(kWord, at + 1))
    if (!IsFigure(Trim(line.substr(at + kWord.size())))) return true;
  return false;
}

// F0825 11:10:33.595355   331 device.cc:592] Check failed: ...          glog and Abseil, where F ends the program
// F20250825 11:10:33.595355   331 device.cc:592] ...
// I1103 16:40:02.104410       1 allocate.go:208] Failed to ...           klog of Kubernetes, where I is no error
bool HasLevel(std::string_view line, std::string_view levels) {
  if (line.empty() || levels.find(line[0]) == std::string_view::npos) return false;
  line.remove_prefix(1);
  const size_t day = std::min(line.find_first_not_of("0123456789"), line.size());
  if ((day != 4 && day != 8) || !line.substr(day).starts_with(' ')) return false;
  line.remove_prefix(day + 1);
  if (line.size() < 20 || line[2] != ':' || line[5] != ':') return false;
  const size_t close = line.substr(0, 120).find("] ");
  const std::string_view place = line.substr(0, close == std::string_view::npos ? 0 : close);
  const size_t colon = place.rfind(':');
  return colon != std::string_view::npos && colon > 8 && colon + 1 < place.size() && IsDigit(place[colon + 1]) &&
         place.find('.', place.rfind(' ')) < colon;
}

bool IsFatalLine(std::string_view line) { return HasLevel(line, "F"); }

// imexd.service: Main process exited, code=exited, status=1/FAILURE      systemd, of a service of the host
// imexd.service: Main process exited, code=killed, status=9/KILL
// imexd.service: Failed with result 'exit-code'.
bool IsFailedUnit(std::string_view line) {
  const auto told = After(line, ".service: ");
  if (!told) return false;
  if (told->starts_with("Failed with result '")) return true;
  const auto status = After(*told, "code=exited, status=");
  return (status && !status->starts_with('0')) || ContainsAny(*told, {"code=killed, status=", "code=dumped, status="});
}

// thread 'main' panicked at src/worker.rs:212:14:                       Rust
// panic: runtime error: index out of range [8] with length 8            Go
// [LightGBM] [Fatal] Socket recv error, Connection reset by peer
bool IsLastWordOfProgram(std::string_view line) {
  line = Trim(line);
  if (IsFatalLine(line)) return true;
  if (line.starts_with("thread '") && Contains(line.substr(0, 120), "' panicked at ")) return true;
  return line.starts_with("panic: ") || Contains(line.substr(0, 80), "] [Fatal] ");
}

// "Rank 1 has different values for step: 8016.0. Other ranks: 7870.0", "mismatch between rank 0 and rank 3: ...": a
// check of the program that found ranks to differ.
bool ComparesRanks(std::string_view line) {
  const bool ranks =
      ContainsAny(line, {"Rank ", "rank "}) && ContainsAny(line, {"ther ranks", "cross ranks", "and rank "});
  return ranks && ContainsAny(line, {"has different ", "have different ", "differs from", "differ from", "ismatch",
                                     "nconsistent", "not equal"});
}

}  // namespace

bool EndsItsProgram(std::string_view line) {
  return ContainsAny(line, {"BAD TERMINATION", "Assertion fail", "Assertion `", "assertion fail", "FATAL"}) ||
         IsLastWordOfProgram(line);
}

bool ReportsAnEnd(std::string_view line) {
  return HasFailedCode(line) || IsFailedUnit(line) ||
         ContainsAny(line, {"exitcode:", "ChildFailedError", "elastic/", "BAD TERMINATION", "CrashLoopBackOff",
                            "FAILED", "srun: error: "});
}

// (EngineCore pid=7) ERROR 06-24 02:06:20 [core.py:1196]   File "/venv/.../abstract.py", line 109, in __init__
// Of such a traceback only the last line tells an error.
bool IsFrame(std::string_view line) {
  const auto place = After(line.substr(0, 600), "  File \"");
  return place && Contains(*place, "\", line ");
}

bool ReportsError(std::string_view line) {
  if (IsPassedTest(line) || IsFrame(line)) return false;
  line = line.substr(0, 2000);
  // 'step 5 loss 1.51 | sample: "RuntimeError: ..."': a text that the job trains on.
  if (const size_t quote = line.find('"'); quote != std::string_view::npos && Contains(line.substr(0, quote), "loss"))
    line = line.substr(0, quote);
  if (ContainsAny(line,
                  {"INFO", "DEBUG", "WARN", "Warn", "warn", "TRACE", "level=info", "level=debug", "severity=Correct"}))
    return false;
  if (IsWarningOfPyTorch(line) || HasLevel(Trim(line), "IW") || IsHeading(line) ||
      ContainsAny(line, {"avoid", "If you", "if you"}))
    return false;
  // [gpu01:10216] PMIX ERROR: NO-PERMISSIONS in file .../dstore/dstore_base.c at line 234: PMIx could not share its
  // store with processes of another user, and does without.
  if (Contains(line, "PMIX ERROR: ") && Contains(line, "dstore")) return false;
  // "couldn't chdir to `/home/kim': ...: going to /tmp instead": it goes on, and says how.
  if (ContainsAny(line, {" instead", "alling back to "})) return false;
  if (ContainsAny(line, {"BAD TERMINATION", "CrashLoopBackOff", "OOMKilled", "Assertion fail", "Assertion `", "ASSERT ",
                         "assertion fail", "FATAL", "Fatal error", "fatal error"}))
    return true;
  if (IsLastWordOfProgram(line)) return true;
  if (HasFailedCode(line) || IsFailedUnit(line) || ComparesRanks(line)) return true;
  if (IsErrorOfProgram(Trim(line))) return true;
  if (IsSentence(line)) return false;
  if (IsBareError(line)) return true;
  const bool shaped =
      HasBareWord(line, "ERROR") || HasBareWord(line, "FAILED") || HasErrorWord(line) ||
      ContainsAny(line, {" Error ", "Failed to ", "failed to ", "failed: ", "failed with ", "timed out after "});
  return shaped && !ContainsAny(line, {"error: 0", "errors: 0", "Error: 0", "error: None", "failed=0"});
}

}  // namespace tacet
