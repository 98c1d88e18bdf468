// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/pasted_sentence.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/advice.h"
#include "base/text_scan.h"
#include "evidence/layers/pasted_wrap.h"

namespace tacet {
namespace {

// Sentences are short; what is longer than this is a log whose lines nobody knows.
constexpr size_t kMostLines = 60;

struct Quotation {
  std::string_view open, close;  // no close: to the end of the line
};
constexpr std::array<Quotation, 11> kQuotations{{{"`", "`"},
                                                 {"\"", "\""},
                                                 {"\xe2\x80\x9c", "\xe2\x80\x9d"},  // “ ”
                                                 {"(", ")"},
                                                 {"\xef\xbc\x88", "\xef\xbc\x89"},  // （ ）
                                                 {": ", ""},
                                                 {". ", ""},
                                                 {"\xef\xbc\x9a", ""},  // ：
                                                 {"\xef\xbc\x8c", ""},  // ，
                                                 {"with ", ""},
                                                 {"error ", ""}}};

// Whoever writes so speaks of what might happen, or of what is over.
constexpr std::array<std::string_view, 14> kHedges{"if you",     "If you",     "may ",    "might ",    "could ",
                                                   "would ",     "to avoid",   "solved",  "resolved",  "fixed",
                                                   "no longer ", "instead of", "not get", "will raise"};

// "RuntimeError: ", "torch.cuda.OutOfMemoryError: "
bool IsErrorOfPython(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  if (name.size() + 2 >= text.size() || !text.substr(name.size()).starts_with(": ")) return false;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
  return plain && name.size() > 5 && (name.ends_with("Error") || name.ends_with("Exception"));
}

// [W1210 11:08:45.455238000 TCPStore.cpp:347], [E ProcessGroupNCCL.cpp:828]
bool IsLoggersHead(std::string_view text) {
  if (text.size() < 12 || text[0] != '[' || (text[1] != 'W' && text[1] != 'E')) return false;
  const std::string_view head = text.substr(0, text.find(']'));
  return head.size() < 80 && (Contains(head, ".cpp:") || Contains(head, ".py:"));
}

// Nov 15 00:15:37 node7 kernel: NVRM: Xid ...: the head tells the host, and belongs to the line.
bool HasKernelsHead(std::string_view text) {
  const std::string_view head = text.substr(0, std::min(text.substr(0, 120).find(" kernel: "), text.size()));
  if (head.size() == text.size()) return false;
  for (size_t at = head.find(':'); at != std::string_view::npos; at = head.find(':', at + 1))
    if (at >= 2 && at + 5 < head.size() && head[at + 3] == ':' && IsDigit(head[at - 1]) && IsDigit(head[at + 1]))
      return true;
  return false;
}

bool BeginsLine(std::string_view text) {
  for (const std::string_view begin :
       {"slurmstepd: ", "srun: error: ", "[rank", "NVRM: ", "CUDA error: ", "NCCL error ", "terminate called ",
        "ncclSystemError", "ncclInternalError", "ncclRemoteError", "ncclUnhandledCudaError",
        "Unable to determine the device handle for "})
    if (text.starts_with(begin)) return true;
  // "... the error NET/IB : Got completion from peer 10.0.0.7<34567> with status=12": NCCL's words without their head.
  if (text.starts_with("NET/") && Contains(text.substr(0, 80), "Got completion ")) return true;
  return IsErrorOfPython(text) || IsLoggersHead(text) || HasKernelsHead(text);
}

std::string_view PartBehind(std::string_view sentence, const Quotation& marks) {
  for (size_t at = sentence.find(marks.open); at != std::string_view::npos; at = sentence.find(marks.open, at + 1)) {
    std::string_view part = sentence.substr(at + marks.open.size());
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (!BeginsLine(part)) continue;
    if (!marks.close.empty()) part = part.substr(0, part.rfind(marks.close));
    return Trim(part);
  }
  return {};
}

}  // namespace

std::string_view LineInSentence(std::string_view sentence) {
  if (BeginsLine(sentence)) return sentence;
  if (IsAdvice(sentence)) return sentence;
  for (const std::string_view hedge : kHedges)
    if (Contains(sentence, hedge)) return sentence;
  for (const Quotation& marks : kQuotations)
    if (const std::string_view part = PartBehind(sentence, marks); part.size() > 12) return part;
  // Words in another script may stand before it, with a blank or without one.
  for (size_t at = 1; at < sentence.size(); ++at) {
    const bool behind = static_cast<unsigned char>(sentence[at - 1]) >= 0x80 ||
                        (at > 1 && sentence[at - 1] == ' ' && static_cast<unsigned char>(sentence[at - 2]) >= 0x80);
    if (behind && sentence[at] >= 'A' && BeginsLine(sentence.substr(at))) return sentence.substr(at);
  }
  for (size_t at = sentence.find('['); at != std::string_view::npos; at = sentence.find('[', at + 1))
    if (at > 0 && static_cast<unsigned char>(sentence[at - 1]) >= 0x80 && IsLoggersHead(sentence.substr(at)))
      return sentence.substr(at);
  return sentence;
}

// "3: " of srun and "[1,3]<stderr>:" of mpirun stand before every line of a task: no sentence begins so.
static std::string_view WithoutTask(std::string_view line) {
  const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  if (digits > 0 && digits <= 5 && line.substr(digits).starts_with(": ")) return line.substr(digits + 2);
  if (!line.starts_with("[1,")) return line;
  const size_t end = line.find(">:");
  return end != std::string_view::npos && end < 24 ? line.substr(end + 2) : line;
}

bool IsTold(const std::vector<std::string_view>& lines) {
  if (lines.size() > kMostLines) return false;
  const bool has_log = std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    line = WithoutTask(line);
    return LooksLikeLineBegin(line) || BeginsLine(line) || Contains(line, "Traceback (most recent call last)") ||
           (Contains(line, "File \"") && Contains(line, "\", line "));
  });
  return !has_log && std::any_of(lines.begin(), lines.end(),
                                 [](std::string_view line) { return LineInSentence(line).data() != line.data(); });
}

}  // namespace tacet
