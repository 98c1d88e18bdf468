// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_command.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "8G", "1250M", "1048576"
int64_t SizeOf(std::string_view word) {
  int64_t value = -1;
  if (!TakeNumber(word, &value) || value < 0 || value > (int64_t{1} << 40)) return -1;
  if (word.empty()) return value;
  const char unit = static_cast<char>(word[0] | 0x20);
  return unit == 'k' ? value << 10 : unit == 'm' ? value << 20 : unit == 'g' && value < (1 << 20) ? value << 30 : -1;
}

int64_t CountOf(std::string_view word) {
  int64_t value = -1;
  return TakeNumber(word, &value) && word.empty() && value > 0 && value < 1'000'000 ? value : -1;
}

// The value of "-e 8G", "--maxbytes 8G" or "--maxbytes=8G": the next word is taken where the option has none.
bool IsOption(std::string_view& word, std::string_view& rest, std::string_view brief, std::string_view full) {
  if (!full.empty() && word.starts_with(full) && word.size() > full.size() && word[full.size()] == '=') {
    word.remove_prefix(full.size() + 1);
    return true;
  }
  if (word != brief && (full.empty() || word != full)) return false;
  word = TakeWord(rest);
  return true;
}

void TakeOptions(std::string_view text, NcclTestsSettings& out) {
  while (!text.empty()) {
    std::string_view word = TakeWord(text);
    if (IsOption(word, text, "-e", "--maxbytes"))
      out.max_bytes = SizeOf(word);
    else if (IsOption(word, text, "-f", "--stepfactor"))
      out.factor = static_cast<double>(CountOf(word));
    else if (IsOption(word, text, "-i", "--stepbytes"))
      out.step_bytes = SizeOf(word);
    else if (IsOption(word, text, "-g", "--ngpus"))
      out.gpus = std::max<int64_t>(CountOf(word), 1);
    else if (IsOption(word, text, "-t", "--nthreads"))
      out.threads = std::max<int64_t>(CountOf(word), 1);
  }
}

// What stands before the program: a launcher with its number of processes, or none at all.
int64_t ProcessesOf(std::string_view text) {
  bool launched = false;
  int64_t processes = -1;
  while (!text.empty()) {
    std::string_view word = TakeWord(text);
    if (const size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
    for (const std::string_view name : {"mpirun", "mpiexec", "srun", "prun", "jsrun", "aprun", "flux", "kubectl", "ssh",
                                        "pdsh", "docker", "orterun", "mpirun.real"})
      launched |= word == name;
    if (launched && (IsOption(word, text, "-np", "--np") || IsOption(word, text, "-n", "--ntasks")))
      processes = CountOf(word);
  }
  return launched ? processes : 1;
}

}  // namespace

std::string_view NcclTestsProgramIn(std::string_view word) {
  while (!word.empty() && (word.back() == '"' || word.back() == '\'' || word.back() == ',')) word.remove_suffix(1);
  if (const size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
  for (std::string_view end : {"_perf", "_perf_mpi", "_perf.exe"})
    if (word.size() > end.size() && word.ends_with(end)) return word.substr(0, word.size() - end.size() + 5);
  return {};
}

std::string_view NcclTestsProgramOfCommand(std::string_view line, NcclTestsSettings* settings) {
  if (!Contains(line, "_perf") || Contains(line, "] NCCL ")) return {};
  const std::string_view whole = line;
  while (!line.empty()) {
    const std::string_view word = TakeWord(line);
    const std::string_view program = NcclTestsProgramIn(word);
    // Options must follow, else it is talk about the program.
    if (program.empty() || (!Trim(line).empty() && Trim(line)[0] != '-')) continue;
    *settings = {};
    TakeOptions(line, *settings);
    settings->processes = ProcessesOf(whole.substr(0, static_cast<size_t>(word.data() - whole.data())));
    return program;
  }
  return {};
}

NcclTestsSettings NcclTestsSettingsOfHeader(std::string_view text) {
  NcclTestsSettings out;
  out.max_bytes = IntAfter(text, "maxBytes ").value_or(-1);
  out.threads = std::max<int64_t>(IntAfter(text, "nThread ").value_or(1), 1);
  out.gpus = std::max<int64_t>(IntAfter(text, "nGpus ").value_or(1), 1);
  if (const auto step = After(text, "step: ")) {
    std::string_view rest = *step;
    int64_t value = -1;
    if (TakeNumber(rest, &value) && value > 0) {
      if (rest.starts_with("(factor)")) out.factor = static_cast<double>(value);
      if (rest.starts_with("(bytes)")) out.step_bytes = value;
    }
  }
  return out;
}

bool IsLastSize(const NcclTestsSettings& settings, int64_t bytes) {
  if (settings.max_bytes <= 0 || bytes <= 0) return false;
  // Sizes are rounded down to whole elements of all ranks: 0.1 % is far more than that, and far less than a step.
  const double most = static_cast<double>(settings.max_bytes) * 1.001, last = static_cast<double>(bytes);
  if (last >= static_cast<double>(settings.max_bytes) * 0.999) return true;
  if (settings.factor > 1) return last * settings.factor > most;
  return settings.step_bytes > 0 && last + static_cast<double>(settings.step_bytes) > most;
}

}  // namespace tacet
