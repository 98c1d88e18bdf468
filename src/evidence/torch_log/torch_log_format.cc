// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/ends/torch_log_sacct.h"
#include "evidence/torch_log/errors/torch_log_keywords.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/figures/torch_log_outline.h"
#include "evidence/torch_log/figures/torch_log_progress.h"
#include "evidence/torch_log/figures/torch_log_values.h"
#include "evidence/torch_log/torch_log_import.h"
#include "evidence/torch_log/torch_log_parse.h"
#include "evidence/torch_log/torch_log_prefix.h"

namespace tacet {
namespace {

// A file without a single known line is only taken, by its name, when it is this small.
constexpr size_t kFewLines = 30;
constexpr size_t kFewBytes = 8 * 1024;

struct LineCounts {
  size_t lines = 0, torch = 0, nccl = 0, progress = 0, alien = 0;
};

// Phrases that only PyTorch, its launchers or Slurm write. Common words among the keywords prove nothing.
bool HasProof(const KeywordSet& found) {
  for (const Keyword keyword : {Keyword::traceback,          Keyword::framed_traceback,
                                Keyword::notebook_traceback, Keyword::terminate_called,
                                Keyword::last_error,         Keyword::work,
                                Keyword::mismatch,           Keyword::no_grad,
                                Keyword::prior_iteration,    Keyword::ready_once,
                                Keyword::monitored_barrier,  Keyword::exit_code,
                                Keyword::death_signal,       Keyword::summary_field,
                                Keyword::client_timeout,     Keyword::store_barrier,
                                Keyword::store_barrier_wait, Keyword::return_code,
                                Keyword::mpi_noticed,        Keyword::mpi_help,
                                Keyword::mpi_error,          Keyword::tried_to_allocate,
                                Keyword::batch_killed,       Keyword::desync,
                                Keyword::worker_ended,       Keyword::stalled_tensors,
                                Keyword::other_library,      Keyword::missing_symbol,
                                Keyword::known_line,         Keyword::known_error,
                                Keyword::nccl_error,         Keyword::waiting_clients,
                                Keyword::nccl_reason,        Keyword::spawn_ended,
                                Keyword::idle_engine,        Keyword::closing_signal,
                                Keyword::device_assert,      Keyword::fatal_signal})
    if (found.has(keyword)) return true;
  return found.has(Keyword::unhandled);
}

// What only the trainer of a model prints: a loss scale that falls, a gradient norm that is not finite.
bool TellsFigures(std::string_view text, const KeywordSet& found) {
  return (found.has(Keyword::loss_scale) && FindScaleDrop(text)) ||
         (found.has(Keyword::not_finite) && FindNotFinite(text));
}

bool IsSlurmLine(std::string_view text) {
  if (Contains(text.substr(0, 120), "error: *** ") && ContainsAny(text, {" CANCELLED AT ", " STEPD TERMINATED "}))
    return true;
  return text.starts_with("srun: ") || (text.starts_with("slurmstepd") && Contains(text.substr(0, 80), "error: "));
}

// {"key": ...; not {'loss': 2.5, ...}, as a trainer prints it.
bool LooksLikeJson(std::string_view text) {
  if (!TakeLiteral(text, "{")) return false;
  const size_t next = text.find_first_not_of(" \t\r\n");
  return next == std::string_view::npos || text[next] == '"' || text[next] == '}';
}

// "[  146.183364] text" and "[Sat Nov 15 00:17:46 2026] text" of a kernel.
bool IsKernelLine(std::string_view raw) {
  const size_t close = raw.substr(0, 40).find(']');
  if (Contains(raw.substr(0, 120), " kernel: ")) return true;
  if (!raw.starts_with('[') || close == std::string_view::npos) return false;
  const std::string_view inside = raw.substr(1, close - 1);
  if (inside.find_first_not_of(" .0123456789") == std::string_view::npos) return true;
  for (const std::string_view day : {"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "})
    if (inside.starts_with(day)) return true;
  return false;
}

// A kernel's line, a thread's stack, a header or a row of numbers of a benchmark, XML, JSON.
bool LooksAlien(std::string_view raw, std::string_view text) {
  text = Trim(text);
  if (text.empty()) return false;
  const bool heading = text.starts_with("## ") || text.starts_with("### ");  // of Markdown; a benchmark's has one mark
  if (text[0] == '<' || (text[0] == '#' && !heading) || LooksLikeJson(text) || IsKernelLine(raw)) return true;
  if (text.starts_with("Thread ") || text.starts_with("Process ")) return true;
  size_t digits = 0, letters = 0;
  for (const char c : text.substr(0, 400)) {
    digits += c >= '0' && c <= '9';
    letters += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  return digits > 8 && digits > letters * 2;
}

// ncclSystemError: System call (socket, malloc, munmap, etc) failed.
bool IsResultOfNccl(std::string_view text) {
  const std::string_view name = text.substr(0, std::min<size_t>(text.find(": "), text.size()));
  return name.size() < text.size() && name.starts_with("nccl") && name.size() > 8 && name.size() < 30 &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }) &&
         ContainsAny(name, {"Error", "InvalidUsage", "InvalidArgument"});
}

enum class LineLook : uint8_t { other, advice, job, alien, progress };

LineLook LookAt(std::string_view raw, LabelStyle style) {
  const std::string plain = HasTerminalCodes(raw) ? DropTerminalCodes(raw) : std::string();
  const LinePrefix line = SplitPrefix(plain.empty() ? raw.substr(0, 2000) : std::string_view(plain), style);
  const bool logged = line.severity != 0 && (line.code_file.ends_with(".cpp") || line.code_file.ends_with(".hpp") ||
                                             line.code_file.ends_with(".py") || line.code_file.ends_with(".h"));
  if (IsAdvice(line.text)) return LineLook::advice;
  const KeywordSet found = FindKeywords(line.text);
  if (line.rank >= 0 || logged || IsTracebackFrame(line.text) || !FindBareError(line.text).empty() ||
      FindShellNotice(line.text) || IsSlurmLine(line.text) || (found.has(Keyword::sacct) && IsSacctRow(line.text)) ||
      HasProof(found) || TellsFigures(line.text, found) || TellsCause(line.text, found) ||
      (found.has(Keyword::kernel_kill) && !IsKernelLine(raw)) || IsResultOfNccl(line.text))
    return LineLook::job;
  if (!Contains(line.text, "%|") && LooksAlien(raw, line.text)) return LineLook::alien;  // a bar is mostly digits
  return FindProgress(line.text) ? LineLook::progress : LineLook::other;
}

// A line that was drawn several times, or that holds what a record told in several lines.
bool HasPartOfAJob(std::string_view raw, LabelStyle style) {
  constexpr int kMostParts = 100;
  for (int part = 0; part < kMostParts && !raw.empty(); ++part) {
    const std::string_view one = TakeUntil(raw, '\r');
    if (!raw.empty()) raw.remove_prefix(1);
    if (!one.empty() && LookAt(one, style) == LineLook::job) return true;
  }
  return false;
}

LineCounts CountLines(std::string_view prefix) {
  LineCounts counts;
  const LabelStyle style = FindLabelStyle(prefix);
  LineReader reader(prefix);
  std::string_view raw;
  while (reader.Next(&raw)) {
    if (Trim(raw).empty()) continue;
    ++counts.lines;
    if (IsNcclLine(raw)) {
      ++counts.nccl;
      continue;
    }
    LineLook look = LookAt(raw, style);
    if (look != LineLook::job && raw.find('\r') != std::string_view::npos && HasPartOfAJob(raw, style))
      look = LineLook::job;
    counts.torch += look == LineLook::job;
    counts.alien += look == LineLook::alien;
    counts.progress += look == LineLook::progress;
  }
  return counts;
}

std::string_view BareName(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
  for (const std::string_view end : {".gz", ".zst", ".xz", ".bz2"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  return name;
}

// "stdout_rank3.log", "attempt_0/3/stderr.log", "slurm-88123.out", "worker-3.err"
bool IsOutputName(std::string_view path) {
  const std::string_view name = BareName(path);
  return Contains(name, "stdout") || Contains(name, "stderr") || name.ends_with(".log") || name.ends_with(".out") ||
         name.ends_with(".err") || name.ends_with(".output");
}

// Any tool may write a file that ends in ".log": without a known line inside, the name must say more.
bool IsJobOutputName(std::string_view path) {
  const std::string_view name = BareName(path);
  if (!name.ends_with(".log") || Contains(name, "std")) return IsOutputName(path);
  for (const std::string_view word : {"rank", "train", "worker", "job", "slurm", "task", "output", "node", "pod"})
    if (Contains(name, word)) return true;
  return !name.empty() && name[0] >= '0' && name[0] <= '9';
}

// {"message": {"message": "RuntimeError: ...", "extraInfo": {"py_callstack": ...
bool IsErrorFile(std::string_view prefix) {
  std::string_view text = Trim(prefix.substr(0, 4096));
  if (!TakeLiteral(text, "{")) return false;
  text = text.substr(std::min(text.find_first_not_of(" \r\n\t"), text.size()));
  if (!text.starts_with("\"message\"")) return false;
  return Contains(prefix, "\"py_callstack\"") || Contains(prefix, "\"extraInfo\"") || Contains(prefix, "\"timestamp\"");
}

// Whatever else a file may be: the reader finds the end of a process or an error in it.
bool TellsFailure(std::string_view bytes) {
  const TorchLog log = ParseTorchLog(bytes);
  return std::any_of(log.records.begin(), log.records.end(), [](const TorchLogRecord& record) {
    return record.kind != TorchLogKind::progress && record.kind != TorchLogKind::process_started &&
           record.kind != TorchLogKind::process_finished;
  });
}

Recognition RecogniseTorchLog(std::string_view prefix, std::string_view filename) {
  if (prefix.empty()) return IsOutputName(filename) ? Recognition::maybe : Recognition::no;
  if (IsErrorFile(prefix)) return Recognition::yes;
  if (LooksLikeJson(prefix) || prefix.find('\0') != std::string_view::npos) return Recognition::no;
  const LineCounts counts = CountLines(prefix);
  // NCCL's log has its own reader; together with the job's lines both read the file.
  if (counts.nccl > 0) return counts.torch + counts.progress > 0 ? Recognition::maybe : Recognition::no;
  if (counts.torch > 0) return Recognition::yes;
  // Nothing in it is known, and still it is the log of a job: levels, times of day, ranks, times of steps.
  const auto by_outline = [&] { return IsOutlineOfAJob(prefix) ? Recognition::maybe : Recognition::no; };
  if (counts.alien > counts.progress) return by_outline();
  if (counts.progress > 0 && counts.progress * 20 >= counts.lines) return Recognition::maybe;
  const bool few = counts.lines <= kFewLines && prefix.size() <= kFewBytes && counts.alien == 0;
  if (few && (IsJobOutputName(filename) || TellsFailure(prefix))) return Recognition::maybe;
  return by_outline();
}

}  // namespace

extern const Format kTorchLogFormat;
const Format kTorchLogFormat = {
    "torch_log",
    "job log: what a job and its launcher or scheduler print (PyTorch and other frameworks, torchrun, MPI, Ray, Slurm, "
    "Kubernetes): stdout and stderr of every rank, torchrun's error.json, Slurm's output file",
    RecogniseTorchLog,
    ReadTorchLog,
    true,
};

}  // namespace tacet
