// SPDX-License-Identifier: Apache-2.0
#include "render/text_pieces.h"

#include <algorithm>
#include <iterator>

#include "render/text_layout.h"

namespace tacet {
namespace {

bool IsUnit(std::string_view word) {
  constexpr std::string_view kUnits[] = {"%",    "ns",   "µs",   "ms",   "s",      "min",     "h",     "B",
                                                "kB",   "MB",   "GB",   "TB",   "KiB",    "MiB",     "GiB",   "TiB",
                                                "GB/s", "MB/s", "kB/s", "Gb/s", "Gbit/s", "TFLOP/s", "PFLOP", "TFLOP"};
  while (!word.empty() && std::string_view(".,;:)").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

// "84.4 %", "p 0.04", "dmesg -T" and "--layers N" read badly in two lines: a unit stays with its number, a short option
// with its command, a value with its option.
bool StaysWith(std::string_view before, std::string_view word) {
  constexpr size_t kShort = 28;
  if (before.empty() || word.empty() || before.size() + word.size() > kShort) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (word.size() > 1 && word[0] == '-' && is_letter(word[1])) return is_letter(before.back());
  const std::string_view option = before.substr(before.rfind(' ') + 1);
  if (option.size() > 2 && option.starts_with("--") && is_letter(option.back()))
    return word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ,:|[]().") == std::string_view::npos;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (before == "p") return is_digit(word[0]) || word == "=" || word == "<";
  if (before == "p =" || before == "p <") return is_digit(word[0]);
  // "-15.1 % to +20.2 %"
  const bool number = is_digit(before.back()) || (before.ends_with(" %") && before.size() > 2);
  if (word == "to") return number;
  if (before.ends_with(" to")) return is_digit(word[0]) || word[0] == '+' || word[0] == '-' || word[0] == '<';
  return is_digit(before.back()) && IsUnit(word);
}

// A word, and what must stay with it.
size_t ShortPieceEnd(std::string_view line, size_t at, size_t width) {
  size_t end = std::min(line.find(' ', at), line.size());
  while (end < line.size()) {
    const size_t next = std::min(line.find(' ', end + 1), line.size());
    const bool fits = DisplayWidth(line.substr(at, next - at)) <= width;
    if (!fits || !StaysWith(line.substr(at, end - at), line.substr(end + 1, next - end - 1))) break;
    end = next;
  }
  return end;
}

bool IsOneOf(std::string_view word, std::string_view list) {  // " a b c "
  for (size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1))
    if (list[at - 1] == ' ' && list[at + word.size()] == ' ') return true;
  return false;
}

bool IsProgram(std::string_view word) {
  return !word.empty() &&
         IsOneOf(word,
                 " tacet torchrun srun sbatch sacct sinfo scontrol squeue mpirun kubectl dmesg journalctl nvidia-smi py-spy "
                 "gdb ulimit ibstat ethtool ssh python python3 pip curl ip df du systemctl docker bhist tracejob qstat ");
}

// NCCL_DEBUG=INFO
bool IsAssignment(std::string_view word) {
  const size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 2 &&
         word.substr(0, equals).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

bool EndsPhrase(std::string_view word) {
  return !word.empty() && std::string_view(".,;:)'`").find(word.back()) != std::string_view::npos;
}

// A word that can hardly be one of a sentence: an option, a path, a placeholder, an assignment.
bool IsArgument(std::string_view word) {
  if (word.size() > 1 && word[0] == '-' && word != "->") return true;
  while (EndsPhrase(word) && word.size() > 1) word.remove_suffix(1);
  if (word.find_first_of("/=$<") != std::string_view::npos) return true;
  return word.size() > 1 && word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_[],.") == std::string_view::npos;
}

// Where a command ends that begins at `at`: `tacet explain rank-dead`, 'tacet formats', sacct -j JOB -o State,
// NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALL. `at` where none begins.
size_t CommandEnd(std::string_view line, size_t at) {
  size_t begin = at;
  if (begin < line.size() && line[begin] == '(') ++begin;
  if (begin < line.size() && line[begin] == '`') {
    const size_t close = line.find('`', begin + 1);
    return close == std::string_view::npos ? at : std::min(line.find(' ', close), line.size());
  }
  if (begin < line.size() && line[begin] == '\'') ++begin;
  size_t end = std::min(line.find(' ', begin), line.size());
  std::string_view last = line.substr(begin, end - begin);
  bool set = IsAssignment(last), program = IsProgram(last);
  if (!set && !program) return at;
  size_t words = 1;
  while (end < line.size() && !EndsPhrase(last)) {
    const size_t next = std::min(line.find(' ', end + 1), line.size());
    const std::string_view word = line.substr(end + 1, next - end - 1);
    // "tacet formats", and the second word of "nvidia-smi topo -m".
    const size_t after = std::min(line.find(' ', std::min(next + 1, line.size())), line.size());
    const bool plain = program && words == 1 && !word.empty() && word[0] >= 'a' && word[0] <= 'z' && !EndsPhrase(word);
    // "kubectl describe pod"
    const bool kube =
        line.substr(begin).starts_with("kubectl ") && words <= 2 && !word.empty() && word[0] >= 'a' && word[0] <= 'z';
    const bool own =
        kube || (last == "tacet" && words == 1 && !word.empty() && word[0] >= 'a' && word[0] <= 'z') ||
        (plain && next < line.size() && line[next + 1] == '-' && IsArgument(line.substr(next + 1, after - next - 1)));
    const bool value = program && last.size() > 1 && last[0] == '-' && last.find('=') == std::string_view::npos;
    if (set && IsProgram(word))
      program = true, set = false;
    else if (set ? !IsAssignment(word) : !(own || value || IsArgument(word)))
      break;
    last = word;
    end = next;
    ++words;
  }
  return words > 1 ? end : at;
}

}  // namespace

size_t PieceEnd(std::string_view line, size_t at, size_t width) {
  const size_t command = CommandEnd(line, at);
  if (command > at && DisplayWidth(line.substr(at, command - at)) <= width) return command;
  return ShortPieceEnd(line, at, width);
}

}  // namespace tacet
