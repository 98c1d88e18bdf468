// SPDX-License-Identifier: Apache-2.0
// torchrun's block about the workers that failed:
//
// ============================================================
// train.py FAILED
// ------------------------------------------------------------
// Failures:
// [1]:
//   time      : 2026-01-02_03:04:05
//   host      : node7
//   rank      : 12 (local_rank: 4)
//   exitcode  : -6 (pid: 123)
//   error_file: <N/A>
//   traceback : Signal 6 (SIGABRT) received by PID 123
// ------------------------------------------------------------
// Root Cause (first observed failure):
// [0]:
//   ...
// ============================================================
#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/torch_log_time.h"

namespace tacet {
namespace {

bool IsRule(std::string_view text, char c) {
  return text.size() >= 8 && text.find_first_not_of(c) == std::string_view::npos;
}

// "[12]:" opens the next failure.
bool IsNumberLine(std::string_view text) {
  int number = 0;
  return TakeLiteral(text, "[") && TakeNumber(text, &number) && text == "]:";
}

// "  time      : 2026-01-02_03:04:05" -> "time", "2026-01-02_03:04:05". Where people paste it the two blanks get lost.
bool SplitField(std::string_view text, std::string_view* name, std::string_view* value) {
  TakeLiteral(text, "  ");
  if (text.size() < 11 || text[0] == ' ') return false;
  const size_t colon = text.find(':');
  if (colon != 10) return false;
  *name = Trim(text.substr(0, colon));
  *value = Trim(text.substr(colon + 1));
  return true;
}

}  // namespace

LineUse SummaryReader::ReadField(const LogLine& line, std::string_view name, std::string_view value) {
  if (name == "time") {
    TakeDatedTime(value, &failure_.time);
  } else if (name == "host") {
    // Containers often have no better name; it joins nobody, and keeps apart what a log of the host calls otherwise.
    if (value != "localhost" && !value.starts_with("localhost.")) failure_.host = Capped(value, 200);
  } else if (name == "rank") {
    failure_.local_rank = IntAfter<int32_t>(value, "local_rank: ").value_or(-1);
    TakeNumber(value, &failure_.rank);
    line_ = line;
    line_.text = {};
  } else if (name == "exitcode") {
    failure_.pid = IntAfter(value, "(pid: ").value_or(-1);
    has_code_ = TakeNumber(value, &failure_.value);
  } else if (name == "traceback") {
    if (!value.starts_with("To enable traceback see")) failure_.text = Capped(value, 600);
  } else if (name == "error_file") {
    if (value.starts_with('/')) failure_.file = Capped(value, 300);
  } else {
    return LineUse::not_understood;
  }
  return LineUse::understood;
}

void SummaryReader::Write(RecordList& out) {
  // Cut before the code: that it failed is all that is told.
  if (open_ && !has_code_) failure_.value = 1;
  if (open_ && failure_.rank >= 0) {
    TorchLogRecord& record = out.Add(TorchLogKind::process_exited, line_);
    const SourceRef source = record.source;
    const uint32_t voice = record.voice;
    record = failure_;
    record.kind = TorchLogKind::process_exited;
    record.source = source;
    record.voice = voice;
    record.value2 = root_ ? 1 : 0;
    if (record.value < 0) record.subject = std::string(SignalName(-record.value));
    if (root_)
      record.text = record.text.empty() ? "torchrun names this failure first"
                                        : record.text + " (torchrun names this failure first)";
  }
  open_ = has_code_ = false;
  failure_ = TorchLogRecord();
}

void SummaryReader::EndTraceback(RecordList& out) {
  traceback_.Finish(out);
  quoting_ = false;
}

LineUse SummaryReader::Read(const LogLine& line, const std::function<uint32_t(int32_t)>& voice_of, RecordList& out) {
  const std::string_view trimmed = Trim(line.text);
  const bool rule = IsRule(trimmed, '=') || IsRule(trimmed, '-');
  if (rule || IsNumberLine(trimmed) || trimmed.starts_with("Root Cause (first observed failure)") ||
      trimmed == "Failures:") {
    const bool ours = open_ || quoting_ || !rule;
    if (quoting_) EndTraceback(out);
    Write(out);
    if (trimmed[0] == 'R') root_ = true;
    if (trimmed[0] == 'F' || (rule && trimmed[0] == '=')) root_ = false;
    return ours ? LineUse::understood : LineUse::ignored;
  }
  if (quoting_) {
    LogLine quoted = line;
    quoted.voice = quoted_voice_;
    quoted.tagged = true;  // the block's own rules end the message
    return traceback_.Read(quoted, out) == LineUse::not_understood ? LineUse::ignored : LineUse::understood;
  }
  std::string_view name, value;
  if (!open_ && !line.has(Keyword::summary_field)) return LineUse::not_understood;
  if (!SplitField(line.text, &name, &value)) return LineUse::not_understood;
  // A table of settings may have a line "rank      : 3" of its own.
  if (!open_ && name == "rank" && !Contains(value, "(local_rank: ")) return LineUse::not_understood;
  open_ = true;
  const LineUse use = ReadField(line, name, value);
  if (name == "traceback" && line.has(Keyword::traceback)) {
    quoted_voice_ = voice_of(failure_.rank);
    failure_.text = "raised an exception, quoted below";
    Write(out);
    LogLine quoted = line;
    quoted.voice = quoted_voice_;
    quoting_ = true;
    traceback_.Read(quoted, out);
  }
  return use;
}

void SummaryReader::Finish(RecordList& out) {
  if (quoting_) EndTraceback(out);
  Write(out);
}

}  // namespace tacet
