// SPDX-License-Identifier: Apache-2.0
// Ascend's codes come with a reason and a cure of their own:
//   EJ0001: 2025-03-02-11:08:40.117.203 Failed to initialize the HCCP process. Reason: Maybe the last training process
//   is running.
//           Solution: Wait for 10s after killing the last training process and try again.
#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/libraries/torch_log_ascend.h"

namespace tacet {
namespace {

constexpr uint32_t kLinesToTheCure = 6;

// "EJ0001", "EE1002"; empty where the line does not begin with a code.
std::string_view AscendCode(std::string_view text) {
  if (text.size() < 8 || text[0] != 'E' || text[1] < 'A' || text[1] > 'Z' || text[6] != ':') return {};
  const std::string_view digits = text.substr(2, 4);
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? text.substr(0, 6) : std::string_view();
}

// Without the process and the time that stand between the code and its words.
std::string AscendWords(std::string_view code, std::string_view text) {
  std::string_view words = Trim(text.substr(7));
  if (TakeLiteral(words, "[PID:")) words = Trim(words.substr(std::min(words.find(']') + 1, words.size())));
  if (words.size() > 11 && words[4] == '-' && words[7] == '-') TakeWord(words);
  return std::string(code) + ": " + Capped(Trim(words), 280);
}

}  // namespace

LineUse ReadAscendAdvice(const LogLine& line, AscendBlock& block, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (const auto cure = After(text, "Solution: ")) {
    if (block.coded == nullptr || line.source.line > block.coded_line + kLinesToTheCure) return LineUse::not_understood;
    if (block.coded->cure.empty()) block.coded->cure = Capped(Trim(*cure), 280);
    return LineUse::understood;
  }
  const std::string_view code = AscendCode(text);
  if (code.empty() || IsAscendWait(text)) return LineUse::not_understood;
  const bool vague = code == "EZ9999";  // "Inner Error!": any other says more
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "other library");
  if (is_new) {
    record->value = 2;
    record->subject = "an HCCL error";
    record->text = Capped(line.text);
  } else {
    AppendCapped(record->text, "\n");
    AppendCapped(record->text, line.text);
    if (record->repeats > 1) --record->repeats;  // a line of the same error
  }
  if (record->object.empty() ||
      (!vague && (AscendCode(record->object).empty() || record->object.starts_with("EZ9999"))))
    record->object = AscendWords(code, text);
  if (record->rank < 0) record->rank = block.rank;
  if (record->pid < 0) record->pid = block.pid;
  block.coded = record;
  block.coded_line = line.source.line;
  return LineUse::understood;
}

}  // namespace tacet
