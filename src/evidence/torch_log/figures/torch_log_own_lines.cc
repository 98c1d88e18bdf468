// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_own_lines.h"

#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_milestones.h"
#include "evidence/torch_log/figures/torch_log_progress.h"

namespace tacet {
namespace {

// /venv/lib/python3.12/site-packages/torch/profiler/profiler.py:224: UserWarning: Warning: Profiler clears events ...
bool IsPythonWarning(std::string_view text) {
  const size_t place = text.substr(0, 400).find(".py:");
  if (place == std::string_view::npos) return false;
  const auto kind = After(text.substr(place), "Warning: ");
  return kind.has_value();
}

constexpr int kMaxPids = 64;

// What a trainer prints once more behind its end: a bar that is full, the table of its figures, the last evaluation.
//   100%|##########| 750/750 [1:25:20<00:00,  6.83s/it]
//     epoch                    =        3.0
bool IsLastLook(std::string_view text) {
  if (Contains(text.substr(0, 80), "100%|") || Contains(text, "eval_")) return true;
  const size_t equals = text.find(" = ");
  return text.starts_with("  ") && equals != std::string_view::npos &&
         Trim(text.substr(0, equals)).find_first_of(" :") == std::string_view::npos;
}

// "saving checkpoint at iteration     500 to /ckpt", "successfully saved checkpoint from iteration 500": the last step
// is named again.
bool TellsOfSaving(std::string_view text) {
  return ContainsAny(text, {"saving ", "Saving ", "saved ", "Saved "}) &&
         ContainsAny(text, {"checkpoint", "model", "state"});
}

}  // namespace

bool IsNoise(std::string_view text) {
  if (text.empty()) return true;
  switch (text[0]) {
    case 'f': return text.starts_with("frame #");
    case 'E': return text.starts_with("Exception raised from ") || text.starts_with("Extension modules: ");
    case 'C':
      return text.starts_with("CUDA kernel errors might be") || text.starts_with("Compile with `TORCH_USE_CUDA_DSA`") ||
             text.starts_with("Current thread 0x");
    case 'F': return text.starts_with("For debugging consider passing CUDA_LAUNCH_BLOCKING");
    case 'S': return text.starts_with("Setting OMP_NUM_THREADS") || text.starts_with("Search for `cuda");
    case 'T': return text.starts_with("Thread 0x");
    case 'N': return text.starts_with("NCCL version ");
    case '*': return text.find_first_not_of('*') == std::string_view::npos;
    case 'w': return text.starts_with("wandb: ");
    case 'W': return text.starts_with("WARNING:torch.distributed.run") || text.starts_with("WARNING:__main__:");
    case ' ': {
      const std::string_view trimmed = Trim(text);
      return trimmed.starts_with("what():") || (trimmed.starts_with("File \"") && Contains(trimmed, ", line "));
    }
    default: return false;
  }
}

void OwnLineReader::NoteProgress(const LogLine& line, int64_t number, bool of_epoch, RecordList& out) {
  ++steps_;
  if (finished_ && !of_epoch && number >= 0 && number < last_number_)
    out.NoteRun({finish_line_.source, 0, last_number_, finish_text_, finish_line_.source.line});
  finished_ = false;
  training_.ReadStep(line, of_epoch ? -1 : number);
  out.NoteStep(number);
  const bool rises = number > last_number_ || (number == -1 && last_number_ == -1);
  rising_ = number > last_number_ ? rising_ + 1 : number == last_number_ ? rising_ : 1;
  if (rises)
    line_before_ = last_line_;
  else if (number < last_number_)
    line_before_ = 0;
  last_number_ = number;
  last_line_ = line.source.line;
  TorchLogRecord* record = last_step_;
  if (first_step_ == nullptr) {
    record = first_step_ = &out.Add(TorchLogKind::progress, line);
  } else if (last_step_ == nullptr) {
    record = last_step_ = &out.Add(TorchLogKind::progress, line);
  }
  record->source = line.source;
  record->time = line.time;
  record->value = number;
  record->count = steps_;
  record->value2 = rising_;
  record->line_before = line_before_;
  record->object = of_epoch ? "epoch" : "";
  record->text.assign(line.text.substr(0, 300));
}

LineUse OwnLineReader::Read(const LogLine& line, TorchLogVoice& voice, RecordList& out) {
  const bool under_warning = in_warning_ && line.text.starts_with("  ");
  in_warning_ = false;
  if (under_warning || IsNoise(line.text)) return LineUse::ignored;
  // A bar that is still open may stand before it on the same line.
  if (line.has(Keyword::loss_scale))
    if (const auto change = FindScaleDrop(line.text)) {
      bool of_epoch = false;
      if (const auto number = line.has(Keyword::may_progress) ? FindProgress(line.text, &of_epoch) : std::nullopt;
          number && *number >= 0)
        NoteProgress(line, *number, of_epoch, out);
      training_.ReadScale(line, *change);
      return LineUse::understood;
    }
  const FinishSign sign = line.has(Keyword::may_finish) ? FindFinishSign(line.text) : FinishSign::none;
  // {'train_runtime': 5121.4, ..., 'epoch': 3.0}
  const bool may_progress = line.has(Keyword::may_progress) && sign != FinishSign::strong;
  bool of_epoch = false;
  if (const auto number = may_progress ? FindProgress(line.text, &of_epoch) : std::nullopt) {
    if (finished_ && finished_for_sure_ &&
        (IsLastLook(line.text) || (*number <= last_number_ && TellsOfSaving(line.text))))
      return LineUse::understood;
    NoteProgress(line, *number, of_epoch, out);
    return LineUse::understood;
  }
  if (line.has(Keyword::not_finite))
    if (const auto report = FindNotFinite(line.text)) {
      training_.ReadNotFinite(line, *report);
      return LineUse::understood;
    }
  if (line.has(Keyword::python_warning) && IsPythonWarning(line.text)) {
    in_warning_ = true;
    return LineUse::ignored;
  }
  if (sign != FinishSign::none) {
    NoteFinish(line, sign == FinishSign::strong);
    return LineUse::understood;
  }
  // "finished" in the middle of a log was about something else.
  if (finished_ && !finished_for_sure_) finished_ = false;
  begins_more_ |= finished_ && !IsDonePod(finish_text_) && BeginsWork(line.text);
  // A kernel's line between the job's own speaks of any process.
  const bool may_tell = line.has(Keyword::may_tell_pid) && !Contains(line.text, "orker") &&
                        !Contains(line.text, "NVRM: ") && !Contains(line.text, "oom-kill:");
  const int64_t pid = may_tell ? FindOwnPid(line.text) : -1;
  if (pid < 0 || pids_ >= kMaxPids) return LineUse::not_understood;
  ++pids_;
  if (voice.pid != pid) voice.pid = voice.pid == -1 ? pid : -2;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_started, line, std::to_string(pid));
  if (is_new) {
    record->pid = pid;
    record->text = Capped(line.text, 300);
  }
  return LineUse::understood;
}

void OwnLineReader::NoteFinish(const LogLine& line, bool for_sure) {
  constexpr size_t kMostRanks = 4096;
  if (!finished_) finish_ranks_.clear();
  if (const int32_t rank = FindRankAtFront(line.text); rank >= 0 && finish_ranks_.size() < kMostRanks)
    finish_ranks_.insert(rank);
  finished_ = true;
  finished_for_sure_ = for_sure;
  begins_more_ = false;
  finish_line_ = line;
  finish_text_ = Capped(line.text, 300);
}

void OwnLineReader::Finish(RecordList& out) {
  if (!finished_) return;
  TorchLogRecord& record = out.Add(TorchLogKind::process_finished, finish_line_);
  record.text = finish_text_;
  record.value = begins_more_ ? 0 : 1;
  record.value2 = finished_for_sure_ ? 1 : 0;
  // One rank alone that says so does not speak for others in the same output.
  if (finish_ranks_.size() > 1) record.ranks.assign(finish_ranks_.begin(), finish_ranks_.end());
}

}  // namespace tacet
