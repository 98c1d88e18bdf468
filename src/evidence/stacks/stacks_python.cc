// SPDX-License-Identifier: Apache-2.0
// Lines that faulthandler, python-gdb's py-bt and py-spy write.
#include "base/text_scan.h"
#include "evidence/stacks/stacks_lines.h"

namespace tacet {
namespace {

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// "0x00007f1c2c5fe740" or "12345"
std::string_view TakeThreadId(std::string_view& text) {
  size_t end = text.starts_with("0x") ? 2 : 0;
  while (end < text.size() && IsHexDigit(text[end])) ++end;
  std::string_view id = text.substr(0, end);
  if (id.size() < 1 || id == "0x") return {};
  text.remove_prefix(end);
  return id;
}

// "File \"/a/train.py\", line 88" + separator + "step"; a file or a line that faulthandler cannot read is "???".
bool ParseFileLine(std::string_view line, std::string_view separator, FrameLine* out) {
  SkipBlanks(line);
  if (!TakeLiteral(line, "File ")) return false;
  if (TakeLiteral(line, "???")) {
    out->file = {};
  } else {
    if (!TakeLiteral(line, "\"")) return false;
    const size_t end = line.find("\", line ");
    if (end == std::string_view::npos) return false;
    out->file = line.substr(0, end);
    line.remove_prefix(end + 1);
  }
  if (!TakeLiteral(line, ", line ")) return false;
  if (!TakeLiteral(line, "???") && !TakeNumber(line, &out->code_line)) return false;
  if (!TakeLiteral(line, separator) || line.empty()) return false;
  out->function = line;
  return true;
}

}  // namespace

// Current thread 0x00007f1c2c5fe740 (most recent call first):
// Thread 0x00007f1b11c246c0 (most recent call first):
// Thread 0x00007f1b11c246c0 [Thread-1 (watch)] (most recent call first):
// Stack (most recent call first):
bool ParseFaulthandlerThread(std::string_view line, ThreadLine* out) {
  constexpr std::string_view kTail = "(most recent call first):";
  if (!line.ends_with(kTail)) return false;
  line.remove_suffix(kTail.size());
  if (line == "Stack ") return true;
  out->current = TakeLiteral(line, "Current thread ");
  if (!out->current && !TakeLiteral(line, "Thread ")) return false;
  out->id = TakeThreadId(line);
  if (out->id.empty()) return false;
  line = Trim(line);
  if (line.starts_with('[') && line.ends_with(']')) {
    out->name = line.substr(1, line.size() - 2);
    return true;
  }
  return line.empty();
}

//   File "/a/train.py", line 88 in step
bool ParseFaulthandlerFrame(std::string_view line, FrameLine* out) { return ParseFileLine(line, " in ", out); }

//   File "/a/train.py", line 88, in step
//   <built-in method sleep of module object at remote 0xffffa6033330>
// #7 Frame 0x7f1c21b0, for file train.py, line 88, in step (x=1)
bool ParsePyBtFrame(std::string_view line, FrameLine* out) {
  SkipBlanks(line);
  if (TakeLiteral(line, "<built-in method ")) {
    out->function = TakeWord(line);
    out->file = "<built-in>";
    return !out->function.empty();
  }
  if (TakeLiteral(line, "#")) {
    uint32_t number = 0;
    if (!TakeNumber(line, &number)) return false;
    const auto rest = After(line, ", for file ");
    if (!rest) return false;
    const size_t end = rest->find(", line ");
    if (end == std::string_view::npos) return false;
    out->file = rest->substr(0, end);
    line = rest->substr(end + 7);
    if (!TakeNumber(line, &out->code_line) || !TakeLiteral(line, ", in ")) return false;
    out->function = line.substr(0, line.find(" ("));
    return !out->function.empty();
  }
  return ParseFileLine(line, ", in ", out);
}

//   Binary file "/usr/lib/libc.so.6", at __poll+0x4f [0x77b7323acf9c]
//   Binary file "/opt/python/python", at +0x32dcbd [0x5b27f7d85cbd]
bool ParsePythonCStackFrame(std::string_view line, FrameLine* out) {
  SkipBlanks(line);
  if (!TakeLiteral(line, "Binary file \"")) return false;
  const size_t end = line.find('"');
  if (end == std::string_view::npos) return false;
  out->file = line.substr(0, end);
  const auto symbol = After(line.substr(end), "at ");
  if (symbol) out->function = symbol->substr(0, symbol->find_first_of("+ ["));
  return true;
}

// Process 12345: /usr/bin/python train.py --lr 1
// Parent Process 12300: torchrun train.py
bool ParsePySpyProcess(std::string_view line, ProcessLine* out) {
  if (!TakeLiteral(line, "Process ") || !TakeNumber(line, &out->pid) || !TakeLiteral(line, ":")) return false;
  out->command = Trim(line);
  return true;
}

// Thread 12345 (active+gil): "MainThread"
// Thread 0x7F1C2C5FE740 (idle)
bool ParsePySpyThread(std::string_view line, ThreadLine* out) {
  if (!TakeLiteral(line, "Thread ")) return false;
  // Thread (active): "MainThread": whoever pasted it took the number out
  const bool masked = line.starts_with("(") && Contains(line, "): \"");
  if (!masked) out->id = TakeThreadId(line);
  if ((!masked && (out->id.empty() || !TakeLiteral(line, " "))) || !TakeLiteral(line, "(")) return false;
  out->state = TakeUntil(line, ')');
  if (out->state != "idle" && out->state != "active" && out->state != "active+gil" && out->state != "gil") return false;
  TakeLiteral(line, ")");
  if (line.empty()) return true;
  if (!TakeLiteral(line, ": \"")) return false;
  out->name = line.ends_with('"') ? line.substr(0, line.size() - 1) : line;
  return true;
}

//     all_reduce (torch/distributed/distributed_c10d.py:2501)
//     c10d::ProcessGroupGloo::AsyncWork::wait(std::chrono::duration<long>) (libtorch_cpu.so)
bool ParsePySpyFrame(std::string_view line, FrameLine* out) {
  if (!line.starts_with("    ") || line.size() < 5 || line[4] == ' ') return false;
  line.remove_prefix(4);
  // dispatch (deep_ep/buffer.py:545)              <-- blocked here: what whoever pasted it wrote behind the frame
  for (const std::string_view remark : {"<-", "# ", "\xE2\x86\x90"})
    if (const size_t at = line.find(remark); at != std::string_view::npos && at > 2 && line[at - 1] == ' ')
      line = line.substr(0, line.find_last_not_of(' ', at - 1) + 1);
  if (!line.ends_with(')')) return false;
  line.remove_suffix(1);
  const size_t open = line.rfind(" (");
  if (open == std::string_view::npos || open == 0) return false;
  out->function = line.substr(0, open);
  out->file = line.substr(open + 2);
  const size_t colon = out->file.rfind(':');
  if (colon == std::string_view::npos) return !out->file.empty();
  std::string_view digits = out->file.substr(colon + 1);
  if (TakeNumber(digits, &out->code_line) && digits.empty())
    out->file = out->file.substr(0, colon);
  else
    out->code_line = 0;
  return true;
}

}  // namespace tacet
